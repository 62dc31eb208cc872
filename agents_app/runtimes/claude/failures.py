"""What can go wrong in the CLI, as a typed error that a person can act on."""

import logging
import math
import os
import re
from typing import Any

from claude_agent_sdk import ResultMessage
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop as noop

from agents_app.model.door import Trouble
from agents_app.runtimes.base import HeldBack, NotThisTime, RunFailed
from agents_app.runtimes.claude import options
from agents_app.runtimes.events import Warned
from agents_app.sandboxes.base import CannotConfine, VaultBusy, VaultChanged
from agents_app.sandboxes.checks import CHANGED

log = logging.getLogger(__name__)

BY_STATUS = {
    401: "invalid_api_key",
    402: "billing_error",
    403: "invalid_api_key",
    404: "model_not_allowed",
    413: "context_exceeded",
    429: "rate_limited",
    502: "network_error",
    503: "overloaded",
    504: "overloaded",
    529: "overloaded",
}
BY_WORDS = (
    ("prompt is too long", "context_exceeded"),
    ("credit balance", "billing_error"),
    ("malformed response", "network_error"),
    ("connection to the api", "network_error"),
)
GONE = re.compile(
    r"bwrap: Can't (?:find source path|get type of source|bind mount|remount readonly on) "
    r".*: (?:No such file or|Not a) directory"
)
MISSING = noop("The program that runs agents is not there, or may not be run.")
LONGEST_MESSAGE = 500
LONGEST_LAST_WORDS = 200
# The CLI names the address that it was given, which is the door's and of no use to a person.
_OF_THE_DOOR = re.compile(r"[^.]*\(door\.invalid\)\.?")
_OF_THE_CLI = re.compile(
    r"^(Failed to authenticate\. )?API Error: (Request rejected \(429\) · |\d{3} )?"
    r"| This is a server-side issue, usually temporary — try again in a moment\."
)
_NOTHING_NEW = ("Invalid API key", "Parachute could not reach", "Connection to the API")
_WHAT_CAME = re.compile(r"Response: content-type [^,]*, ([^,(]*[^,( ])")
_SECRET = re.compile(r"\bsk-[\w-]+")


def failure_of(result: ResultMessage, trouble: Trouble | None = None) -> RunFailed:
    """The failure that a result tells. Where it fits, the door's trouble says what the result leaves out."""
    if result.subtype == "error_max_turns":
        text = _("It took as many steps as its agent's file allows (max_turns), and was stopped.")
        return RunFailed("deadline_exceeded", text)
    said = result.result or "; ".join(result.errors or ()) or result.subtype
    status = result.api_error_status
    if trouble and status not in (None, trouble.status):
        trouble = None
    code = _code(said, status or (trouble.status if trouble else None))
    if code == "invalid_api_key" and trouble and trouble.without_key:
        code = "no_credentials"
    wait = trouble.retry_after if trouble and code in ("rate_limited", "overloaded") else None
    if wait is None:
        return RunFailed(code, _told(code, said))
    text = f"{_told(code, said)} {_wait(wait)}"
    return RunFailed(code, text, retry_after_ms=round(wait * 1000))


def failure_to_start(error: Exception, last_words: str) -> RunFailed:
    """Also where it ends in the middle. Its last words are told if they are words, and logged in any case."""
    log.warning("A CLI ended (%s). Its last words: %s", type(error).__name__, last_words or "none")
    if not os.access(options.CLI, os.X_OK):
        return RunFailed("cli_missing", _(MISSING))
    if CHANGED in last_words or GONE.search(last_words):
        return NotThisTime("cli_crashed", CHANGED)
    words = _SECRET.sub("…", last_words)
    if len(words) > LONGEST_LAST_WORDS or "Traceback" in words or "    at " in words:
        words = ""
    return RunFailed(
        "cli_crashed", f"{_('The program that runs agents did not start, or ended early.')} {words}".strip()
    )


def failure_to_confine(error: CannotConfine) -> RunFailed:
    if not os.access(options.CLI, os.X_OK):
        return RunFailed("cli_missing", _(MISSING))
    if isinstance(error, VaultBusy):
        return HeldBack("cli_crashed", str(error))
    if isinstance(error, VaultChanged):
        return NotThisTime("cli_crashed", str(error))
    return RunFailed("sandbox_unavailable", str(error))


def retry_of(data: dict[str, Any]) -> Warned:
    seconds = round(float(data.get("retry_delay_ms") or 0) / 1000, 1)
    facts = {"attempt": data.get("attempt"), "most": data.get("max_retries"), "seconds": seconds}
    why = _reasons().get(BY_STATUS.get(data.get("error_status") or 502, ""), _("The model could not answer."))
    when = _("Trying again in %(seconds)s s (%(attempt)s of %(most)s).") % facts
    return Warned("api_retry", _("Trying again"), f"{why} {when}")


def _code(said: str, status: int | None) -> str:
    words = said.lower()
    if status in (None, 400):
        return next(
            (code for part, code in BY_WORDS if part in words), BY_STATUS.get(status or 0, "unknown_error")
        )
    return BY_STATUS.get(status, "unknown_error")


def _told(code: str, said: str) -> str:
    """What happened, in our words; then in the words of whoever refused, where they add to it."""
    if came := _WHAT_CAME.search(said):
        why = _("What came is no answer of the model (%(what)s). Look at ANTHROPIC_BASE_URL and at proxies.")
        return why % {"what": came[1]}
    theirs = _SECRET.sub("…", _OF_THE_CLI.sub("", _OF_THE_DOOR.sub("", said))).strip()
    if code == "context_exceeded" or theirs.startswith(_NOTHING_NEW):
        theirs = ""
    sentences = [_reasons()[code], f"{theirs.rstrip('.')}." if theirs else ""]
    return " ".join(filter(None, sentences))[:LONGEST_MESSAGE]


def _wait(seconds: float) -> str:
    if seconds < 120:
        return _("It answers again in %(number)s seconds.") % {"number": math.ceil(seconds)}
    return _("It answers again in %(number)s minutes.") % {"number": math.ceil(seconds / 60)}


def _reasons() -> dict[str, str]:
    return {
        "no_credentials": _("The model asks for a key, and there is none."),
        "invalid_api_key": _("The model does not accept the key."),
        "billing_error": _("The account has no credit or plan for this."),
        "rate_limited": _("The model takes no more requests for a while."),
        "overloaded": _("The model has too much to do, or does not answer."),
        "network_error": _("The connection to the model cannot be made, or broke off."),
        "context_exceeded": _("The conversation is longer than what the model can read at once."),
        "model_not_allowed": _("The model is not known there, or not open to this account."),
        "unknown_error": _("The model could not answer."),
    }

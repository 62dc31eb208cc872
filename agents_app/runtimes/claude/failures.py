"""What can go wrong in the CLI, as a typed error that a person can act on."""

import re

from claude_agent_sdk import CLINotFoundError, ResultMessage

from agents_app.runtimes.base import RunFailed

BY_STATUS = {
    401: "invalid_api_key",
    402: "billing_error",
    403: "invalid_api_key",
    404: "model_not_allowed",
    413: "context_exceeded",
    429: "rate_limited",
    503: "overloaded",
    529: "overloaded",
}
LONGEST_MESSAGE = 500
# The CLI names the address that it was given, which is the door's and of no use to a person.
_OF_THE_DOOR = re.compile(r"[^.]*\(door\.invalid\)\.?")


def failure_of(result: ResultMessage) -> RunFailed:
    """The failure that a result tells. The door answers 502 for a model that it cannot reach."""
    said = result.result or "; ".join(result.errors or ()) or result.subtype
    text = _OF_THE_DOOR.sub("", said).strip()[:LONGEST_MESSAGE]
    status = result.api_error_status
    if "prompt is too long" in text.lower():
        return RunFailed("context_exceeded", text)
    if status == 502 or (status is None and "connect" in text.lower()):
        return RunFailed("network_error", text)
    return RunFailed(BY_STATUS.get(status or 0, "unknown_error"), text)


def failure_to_start(error: Exception, last_words: str) -> RunFailed:
    if isinstance(error, CLINotFoundError):
        return RunFailed("cli_missing", "The CLI that comes with the SDK was not found.")
    return RunFailed(
        "cli_crashed", f"The agent's program ended early. {last_words}".strip()[:LONGEST_MESSAGE]
    )

"""What may go wrong while an agent runs: the typed errors that end a turn, and what is refused to an agent
alone.

Each of the first has a title, what happened, what to do, and whether the same message may simply be sent
again.
"""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop as noop


@dataclass(frozen=True)
class FailureKind:
    title: str
    remedy: str
    can_retry: bool
    status: int  # of a POST that waits for the answer as JSON


KINDS = {
    "no_credentials": FailureKind(noop("No key"), noop("An operator enters one under Settings."), False, 503),
    "invalid_api_key": FailureKind(
        noop("The key is not accepted"), noop("An operator enters another one under Settings."), False, 502
    ),
    "billing_error": FailureKind(
        noop("The account cannot pay"), noop("Add credit, or check the plan of the account."), False, 502
    ),
    "rate_limited": FailureKind(
        noop("Too many requests"), noop("Wait a little, then send it again."), True, 503
    ),
    "overloaded": FailureKind(
        noop("The model is overloaded"), noop("Wait a little, then send it again."), True, 503
    ),
    "network_error": FailureKind(
        noop("The model cannot be reached"), noop("Check the network, then send it again."), True, 502
    ),
    "context_exceeded": FailureKind(
        noop("The conversation is too long"), noop("Start a new chat, or attach less."), False, 422
    ),
    "cli_missing": FailureKind(
        noop("The agent's program is missing"), noop("Run `make setup`, then send it again."), True, 500
    ),
    "cli_crashed": FailureKind(
        noop("The agent's program ended"), noop("Send it again; the log says more."), True, 500
    ),
    "worker_lost": FailureKind(noop("The worker was lost"), noop("Send it again."), True, 500),
    "deadline_exceeded": FailureKind(noop("It took too long"), noop("Ask for less at once."), True, 504),
    "sandbox_unavailable": FailureKind(
        noop("No wall to run behind"), noop("Install bubblewrap, or choose another trust level."), False, 503
    ),
    "scratch_full": FailureKind(
        noop("Its folder is full"),
        noop("What it kept there is gone; send it again. An operator can raise PARACHUTE_LIMIT_SCRATCH_MB."),
        True,
        500,
    ),
    "vault_gone": FailureKind(
        noop("The vault is not there"),
        noop("Mount it again, or let an operator choose another folder under /admin; then send it again."),
        True,
        503,
    ),
    "trust_too_high": FailureKind(
        noop("More than is allowed here"), noop("An operator can change that."), False, 422
    ),
    "budget_exceeded": FailureKind(
        noop("The budget is spent"), noop("Raise the budget or wait for tomorrow."), False, 429
    ),
    "model_not_allowed": FailureKind(
        noop("This model is not allowed"), noop("Choose another one, or change PARACHUTE_MODELS."), False, 422
    ),
    "unknown_error": FailureKind(
        noop("Something failed"), noop("Send it again; the log says more."), True, 500
    ),
}
SEND_AGAIN = ("r", noop("Send again"), "retry")
NEW_CHAT = ("n", noop("New chat"), "new_chat")
SETTINGS = ("s", noop("Settings"), "settings")
OF_ITS_OWN = {
    "context_exceeded": (NEW_CHAT,),
    "no_credentials": (SETTINGS, SEND_AGAIN),
    "invalid_api_key": (SETTINGS, SEND_AGAIN),
}


class AgentError(Exception):
    """Ends a turn with a `typed_error`. `message` says what happened, without a secret or a traceback."""

    def __init__(self, code: str, message: str, *, retry_after_ms: int | None = None) -> None:
        super().__init__(message)
        self.code = code if code in KINDS else "unknown_error"
        self.message = message
        self.retry_after_ms = retry_after_ms

    def as_payload(self) -> dict[str, Any]:
        kind = KINDS[self.code]
        return {
            "code": self.code,
            "title": str(_(kind.title)),
            "message": f"{self.message} {_(kind.remedy)}".strip(),
            "actions": self._actions(kind),
            "canRetry": kind.can_retry,
            "retryDelayMs": self.retry_after_ms,
        }

    def _actions(self, kind: FailureKind) -> list[dict[str, str]]:
        """What a page can offer as a button. The rest is for the operator, and the message says it."""
        offered = OF_ITS_OWN.get(self.code, (SEND_AGAIN,) if kind.can_retry else ())
        return [{"key": key, "label": str(_(label)), "action": action} for key, label, action in offered]


class CannotCarryOut(Exception):
    """What the server does not do in an agent's place. The text says why, to the model and to a person."""

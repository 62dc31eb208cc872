"""What may go wrong while an agent runs: the typed errors that end a turn.

Each has a title, what happened, what to do, and whether the same message may simply be sent again.
"""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop as noop


@dataclass(frozen=True)
class Kind:
    title: str
    remedy: str
    can_retry: bool
    status: int  # of a POST that waits for the answer as JSON


KINDS = {
    "no_credentials": Kind(noop("No key"), noop("Set ANTHROPIC_API_KEY and restart."), False, 503),
    "invalid_api_key": Kind(
        noop("The key is not accepted"), noop("Check ANTHROPIC_API_KEY and restart."), False, 502
    ),
    "billing_error": Kind(noop("The account cannot pay"), noop("Check the plan of the account."), False, 502),
    "rate_limited": Kind(noop("Too many requests"), noop("Wait a little and send it again."), True, 503),
    "overloaded": Kind(noop("The model is overloaded"), noop("Wait a little and send it again."), True, 503),
    "network_error": Kind(
        noop("The model cannot be reached"), noop("Check the network, then send it again."), True, 502
    ),
    "context_exceeded": Kind(noop("The conversation is too long"), noop("Start a new chat."), False, 422),
    "cli_missing": Kind(noop("The agent's program is missing"), noop("Run `make setup` again."), False, 500),
    "cli_crashed": Kind(
        noop("The agent's program ended"), noop("Send it again; the log says more."), True, 500
    ),
    "worker_lost": Kind(noop("The worker was lost"), noop("Send it again."), True, 500),
    "deadline_exceeded": Kind(noop("It took too long"), noop("Ask for less at once."), True, 504),
    "sandbox_unavailable": Kind(
        noop("No wall to run behind"), noop("Install bubblewrap, or choose another trust level."), False, 503
    ),
    "budget_exceeded": Kind(
        noop("The budget is spent"), noop("Raise the budget or wait for tomorrow."), False, 429
    ),
    "model_not_allowed": Kind(
        noop("This model is not allowed"), noop("Choose one of PARACHUTE_MODELS."), False, 422
    ),
    "unknown_error": Kind(noop("Something failed"), noop("Send it again; the log says more."), True, 500),
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
        actions = [{"key": "r", "label": str(_("Send again")), "action": "retry"}] if kind.can_retry else []
        return {
            "code": self.code,
            "title": str(_(kind.title)),
            "message": f"{self.message} {_(kind.remedy)}".strip(),
            "actions": actions,
            "canRetry": kind.can_retry,
            "retryDelayMs": self.retry_after_ms,
        }

"""What may go wrong, each with a code, a status and a sentence for a person.

ParachuteError
├── NotFound            404  unknown, or not yours: no difference
├── Forbidden           403  known, not allowed
├── Unauthenticated     401
├── Invalid             422  `fields` name what is wrong
│   └── OutsideVault, ModelNotAllowed, TrustTooHigh
├── TooLarge            413
├── Conflict            409
│   └── AlreadyDecided, IdempotencyMismatch, SessionEnded, SessionNotRunning
├── RateLimited         429
├── QueueFull           429
└── NotReady            503
    └── SandboxUnavailable
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from django.utils.translation import gettext as _


class ParachuteError(Exception):
    """An error that a caller may show as it is. Callers decide by `code`, never by the text."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    def as_json(self) -> dict[str, Any]:
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.details:
            error["details"] = self.details
        return {"error": error}


class NotFound(ParachuteError):
    code, status = "not_found", 404

    def __init__(self, message: str = "") -> None:
        super().__init__(message or _("There is nothing here, or nothing that you may see."))


class Unauthenticated(ParachuteError):
    code, status = "unauthenticated", 401

    def __init__(self, message: str = "") -> None:
        super().__init__(
            message or _("Sign in, or send a key as `Authorization: Bearer para_…` or `X-API-Key`.")
        )


class Forbidden(ParachuteError):
    code, status = "forbidden", 403


class Invalid(ParachuteError):
    code, status = "invalid", 422

    @classmethod
    def field(cls, name: str, message: str) -> "Invalid":
        return cls(message, fields=[{"field": name, "message": message}])

    @classmethod
    def of_fields(cls, found: Sequence[tuple[str, str]]) -> "Invalid":
        """Each field with what is wrong with it; the first is in the sentence, all that some read."""
        name, reason = found[0]
        told = _("Some fields cannot be taken as they are. %(name)s: %(reason)s")
        listed = [{"field": field, "message": message} for field, message in found]
        return cls(told % {"name": name, "reason": reason}, fields=listed)


class OutsideVault(Invalid):
    code = "outside_vault"


class ModelNotAllowed(Invalid):
    code = "model_not_allowed"


class TrustTooHigh(Invalid):
    code = "trust_too_high"


class TooLarge(ParachuteError):
    code, status = "too_large", 413


class Conflict(ParachuteError):
    code, status = "conflict", 409


class AlreadyDecided(Conflict):
    code = "already_decided"


class IdempotencyMismatch(Conflict):
    code = "idempotency_mismatch"


class SessionEnded(Conflict):
    code = "session_ended"


class SessionNotRunning(Conflict):
    code = "session_not_running"


class RateLimited(ParachuteError):
    code, status = "rate_limited", 429


class QueueFull(ParachuteError):
    code, status = "queue_full", 429


class NotReady(ParachuteError):
    code, status = "not_ready", 503


class SandboxUnavailable(NotReady):
    code = "sandbox_unavailable"

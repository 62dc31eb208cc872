from dataclasses import dataclass
from typing import Any
from uuid import UUID

from agents_app.orchestration.models import WakeKind


@dataclass(frozen=True)
class News:
    """What somebody is to be told. `key` is of its cause: the same one is told once."""

    kind: WakeKind
    key: str
    cause: str
    payload: dict[str, Any]
    child_id: UUID | None = None

    @property
    def told(self) -> dict[str, Any]:
        """As the agent reads it. Nobody watches while it does."""
        return {"kind": str(self.kind), "driverless": True, **self.payload}

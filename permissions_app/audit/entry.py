"""What an audit row says, before it has a place in a chain."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from permissions_app.audit import chain, masking
from permissions_app.models.audit import AuditKind, Outcome
from sessions_app.storable import storable

PLATFORM = "platform"
LONGEST = 200  # of names, rules and patterns


@dataclass(frozen=True)
class Entry:
    """As whoever decided hands it over: nothing is hashed or masked yet, that is the writer's work."""

    kind: AuditKind
    outcome: Outcome
    who: str = PLATFORM  # `user:7`, `key:3`, as a Caller calls itself
    workspace_id: int | None = None
    session_id: UUID | None = None
    turn_id: UUID | None = None
    tool: str = ""
    tool_use_id: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)
    rule: str = ""
    pattern: str = ""
    latency_ms: float | None = None
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    id: UUID = field(default_factory=uuid4)

    def finished(self) -> Finished:
        words = {name: _short(getattr(self, name)) for name in ("who", "tool", "tool_use_id", "rule")}
        return Finished(
            id=str(self.id),
            at=self.at.isoformat(),
            kind=self.kind.value,
            outcome=self.outcome.value,
            workspace_id=self.workspace_id,
            session_id=str(self.session_id or chain.NOBODYS),
            turn_id=str(self.turn_id) if self.turn_id else None,
            arguments_hash=chain.hash_of(self.arguments),
            summary=masking.summary(self.arguments),
            pattern=_short(masking.masked(self.pattern)),
            latency_ms=None if self.latency_ms is None else round(self.latency_ms, 3),
            **words,
        )


@dataclass(frozen=True)
class Finished:
    """Without a secret: this is what is stored, spooled and exported. Its fields are columns of AuditRow."""

    id: str
    at: str
    kind: str
    outcome: str
    who: str
    workspace_id: int | None
    session_id: str
    turn_id: str | None
    tool: str
    tool_use_id: str
    arguments_hash: str
    summary: str
    rule: str
    pattern: str
    latency_ms: float | None

    def as_line(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=True)

    @classmethod
    def of_line(cls, line: str) -> Finished:
        """Raises ValueError or TypeError where the line is none, or half of one."""
        return cls(**json.loads(line))


def _short(text: str) -> str:
    stored: str = storable(text)
    return stored[:LONGEST]

"""What the gate of one turn tells the audit."""

from dataclasses import dataclass
from uuid import UUID

from permissions_app import audit
from permissions_app.audit import AuditKind, Entry, Outcome
from permissions_app.rules.decision import Decision, Verdict
from permissions_app.rules.ladder import ToolCall

OUTCOMES = {Verdict.ALLOW: Outcome.ALLOWED, Verdict.DENY: Outcome.DENIED, Verdict.ASK: Outcome.ASKED}


@dataclass(frozen=True)
class TurnAudit:
    """Given to a Gate as `audit`. `who` is whoever the turn answers: `user:7`, or the platform."""

    who: str
    workspace_id: int | None
    session_id: UUID
    turn_id: UUID | None

    def __call__(self, call: ToolCall, decision: Decision, latency_ms: float) -> None:
        audit.record(
            Entry(
                kind=AuditKind.DECISION,
                outcome=OUTCOMES[decision.verdict],
                who=self.who,
                workspace_id=self.workspace_id,
                session_id=self.session_id,
                turn_id=self.turn_id,
                tool=call.name,
                tool_use_id=call.id,
                arguments=call.input,
                rule=decision.rule,
                pattern=decision.pattern,
                latency_ms=latency_ms,
            )
        )

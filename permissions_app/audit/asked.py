"""What the audit is told of people: that one is asked, and what came of it."""

from permissions_app import audit
from permissions_app.audit.entry import PLATFORM, Entry
from permissions_app.models.audit import AuditKind, Outcome
from permissions_app.models.requests import RequestStatus, ToolRequest

OUTCOMES = {
    RequestStatus.GRANTED: Outcome.GRANTED,
    RequestStatus.DENIED: Outcome.DENIED,
    RequestStatus.ANSWERED: Outcome.ANSWERED,
    RequestStatus.EXPIRED: Outcome.EXPIRED,
    RequestStatus.ABORTED: Outcome.ABORTED,
}


def was_asked(request: ToolRequest, workspace_id: int) -> None:
    _record(request, workspace_id, AuditKind.REQUEST, Outcome.ASKED)


def was_decided(request: ToolRequest, workspace_id: int) -> None:
    """With how long it took, and the pattern by which the session was widened."""
    _record(request, workspace_id, AuditKind.ANSWER, OUTCOMES[RequestStatus(request.status)])


def _record(request: ToolRequest, workspace_id: int, kind: AuditKind, outcome: Outcome) -> None:
    took = (request.decided_at - request.created_at).total_seconds() * 1000 if request.decided_at else None
    entry = Entry(
        kind=kind,
        outcome=outcome,
        who=request.decided_as or PLATFORM,
        workspace_id=workspace_id,
        session_id=request.session_id,
        turn_id=request.turn_id,
        tool=request.tool_name,
        tool_use_id=request.tool_use_id,
        arguments=request.input,
        rule=request.rule,
        pattern=request.pattern,
        latency_ms=took,
    )
    audit.record_on_commit(entry)

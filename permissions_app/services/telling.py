"""How a request and its end are told: a row in the session's stream, and a ring for every inbox.

Called with the turn's row locked, where the turn is active. That is how its status and what it asks agree: it
waits as long as something is pending, and not longer.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import transaction

from permissions_app.audit.asked import was_asked, was_decided
from permissions_app.models import RequestStatus, ToolRequest
from permissions_app.schemas import PendingQuestion, PermissionRequest
from sessions_app import bus
from sessions_app.log import record
from sessions_app.models import EventType, Session, Turn, TurnStatus

INBOX = "requests"  # the topic of whoever shows what is asked; `workspace` says whose


def tell_asked(request: ToolRequest) -> None:
    if request.is_question:
        kind, payload = EventType.USER_QUESTION, PendingQuestion.told(request)
    else:
        kind, payload = EventType.PERMISSION_REQUEST, PermissionRequest.told(request)
    record(request.session_id, kind, payload, turn_id=request.turn_id)
    was_asked(request, ring_inboxes(request.session_id))


def tell_end(request: ToolRequest, turn_id: UUID | None) -> None:
    kind, payload = as_end(request)
    record(request.session_id, kind, payload, turn_id=turn_id)
    transaction.on_commit(lambda: bus.ring(bus.turn_topic(request.turn_id), {"type": "decided"}), robust=True)
    was_decided(request, ring_inboxes(request.session_id))


def as_end(request: ToolRequest) -> tuple[EventType, dict[str, Any]]:
    if request.is_question:
        was_answered = request.status == RequestStatus.ANSWERED
        answers: Mapping[str, Any] = request.answers if was_answered else {}
        return EventType.QUESTION_ANSWERED, {
            "requestId": str(request.pk),
            "answers": answers,
            "timedOut": not was_answered,
        }
    was_decided = request.status in (RequestStatus.GRANTED, RequestStatus.DENIED)
    return EventType.PERMISSION_RESOLVED, {
        "requestId": str(request.pk),
        "decision": request.status if was_decided else RequestStatus.EXPIRED,
        "pattern": request.pattern or None,
        "scope": request.scope or None,
        "decidedBy": request.decided_by.get_username() if request.decided_by else request.decided_as or None,
    }


def let_turn_go_on(turn_id: UUID) -> None:
    if not ToolRequest.objects.pending().filter(turn=turn_id).exists():
        Turn.objects.filter(pk=turn_id, status=TurnStatus.WAITING).update(status=TurnStatus.RUNNING)


def ring_inboxes(session_id: UUID) -> int:
    """Those of its workspace, which it names."""
    workspace: int = Session.objects.values_list("workspace_id", flat=True).get(pk=session_id)
    transaction.on_commit(lambda: bus.ring(INBOX, {"workspace": workspace}), robust=True)
    return workspace

"""A request, and its end, as they are told: in a row, in the inbox, and in the stream of a parent."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from permissions_app.models import RequestStatus, ToolRequest
from permissions_app.schemas import PendingQuestion, PermissionRequest
from sessions_app.bus import Payload
from sessions_app.models import EventType


def as_asked(request: ToolRequest) -> tuple[EventType, dict[str, Any]]:
    if request.is_question:
        return EventType.USER_QUESTION, PendingQuestion.told(request)
    return EventType.PERMISSION_REQUEST, PermissionRequest.told(request)


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
        "reason": request.reason or None,
        "decidedBy": request.decided_by.get_username() if request.decided_by else request.decided_as or None,
    }


def frame(request: ToolRequest) -> Payload:
    """As in the stream of its session, but for a number: no reader comes back here with one."""
    is_pending = request.status == RequestStatus.PENDING
    kind, payload = as_asked(request) if is_pending else as_end(request)
    at = request.created_at if is_pending else request.decided_at or request.created_at
    return {
        "type": kind,
        "sessionId": str(request.session_id),
        "turnId": str(request.turn_id),
        "seq": None,
        "ts": at.isoformat().replace("+00:00", "Z"),
        **payload,
    }


def frame_for_parent(request: ToolRequest, parent_id: UUID) -> Payload:
    """It comes in a stream that is not its session's, and says so."""
    return frame(request) | {"parentSessionId": str(parent_id)}


def request_of(payload: Payload) -> str:
    """The id of the request that a frame or a row is about."""
    return str(payload.get("requestId") or payload["id"])

"""A request, and its end, as they are told: in a row, in the inbox, and in the stream of a parent."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from permissions_app.models import GrantRequest, GrantRequestStatus, RequestStatus, ToolRequest
from permissions_app.schemas import PendingQuestion, PermissionRequest
from sessions_app.models import EventType
from sessions_app.streaming.bus import Payload

Asked = ToolRequest | GrantRequest


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
            "givenUp": request.status == RequestStatus.ABORTED,  # with its turn, before its time was over
        }
    was_decided = request.status in (RequestStatus.GRANTED, RequestStatus.DENIED)
    return EventType.PERMISSION_RESOLVED, {
        "requestId": str(request.pk),
        "decision": request.status if was_decided else RequestStatus.EXPIRED,
        "canStillBeAllowed": request.status == RequestStatus.EXPIRED,  # for a day; not when its turn has gone
        "pattern": request.pattern or None,
        "scope": request.scope or None,
        "reason": request.reason or None,
        "decidedBy": request.decided_by.get_username() if request.decided_by else request.decided_as or None,
    }


def grant_asked(request: GrantRequest) -> tuple[EventType, dict[str, Any]]:
    return EventType.GRANT_REQUEST, {
        "requestId": str(request.pk),
        "agent": request.agent,
        "childAgentId": request.child_agent,
        "reason": request.reason,
        "workspace": request.workspace.slug,
    }


def grant_end(request: GrantRequest) -> tuple[EventType, dict[str, Any]]:
    return EventType.GRANT_RESOLVED, {
        "requestId": str(request.pk),
        "decision": _DECISIONS.get(GrantRequestStatus(request.status), RequestStatus.EXPIRED),
        "decidedBy": request.decided_by.get_username() if request.decided_by else None,
    }


_DECISIONS = {GrantRequestStatus.APPROVED: "granted", GrantRequestStatus.DENIED: "denied"}


def frame(request: Asked, *, is_over: bool | None = None) -> Payload:
    """As in the stream of its session, but for a number: no reader comes back here with one. `is_over`: for
    this reader, who may decide it no more."""
    if is_over is None:
        is_over = request.status != RequestStatus.PENDING
    if isinstance(request, ToolRequest):
        turn, (kind, payload) = str(request.turn_id), as_end(request) if is_over else as_asked(request)
    else:
        turn, (kind, payload) = None, grant_end(request) if is_over else grant_asked(request)
    at = request.created_at if not is_over else request.decided_at or request.created_at
    return {
        "type": kind,
        "sessionId": str(request.session_id),
        "turnId": turn,
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

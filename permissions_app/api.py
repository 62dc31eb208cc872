"""What people decide: over all sessions, and in one."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Body, Query, Router

from permissions_app import reading, services
from permissions_app.models import RequestKind
from permissions_app.schemas import (
    Answered,
    AnswerOrder,
    Card,
    Decided,
    DenyOrder,
    GrantOrder,
    Pattern,
    Pending,
    PendingQuestion,
    PendingQuestions,
    PermissionRequest,
    PermissionsOfSession,
    PreviewOut,
    SessionDenyOrder,
    SessionGrantOrder,
)
from sessions_app.access.caller import Caller
from sessions_app.api import caller_of
from sessions_app.schemas import Wire, refusals
from sessions_app.threads import in_thread

router = Router(tags=["permissions"], by_alias=True)

ONE = "/permissions/{uuid:request_id}"
OF_SESSION = "/chat/{uuid:session_id}"
REFUSED = refusals(401, 403, 404, 409, 422)


class PreviewQuery(Wire):
    pattern: Pattern = ""


@router.get("/permissions", response={200: Pending, **refusals(401, 403)}, summary="All that you may decide")
async def list_permissions(request: HttpRequest) -> Any:
    return await in_thread(_pending)(caller_of(request))


def _pending(caller: Caller) -> Pending:
    approvals = [each for each in reading.pending(caller) if each.kind == RequestKind.APPROVAL]
    return Pending.model_construct(pending=[PermissionRequest.of(each) for each in approvals])


@router.post(
    f"{ONE}/grant",
    response={200: Decided, **REFUSED},
    summary="Allow it",
    description="Exactly this call, once. With a pattern, or one of the suggested scopes, the session may do "
    "from now on what that covers. One that has run out can be allowed for another day: the agent is told.",
)
async def grant_permission(
    request: HttpRequest, request_id: UUID, order: Body[GrantOrder | None] = None
) -> Any:
    pattern, scope = (order.pattern, order.scope) if order else (None, None)
    granted = await in_thread(services.grant)(caller_of(request), request_id, pattern=pattern, scope=scope)
    return Decided(id=granted.pk, decision=granted.status)


@router.post(f"{ONE}/deny", response={200: Decided, **REFUSED}, summary="Do not allow it")
async def deny_permission(
    request: HttpRequest, request_id: UUID, order: Body[DenyOrder | None] = None
) -> Any:
    reason = order.reason if order else ""
    denied = await in_thread(services.deny)(caller_of(request), request_id, reason=reason)
    return Decided(id=denied.pk, decision=denied.status)


@router.post(
    f"{ONE}/open",
    response={200: Card, **refusals(401, 403, 404)},
    summary="Say that its card is open",
    description="Its clock stands for a minute from now, and for half an hour at most. Say it again. "
    "One that is decided already is told as it is.",
)
async def open_card(request: HttpRequest, request_id: UUID) -> Any:
    return await in_thread(services.open_card)(caller_of(request), request_id)


@router.post(
    f"{ONE}/close", response={200: Card, **refusals(401, 403, 404)}, summary="Say that its card is closed"
)
async def close_card(request: HttpRequest, request_id: UUID) -> Any:
    return await in_thread(services.close_card)(caller_of(request), request_id)


@router.get(
    f"{ONE}/preview",
    response={200: PreviewOut, **refusals(401, 403, 404, 422)},
    summary="What a pattern would have covered in the last 30 days",
)
async def preview_permission(request: HttpRequest, request_id: UUID, query: Query[PreviewQuery]) -> Any:
    shown = await in_thread(reading.previewed)(caller_of(request), request_id, query.pattern)
    return PreviewOut(
        covered=[reading.in_short(call) for call in shown.covered],
        not_covered=[reading.in_short(call) for call in shown.not_covered],
        deny_listed=[reading.in_short(call) for call in shown.deny_listed],
    )


@router.get(
    f"{OF_SESSION}/permissions",
    response={200: PermissionsOfSession, **refusals(401, 403, 404)},
    summary="What a session is allowed, and what it asks",
)
async def session_permissions(request: HttpRequest, session_id: UUID) -> Any:
    return await in_thread(_of_session)(caller_of(request), session_id)


def _of_session(caller: Caller, session_id: UUID) -> PermissionsOfSession:
    permissions, waiting = reading.of_session(caller, session_id)
    asked = [PermissionRequest.of(each) for each in waiting.approvals]
    return PermissionsOfSession.model_construct(pending=asked, permissions=permissions)


@router.post(
    f"{OF_SESSION}/permissions/grant", response={200: Decided, **REFUSED}, summary="Allow it, in this session"
)
async def grant_in_session(request: HttpRequest, session_id: UUID, order: SessionGrantOrder) -> Any:
    granted = await in_thread(services.grant)(
        caller_of(request),
        order.request_id,
        pattern=order.pattern,
        scope=order.scope,
        session_id=session_id,
    )
    return Decided(id=granted.pk, decision=granted.status)


@router.post(
    f"{OF_SESSION}/permissions/deny",
    response={200: Decided, **REFUSED},
    summary="Do not allow it, in this session",
)
async def deny_in_session(request: HttpRequest, session_id: UUID, order: SessionDenyOrder) -> Any:
    denied = await in_thread(services.deny)(
        caller_of(request), order.request_id, reason=order.reason, session_id=session_id
    )
    return Decided(id=denied.pk, decision=denied.status)


@router.get(
    f"{OF_SESSION}/pending-questions",
    response={200: PendingQuestions, **refusals(401, 403, 404)},
    summary="What its agent asks",
)
async def pending_questions(request: HttpRequest, session_id: UUID) -> Any:
    return await in_thread(_questions)(caller_of(request), session_id)


def _questions(caller: Caller, session_id: UUID) -> PendingQuestions:
    _, waiting = reading.of_session(caller, session_id)
    return PendingQuestions.model_construct(pending=[PendingQuestion.of(each) for each in waiting.questions])


@router.post(
    f"{OF_SESSION}/answer", response={200: Answered, **REFUSED}, summary="Answer what its agent asks"
)
async def answer_question(request: HttpRequest, session_id: UUID, order: AnswerOrder) -> Any:
    answered = await in_thread(services.answer)(
        caller_of(request), order.request_id, order.answers, session_id=session_id
    )
    return Answered(request_id=answered.pk, answers=answered.answers)

"""Speaking to agents. One path has one router in ninja, and `/chat` lists as well as takes messages: so these
operations join those of `sessions_app`."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Body, Status

from agents_app import answers
from agents_app.prompts import api as prompts
from agents_app.rights import acting, changing
from agents_app.schemas import (
    AbortOut,
    AbortRequest,
    Accepted,
    ActiveStreams,
    ChatRequest,
    InjectOut,
    InjectRequest,
    StreamingStatus,
    TrustModeOrder,
    idempotency_key,
)
from agents_app.turns import reading
from agents_app.turns.said.abort import abort
from agents_app.turns.said.deleting import delete
from agents_app.turns.said.opening import Opened, open_turn
from agents_app.turns.said.steering import inject
from sessions_app.access.caller import Caller
from sessions_app.api import caller_of, router
from sessions_app.schemas import SessionChange, SessionOut, refusals
from sessions_app.threads import in_thread

__all__ = ["prompts", "router"]

REFUSED = refusals(401, 403, 404, 409, 413, 422, 429, 503)
STREAMS = {"responses": {200: {"content": {"text/event-stream": {"example": answers.EXAMPLE}}}}}


@router.post(
    "/chat",
    response={200: dict[str, Any], 202: Accepted, **REFUSED, **refusals(500, 502, 504)},
    openapi_extra=STREAMS,
    summary="Say something to an agent",
    description=(
        "Answers as server-sent events: those of this turn and no other, ending with a terminal one. With "
        "`Accept: application/json` it waits and answers with the `done` payload, or with the error that "
        "ended the turn. With `Prefer: respond-async` it answers 202 at once. With an `Idempotency-Key` the "
        "same request within 24 hours returns the same turn."
    ),
)
async def chat(request: HttpRequest, order: ChatRequest) -> Any:
    opened = await _open(request, order)
    if "respond-async" in request.headers.get("Prefer", "").lower():
        return Status(202, opened)
    if _wants_json(request):
        return await answers.whole(request, opened)
    return answers.streamed(request, opened)


@router.post(
    "/chat/stream",
    response={200: dict[str, Any], **REFUSED},
    openapi_extra=STREAMS,
    summary="The same, always streamed",
)
async def chat_stream(request: HttpRequest, order: ChatRequest) -> StreamingHttpResponse:
    return answers.streamed(request, await _open(request, order))


@router.get(
    "/chat/active-streams", response={200: ActiveStreams, **refusals(401, 403)}, summary="What runs now"
)
async def active_streams(request: HttpRequest) -> Any:
    streams = await in_thread(reading.active_streams)(caller_of(request))
    return {"streams": streams, "count": len(streams)}


@router.get(
    "/chat/{uuid:session_id}/streaming-status",
    response={200: StreamingStatus, **refusals(401, 403, 404)},
    summary="What a session does now",
)
async def streaming_status(request: HttpRequest, session_id: UUID) -> Any:
    return await in_thread(reading.streaming_status)(caller_of(request), session_id)


@router.post(
    "/chat/{uuid:session_id}/abort",
    response={200: AbortOut, **refusals(401, 403, 404, 422)},
    summary="Stop a turn that runs or waits",
)
async def abort_turn(request: HttpRequest, session_id: UUID, order: Body[AbortRequest | None] = None) -> Any:
    turn = await in_thread(abort)(caller_of(request), session_id, order.turn_id if order else None)
    return {"success": True, "session_id": session_id, "turn_id": turn.pk}


@router.post(
    "/chat/{uuid:session_id}/inject",
    response={202: InjectOut, **REFUSED},
    summary="Say more to the turn that runs",
    description=(
        "The agent reads it with the answer of the tool that runs, or answers it after what it says now. "
        "Where no turn runs it is a message like any other, and its turn waits."
    ),
)
async def inject_message(request: HttpRequest, session_id: UUID, order: InjectRequest) -> Any:
    turn_id, state = await in_thread(inject)(caller_of(request), session_id, order.message)
    return Status(202, {"turn_id": turn_id, "state": state})


@router.patch(
    "/chat/{uuid:session_id}",
    response={200: SessionOut, **refusals(401, 403, 404, 422, 503)},
    summary="Change a session",
    description=(
        "Only what is given changes. A model or a trust level counts from the next turn: one that runs goes "
        "on with what it began with. Followers hear a `session_updated` with the fields that changed."
    ),
)
async def change_session(request: HttpRequest, session_id: UUID, order: SessionChange) -> Any:
    return await in_thread(_changed)(caller_of(request), session_id, order)


def _changed(caller: Caller, session_id: UUID, order: SessionChange) -> SessionOut:
    return SessionOut.of(changing.change(caller, session_id, order))


@router.post(
    "/chat/{uuid:session_id}/permissions/trust-mode",
    response={200: SessionOut, **refusals(401, 403, 404, 422)},
    summary="Let it act without asking",
    description=(
        "Again, after it was taken away. Where no wall stands around the session it is off until an operator "
        "gives it. It counts from the next call of a tool on. `PATCH` takes it away."
    ),
)
async def let_act(request: HttpRequest, session_id: UUID, order: TrustModeOrder) -> Any:
    return await in_thread(_let_act)(caller_of(request), session_id)


def _let_act(caller: Caller, session_id: UUID) -> SessionOut:
    return SessionOut.of(acting.let_act(caller, session_id))


@router.delete(
    "/chat/{uuid:session_id}",
    response={204: None, **refusals(401, 403, 404, 409)},
    summary="Delete a session for good",
    description=(
        "With all that was said in it, its transcript, and the copy of that in the vault. What runs in it is "
        "stopped. Sessions that it started go on without a parent."
    ),
)
async def delete_session(request: HttpRequest, session_id: UUID) -> Any:
    await in_thread(delete)(caller_of(request), session_id)
    return Status(204, None)


async def _open(request: HttpRequest, order: ChatRequest) -> Opened:
    key = idempotency_key(request.headers.get("Idempotency-Key", ""))
    opening = await in_thread(order.as_opening)()
    return await in_thread(open_turn)(caller_of(request), opening, key=key)


def _wants_json(request: HttpRequest) -> bool:
    accepted = request.headers.get("Accept", "").lower()
    return "application/json" in accepted and "text/event-stream" not in accepted

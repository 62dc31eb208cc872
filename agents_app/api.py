from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any
from uuid import UUID

from django.http import HttpRequest, JsonResponse, StreamingHttpResponse
from ninja import Body, Router

from agents_app.errors import KINDS
from agents_app.schemas import (
    AbortOut,
    AbortRequest,
    Accepted,
    ActiveStreams,
    ChatRequest,
    StreamingStatus,
)
from agents_app.turns import reading
from agents_app.turns.abort import abort
from agents_app.turns.opening import Opened, open_turn
from sessions_app.api import caller_of
from sessions_app.errors import Invalid
from sessions_app.models.event import TERMINAL, EventType
from sessions_app.schemas import ErrorOut
from sessions_app.sse import HEADERS, as_sse
from sessions_app.stream import follow_turn
from sessions_app.threads import in_thread

router = Router(tags=["chat"], by_alias=True)

LONGEST_KEY = 255
REFUSALS = dict.fromkeys((401, 403, 404, 409, 413, 422, 429, 503), ErrorOut)


@router.post(
    "/chat",
    response={200: dict[str, Any], 202: Accepted, **REFUSALS},
    summary="Say something to an agent",
    description=(
        "Answers as server-sent events: those of this turn and no other, ending with a terminal one. With "
        "`Accept: application/json` it waits and answers with the `done` payload, or with the error that "
        "ended the turn. With `Prefer: respond-async` it answers 202 at once. With an `Idempotency-Key` the "
        "same request within 24 hours returns the same turn."
    ),
)
async def chat(request: HttpRequest, order: ChatRequest) -> Any:
    opened = await in_thread(open_turn)(caller_of(request), order.as_opening(), key=_key(request))
    if "respond-async" in request.headers.get("Prefer", ""):
        return 202, opened
    if _wants_json(request):
        return await _answer(opened)
    return _streamed(opened)


@router.post("/chat/stream", response={200: dict[str, Any], **REFUSALS}, summary="The same, always streamed")
async def chat_stream(request: HttpRequest, order: ChatRequest) -> StreamingHttpResponse:
    return _streamed(await in_thread(open_turn)(caller_of(request), order.as_opening(), key=_key(request)))


@router.get("/chat/active-streams", response={200: ActiveStreams, 401: ErrorOut}, summary="What runs now")
async def active_streams(request: HttpRequest) -> Any:
    streams = await in_thread(reading.active_streams)(caller_of(request))
    return {"streams": streams, "count": len(streams)}


@router.get(
    "/chat/{uuid:session_id}/streaming-status",
    response={200: StreamingStatus, 401: ErrorOut, 404: ErrorOut},
    summary="What a session does now",
)
async def streaming_status(request: HttpRequest, session_id: UUID) -> Any:
    return await in_thread(reading.streaming_status)(caller_of(request), session_id)


@router.post(
    "/chat/{uuid:session_id}/abort",
    response={200: AbortOut, **REFUSALS},
    summary="Stop a turn that runs or waits",
)
async def abort_turn(request: HttpRequest, session_id: UUID, order: Body[AbortRequest | None] = None) -> Any:
    turn = await in_thread(abort)(caller_of(request), session_id, order.turn_id if order else None)
    return {"success": True, "session_id": session_id, "turn_id": turn.pk}


def _streamed(opened: Opened) -> StreamingHttpResponse:
    response = StreamingHttpResponse(_frames(opened))
    for name, value in HEADERS.items():
        response[name] = value
    return response


async def _frames(opened: Opened) -> AsyncIterator[bytes]:
    async with aclosing(_turn(opened)) as frames:
        async for frame in frames:
            yield as_sse(frame)


async def _answer(opened: Opened) -> JsonResponse:
    async with aclosing(_turn(opened)) as frames:
        async for frame in frames:
            if frame is not None and frame["type"] in TERMINAL:
                return _as_answer(frame)
    raise AssertionError("a turn's stream ends with a terminal event")


def _turn(opened: Opened) -> Any:
    return follow_turn(opened.session_id, opened.turn_id, opened.seq - 2)


def _as_answer(frame: dict[str, Any]) -> JsonResponse:
    match frame["type"]:
        case EventType.DONE:
            return JsonResponse(frame)
        case EventType.ABORTED:
            return _refused("aborted", "The turn was stopped.", 409, frame)
        case EventType.TYPED_ERROR:
            return _refused(frame["code"], frame["message"], KINDS[frame["code"]].status, frame)
        case _:
            return _refused("internal", frame["error"], 500, frame)


def _refused(code: str, message: str, status: int, details: dict[str, Any]) -> JsonResponse:
    return JsonResponse({"error": {"code": code, "message": message, "details": details}}, status=status)


def _wants_json(request: HttpRequest) -> bool:
    accepted = request.headers.get("Accept", "")
    return "application/json" in accepted and "text/event-stream" not in accepted


def _key(request: HttpRequest) -> str:
    key = request.headers.get("Idempotency-Key", "")
    if len(key) > LONGEST_KEY:
        raise Invalid.field("Idempotency-Key", f"At most {LONGEST_KEY} characters are taken.")
    return key

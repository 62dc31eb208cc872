"""The answer to a message in its own request: the events of its turn, streamed, or their end as JSON."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from django.http import HttpRequest, JsonResponse, StreamingHttpResponse

from agents_app.errors import KINDS
from agents_app.turns.said.opening import Opened
from sessions_app.access.models import KeyScope
from sessions_app.errors import ParachuteError
from sessions_app.models.event import TERMINAL, EventType
from sessions_app.streaming.sse import HEADERS, OPENING, as_sse
from sessions_app.streaming.stream import Frame, follow_turn
from sessions_app.streaming.watch import Watch

log = logging.getLogger(__name__)

EXAMPLE = 'id: 2\nevent: user_message\ndata: {"type":"user_message","seq":2,"content":"Hello", …}\n\n'


def streamed(request: HttpRequest, opened: Opened) -> StreamingHttpResponse:
    response = StreamingHttpResponse(_frames(request, opened))
    for name, value in HEADERS.items():
        response[name] = value
    return response


async def whole(request: HttpRequest, opened: Opened) -> JsonResponse:
    async with aclosing(_watched(request, opened)) as frames:
        async for frame in frames:
            if frame is not None and frame["type"] in TERMINAL:
                return _as_answer(frame)
    raise AssertionError("a turn's stream ends with a terminal event")


async def _frames(request: HttpRequest, opened: Opened) -> AsyncGenerator[bytes]:
    yield OPENING
    try:
        async with aclosing(_watched(request, opened)) as frames:
            async for frame in frames:
                yield as_sse(frame)
    except ParachuteError as error:  # the answer has begun: all that is left is to end it
        log.info("A stream of %s ends: %s", opened.session_id, error)


async def _watched(request: HttpRequest, opened: Opened) -> AsyncGenerator[Frame]:
    """The turn's events, from its `session` row on, for as long as the caller may have them."""
    looking = Watch(request.find_caller, opened.session_id, KeyScope.CHAT)  # type: ignore[attr-defined]
    async with aclosing(
        follow_turn(opened.session_id, opened.turn_id, opened.seq - 2, looking.look)
    ) as frames:
        async for frame in frames:
            await looking.check()
            yield frame


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

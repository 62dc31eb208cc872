"""The HTTP side: `POST /v1/messages`, streamed or not, `count_tokens`, and the list of models."""

import json
import re
from collections.abc import Callable
from typing import Any

from aiohttp import web

from agents_app.model.demo import conversation, wire
from agents_app.model.demo.conversation import Asked
from agents_app.model.demo.wire import Failure, Reply

Brain = Callable[[Asked], Reply | Failure]

_MALFORMED = Failure(400, "invalid_request_error", "The body must be a JSON object with a list of messages.")


def runner(brain: Brain) -> web.AppRunner:
    """`application`, ready for a site. An answer ends at once when its reader leaves or the server ends."""
    return web.AppRunner(
        application(brain),
        access_log=None,
        handler_cancellation=True,
        shutdown_timeout=0.1,  # 0 would wait without limit
    )


def application(brain: Brain) -> web.Application:
    """An aiohttp application that answers every request with what `brain` says to it."""

    async def messages(request: web.Request) -> web.StreamResponse:
        body = await _body(request)
        if body is None:
            return _refusal(_MALFORMED)
        answer = brain(conversation.read(body, request.headers))
        if isinstance(answer, Failure):
            return _refusal(answer)
        usage = {"input_tokens": count(body), "output_tokens": count(answer.content)}
        try:
            if body.get("stream"):
                return await _stream(request, answer, usage)
            return await _at_once(answer, usage)
        except wire.CutOff:
            return _hang_up(request)

    async def count_tokens(request: web.Request) -> web.Response:
        body = await _body(request)
        return _refusal(_MALFORMED) if body is None else web.json_response({"input_tokens": count(body)})

    async def models(request: web.Request) -> web.Response:
        """Any key is good here; whoever checks one before it is kept asks this."""
        return web.json_response({"data": [{"type": "model", "id": wire.MODEL}]})

    app = web.Application(client_max_size=64 << 20)
    app.router.add_get("/v1/models", models)
    app.router.add_post("/v1/messages", messages)
    app.router.add_post("/v1/messages/count_tokens", count_tokens)
    return app


def count(value: object) -> int:
    """About four characters a token, which is near enough for a model that bills nobody."""
    return len(re.sub(r"\s+", " ", json.dumps(value))) // 4


async def _body(request: web.Request) -> dict[str, Any] | None:
    try:
        body = await request.json()
    except ValueError:
        return None
    return body if isinstance(body, dict) and isinstance(body.get("messages"), list) else None


def _refusal(failure: Failure) -> web.Response:
    return web.json_response(wire.error_body(failure), status=failure.status, headers=failure.headers)


async def _stream(request: web.Request, reply: Reply, usage: dict[str, int]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    try:
        async for event in wire.as_events(reply, usage):
            await response.write(event)
    except ConnectionError:
        pass  # The reader left; nobody is there to be told.
    return response


async def _at_once(reply: Reply, usage: dict[str, int]) -> web.Response:
    """The same reply in one piece, after the time that the stream would have taken."""
    async for _ in wire.as_events(reply, usage):
        pass
    return web.json_response(wire.as_message(reply, usage))


def _hang_up(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()

"""The door between an agent and the model: what it lets through, and what it never lets out."""

import asyncio
import gzip
import logging
import stat
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from agents_app.model import door as door_module
from agents_app.model.door import Door, Pass
from agents_app.model.endpoint import ModelEndpoint

KEY = "sk-ant-the-real-key"
TURN = "turn-1"
PATIENCE = 10

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@pytest.fixture
async def folder() -> AsyncIterator[Path]:
    """A short one: the path of a unix socket ends at 107 bytes."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


class Model:
    """An upstream that keeps what it was asked and answers with what it was told to."""

    def __init__(self) -> None:
        self.requests: list[tuple[web.BaseRequest, bytes]] = []
        self.answer: Handler = self._greet

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append((request, await request.read()))
        return await self.answer(request)

    async def _greet(self, request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"hello": "there"})

    @property
    def last(self) -> web.BaseRequest:
        return self.requests[-1][0]


@asynccontextmanager
async def serving(model: Model, socket: Path | None = None) -> AsyncIterator[ModelEndpoint]:
    server = web.Server(model.handle, handler_cancellation=True, access_log=None)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    site = web.UnixSite(runner, str(socket)) if socket else web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = "" if socket else runner.addresses[0][1]
    url = "http://model.invalid" if socket else f"http://127.0.0.1:{port}"
    try:
        yield ModelEndpoint(url, ("x-api-key", KEY), socket)
    finally:
        await runner.cleanup()


@asynccontextmanager
async def opened(folder: Path, upstream: ModelEndpoint, **limits: float) -> AsyncIterator[Door]:
    door = Door(folder / "door.sock", upstream, **limits)
    await door.open()
    try:
        yield door
    finally:
        await door.close()


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
async def upstream(model: Model) -> AsyncIterator[ModelEndpoint]:
    async with serving(model) as address:
        yield address


@pytest.fixture
async def door(folder: Path, upstream: ModelEndpoint) -> AsyncIterator[Door]:
    async with opened(folder, upstream) as door:
        yield door


@pytest.fixture
def ada(door: Door) -> Pass:
    """The pass of a process that is in a turn."""
    issued = door.issue()
    issued.turn = TURN
    return issued


@asynccontextmanager
async def asking(
    door: Door, token: str, path: str = "/v1/messages", method: str = "POST", **more: Any
) -> AsyncIterator[aiohttp.ClientResponse]:
    headers = {"x-api-key": token, **more.pop("headers", {})}
    more.setdefault("data", b"{}")
    connector = aiohttp.UnixConnector(path=str(door.socket))
    async with (
        aiohttp.ClientSession(connector=connector, auto_decompress=False) as client,
        client.request(method, f"http://door.invalid{path}", headers=headers, **more) as answer,
    ):
        yield answer


async def refusal(answer: aiohttp.ClientResponse) -> tuple[int, str]:
    body = await answer.json()
    assert body["type"] == "error"
    assert body["error"]["message"]
    return answer.status, body["error"]["type"]


async def test_the_model_gets_the_key_and_never_the_token(door: Door, ada: Pass, model: Model) -> None:
    headers = {"anthropic-beta": "one,two", "cookie": "a=b", "connection": "x-secret", "x-secret": "1"}
    async with asking(door, ada.token, "/v1/messages?beta=true", data=b'{"a": 1}', headers=headers) as answer:
        assert await answer.json() == {"hello": "there"}
    request, body = model.requests[0]
    assert (request.raw_path, body) == ("/v1/messages?beta=true", b'{"a": 1}')
    assert request.headers.getall("x-api-key") == [KEY]
    assert request.headers["anthropic-beta"] == "one,two"
    assert not {"cookie", "x-secret", "authorization"} & {name.lower() for name in request.headers}
    assert ada.token not in str(request.headers)


async def test_a_token_may_come_as_bearer_and_a_key_may_go_as_one(
    folder: Path, model: Model, upstream: ModelEndpoint
) -> None:
    async with opened(folder, replace(upstream, header=("authorization", f"Bearer {KEY}"))) as door:
        issued = door.issue()
        issued.turn = TURN
        async with asking(door, "", headers={"Authorization": f"Bearer {issued.token}"}) as answer:
            assert answer.status == 200
    assert model.last.headers["authorization"] == f"Bearer {KEY}"
    assert "x-api-key" not in model.last.headers


async def test_a_base_path_and_a_socket_lead_to_the_model_too(folder: Path, model: Model) -> None:
    upstream = ModelEndpoint("http://model.invalid/proxy/", None, folder / "model.sock")
    async with serving(model, upstream.socket), opened(folder, upstream) as door:
        issued = door.issue()
        issued.turn = TURN
        async with asking(door, issued.token, "/v1/messages/count_tokens") as answer:
            assert answer.status == 200
    assert model.last.path == "/proxy/v1/messages/count_tokens"
    assert "x-api-key" not in model.last.headers


async def test_it_can_lead_elsewhere_and_what_is_being_answered_is_answered(
    door: Door, ada: Pass, model: Model
) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(request: web.BaseRequest) -> web.StreamResponse:
        asked.set()
        await asyncio.wait_for(go_on.wait(), PATIENCE)
        return web.json_response({"from": "the old one"})

    async def answer_of(door: Door) -> Any:
        async with asking(door, ada.token) as answer:
            return await answer.json()

    model.answer = slowly
    async with serving(other := Model()) as elsewhere:
        begun = asyncio.create_task(answer_of(door))
        await asyncio.wait_for(asked.wait(), PATIENCE)
        left = door._connections
        await door.lead_to(replace(elsewhere, header=("authorization", "Bearer another")))
        assert await answer_of(door) == {"hello": "there"}
        assert other.last.headers["authorization"] == "Bearer another"
        assert not left._client.closed
        go_on.set()
        assert await begun == {"from": "the old one"}
    assert left._client.closed


async def test_to_the_same_model_nothing_is_opened_anew(door: Door, upstream: ModelEndpoint) -> None:
    way = door._connections
    await door.lead_to(replace(upstream))
    assert door._connections is way


async def test_a_model_that_cannot_be_asked_is_not_and_why_is_said(
    door: Door, ada: Pass, upstream: ModelEndpoint, model: Model
) -> None:
    await door.lead_to(replace(upstream, problem="Enter the key again."))
    async with asking(door, ada.token) as answer:
        assert answer.headers["x-should-retry"] == "false"
        assert (await answer.json())["error"]["message"] == "Enter the key again."
        assert answer.status == 401
    assert ada.trouble
    assert ada.trouble.without_key
    assert model.requests == []


async def test_the_token_of_a_subscription_comes_with_what_it_needs(
    door: Door, ada: Pass, upstream: ModelEndpoint, model: Model
) -> None:
    await door.lead_to(replace(upstream, beta="oauth-1"))
    async with asking(door, ada.token, headers={"anthropic-beta": "tools-1,tools-2"}):
        assert model.last.headers.getall("anthropic-beta") == ["tools-1,tools-2,oauth-1"]


async def test_each_piece_passes_when_it_comes(door: Door, ada: Pass, model: Model) -> None:
    first_was_read = asyncio.Event()

    async def in_two_pieces(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: 1\n\n")
        await asyncio.wait_for(first_was_read.wait(), PATIENCE)
        await response.write(b"data: 2\n\n")
        return response

    model.answer = in_two_pieces
    async with asking(door, ada.token) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        assert await asyncio.wait_for(answer.content.readany(), PATIENCE) == b"data: 1\n\n"
        first_was_read.set()
        assert await answer.read() == b"data: 2\n\n"


async def test_a_request_streams_too(door: Door, ada: Pass, model: Model) -> None:
    async def in_pieces() -> AsyncIterator[bytes]:
        for _ in range(8):
            yield b"x" * 100_000

    async with asking(door, ada.token, data=in_pieces()) as answer:
        assert answer.status == 200
    assert len(model.requests[0][1]) == 800_000


async def test_an_error_of_the_model_passes_as_it_is(door: Door, ada: Pass, model: Model) -> None:
    async def overloaded(request: web.BaseRequest) -> web.StreamResponse:
        headers = {"retry-after": "7", "request-id": "req_1", "set-cookie": "a=b"}
        return web.json_response({"type": "error"}, status=529, headers=headers)

    model.answer = overloaded
    async with asking(door, ada.token) as answer:
        assert (answer.status, await answer.json()) == (529, {"type": "error"})
        assert (answer.headers["retry-after"], answer.headers["request-id"]) == ("7", "req_1")
        assert "set-cookie" not in answer.headers


async def test_a_compressed_answer_is_not_touched(door: Door, ada: Pass, model: Model) -> None:
    packed = gzip.compress(b'{"hello": 1}')

    async def compressed(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=packed, headers={"Content-Encoding": "gzip"})

    model.answer = compressed
    async with asking(door, ada.token) as answer:
        assert (answer.headers["content-encoding"], await answer.read()) == ("gzip", packed)


async def test_an_unknown_or_revoked_token_opens_nothing(door: Door, ada: Pass, model: Model) -> None:
    async with asking(door, ada.token[:-1]) as answer:
        assert await refusal(answer) == (401, "authentication_error")
    ada.revoke()
    async with asking(door, ada.token) as answer:
        assert await refusal(answer) == (401, "authentication_error")
    assert model.requests == []


async def test_between_turns_the_door_is_shut(door: Door, ada: Pass, model: Model) -> None:
    ada.turn = None
    async with asking(door, ada.token) as answer:
        assert await refusal(answer) == (403, "permission_error")
    assert model.requests == []


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/messages"), ("POST", "/v1/files"), ("POST", "/v1/messages/../files"), ("GET", "/")],
)
async def test_the_door_leads_to_messages_only(
    door: Door, ada: Pass, model: Model, method: str, path: str
) -> None:
    async with asking(door, ada.token, path, method) as answer:
        assert await refusal(answer) == (404, "not_found_error")
    assert model.requests == []


@pytest.mark.parametrize("target", ["http://evil.invalid/v1/messages", "evil.invalid://x/v1/messages"])
async def test_the_target_of_a_request_cannot_name_another_host(
    door: Door, ada: Pass, model: Model, target: str
) -> None:
    reader, writer = await asyncio.open_unix_connection(door.socket)
    head = f"POST {target} HTTP/1.1\r\nHost: x\r\nx-api-key: {ada.token}\r\nContent-Length: 2\r\n\r\n"
    writer.write(head.encode() + b"{}")
    status = await asyncio.wait_for(reader.readline(), PATIENCE)
    writer.close()
    assert status.split()[1] in (b"200", b"400", b"404")
    assert all(request.raw_path == "/v1/messages" for request, _ in model.requests)


async def test_a_request_that_is_too_large_is_refused(
    door: Door, ada: Pass, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def in_pieces() -> AsyncIterator[bytes]:
        for _ in range(4):
            yield b"x" * 500_000

    monkeypatch.setattr(door_module, "LARGEST_BODY", 1 << 20)
    for body in (b"x" * 2_000_000, in_pieces()):
        async with asking(door, ada.token, data=body) as answer:
            assert await refusal(answer) == (413, "request_too_large")


async def test_a_redirect_is_not_followed(door: Door, ada: Pass, model: Model) -> None:
    async def elsewhere(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=303, headers={"Location": "/v1/messages"})

    model.answer = elsewhere
    async with asking(door, ada.token) as answer:
        assert await refusal(answer) == (502, "api_error")
    assert len(model.requests) == 1


async def test_an_unreachable_model_is_said_without_the_key(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    upstream = ModelEndpoint("http://127.0.0.1:1", ("x-api-key", KEY))
    async with opened(folder, upstream) as door:
        issued = door.issue()
        issued.turn = TURN
        async with asking(door, issued.token) as answer:
            assert await refusal(answer) == (502, "api_error")
            assert KEY not in await answer.text()
        assert issued.token not in repr(issued)
        assert KEY not in repr(upstream) + repr(door)
    assert caplog.records
    assert KEY not in caplog.text


async def test_an_agent_that_goes_away_ends_its_request(door: Door, ada: Pass, model: Model) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def without_end(request: web.BaseRequest) -> web.StreamResponse:
        started.set()
        try:
            return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]
        finally:
            ended.set()

    async def ask() -> None:
        async with asking(door, ada.token):
            pass

    model.answer = without_end
    agent = asyncio.create_task(ask())
    await asyncio.wait_for(started.wait(), PATIENCE)
    agent.cancel()
    await asyncio.wait_for(ended.wait(), PATIENCE)


async def test_an_answer_that_breaks_off_does_not_look_whole(door: Door, ada: Pass, model: Model) -> None:
    async def half(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"half")
        assert request.transport
        request.transport.close()
        return response

    model.answer = half
    async with asking(door, ada.token) as answer:
        with pytest.raises(aiohttp.ClientError):
            await asyncio.wait_for(answer.read(), PATIENCE)


async def without_end(request: web.BaseRequest) -> web.StreamResponse:
    return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]


def failing(status: int, **headers: str) -> Handler:
    async def fail(request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"type": "error", "said": KEY}, status=status, headers=headers)

    return fail


async def test_a_silent_model_is_waited_for_so_long(
    folder: Path, model: Model, upstream: ModelEndpoint
) -> None:
    model.answer = without_end
    async with opened(folder, upstream, silence=0.05) as door:
        issued = door.issue()
        issued.turn = TURN
        async with asking(door, issued.token) as answer:
            assert await refusal(answer) == (504, "timeout_error")
        assert issued.trouble
        assert issued.trouble.status == 504


async def test_one_that_falls_silent_breaks_off(folder: Path, model: Model, upstream: ModelEndpoint) -> None:
    async def half(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"half")
        return await without_end(request)

    model.answer = half
    async with opened(folder, upstream, silence=0.05) as door:
        issued = door.issue()
        issued.turn = TURN
        async with asking(door, issued.token) as answer:
            with pytest.raises(aiohttp.ClientError):
                await asyncio.wait_for(answer.read(), PATIENCE)


async def test_after_nothing_but_failures_the_model_is_not_asked_again_in_that_turn(
    folder: Path, model: Model, upstream: ModelEndpoint
) -> None:
    model.answer = failing(529)
    async with opened(folder, upstream, patience=0) as door:
        issued = door.issue()
        for issued.turn, expected in (("one", 1), ("one", 1), ("two", 2)):
            async with asking(door, issued.token) as answer:
                assert (answer.status, answer.headers["x-should-retry"]) == (529, "false")
            assert len(model.requests) == expected


async def test_an_answer_ends_the_trouble(door: Door, ada: Pass, model: Model) -> None:
    greet, model.answer = model.answer, failing(500)
    async with asking(door, ada.token):
        assert ada.trouble
    model.answer = greet
    async with asking(door, ada.token) as answer:
        await answer.read()
    assert ada.trouble is None


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("-1", 0.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("soon", None),
        ("", None),
    ],
)
async def test_when_to_come_back_is_remembered(
    door: Door, ada: Pass, model: Model, said: str, seconds: float | None
) -> None:
    model.answer = failing(429, **{"Retry-After": said})
    async with asking(door, ada.token) as answer:
        assert "x-should-retry" not in answer.headers
    assert ada.trouble
    assert ada.trouble.retry_after == seconds


async def test_a_wait_that_is_too_long_is_not_begun(door: Door, ada: Pass, model: Model) -> None:
    model.answer = failing(429, **{"Retry-After": "3600"})
    async with asking(door, ada.token) as answer:
        assert answer.headers["x-should-retry"] == "false"


async def test_a_key_that_is_repeated_in_an_error_is_hidden(door: Door, ada: Pass, model: Model) -> None:
    model.answer = failing(403)
    async with asking(door, ada.token) as answer:
        assert (await answer.json())["said"] == "*" * len(KEY)


async def test_the_socket_is_the_owners_alone_and_goes_with_the_door(
    folder: Path, upstream: ModelEndpoint
) -> None:
    left_by_a_killed_worker = folder / "door.sock"
    left_by_a_killed_worker.touch()
    async with opened(folder, upstream) as door:
        mode = door.socket.stat().st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o600
    assert not door.socket.exists()

"""The server as a client meets it: the whole ASGI application, with answers that really stream."""

import asyncio
import json as as_json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from parachute_site.asgi import application
from sessions_app.streaming.sse import OPENING

PATIENCE = 15.0
OPENS = OPENING.decode().strip()
Headers = dict[str, str]


@dataclass
class Answer:
    status: int
    headers: Headers
    body: bytes

    @property
    def json(self) -> Any:
        return as_json.loads(self.body)

    @property
    def code(self) -> str:
        """Of an error, whose shape is looked at as well."""
        error = self.json["error"]
        assert error.keys() <= {"code", "message", "details"}, error
        assert error["message"]
        assert self.headers["content-type"].startswith("application/json")
        return str(error["code"])

    @property
    def refused(self) -> tuple[int, str]:
        return self.status, self.code

    @property
    def fields(self) -> list[str]:
        return [each["field"] for each in self.json["error"]["details"]["fields"]]


@dataclass(frozen=True)
class Frame:
    """One server-sent event, or a comment."""

    type: str = ""
    id: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    comment: str = ""

    @classmethod
    def read(cls, text: str) -> "Frame":
        if text.startswith(":"):
            return cls(comment=text)
        lines = dict(line.split(": ", 1) for line in text.split("\n"))
        return cls(lines["event"], lines.get("id", ""), as_json.loads(lines["data"]))


class Exchange:
    """One connection to the application."""

    def __init__(self, scope: dict[str, Any]) -> None:
        self._sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._heard: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._task = asyncio.create_task(application(scope, self._sent.get, self._heard.put))

    async def send(self, message: dict[str, Any]) -> None:
        await self._sent.put(message)

    async def hear(self, within: float = PATIENCE) -> dict[str, Any]:
        hearing = asyncio.create_task(self._heard.get())
        async with asyncio.timeout(within):
            await asyncio.wait({hearing, self._task}, return_when=asyncio.FIRST_COMPLETED)
            if not hearing.done() and not self._heard.empty():
                await hearing
        if hearing.done():
            return hearing.result()
        hearing.cancel()
        self._task.result()
        raise AssertionError("the application ended and said nothing")

    async def end(self, disconnect: dict[str, Any]) -> None:
        """The application is told that we left, and then ends by itself."""
        await self._sent.put(disconnect)
        async with asyncio.timeout(PATIENCE):
            await self._task


class Stream:
    """A body in pieces. The comment that opens a stream of events is none of its frames."""

    def __init__(self, exchange: Exchange, status: int, headers: Headers) -> None:
        self._exchange = exchange
        self._rest = ""
        self.status = status
        self.headers = headers
        self.is_over = False

    async def next(self) -> Frame:
        text = await self._text()
        return Frame.read(await self._text() if text == OPENS else text)

    async def _text(self) -> str:
        while "\n\n" not in self._rest:
            assert not self.is_over, "the stream is over"
            await self._read()
        text, _, self._rest = self._rest.partition("\n\n")
        return text

    async def until(self, kind: str) -> list[Frame]:
        """All frames up to the first of this type."""
        frames = [await self.next()]
        while frames[-1].type != kind:
            frames.append(await self.next())
        return frames

    async def rest(self) -> list[Frame]:
        """All frames up to the end that the server makes."""
        while not self.is_over:
            await self._read()
        return [Frame.read(text) for text in self._rest.split("\n\n") if text not in ("", OPENS)]

    async def whole(self) -> bytes:
        """Whatever it is, to the end that the server makes."""
        content = bytearray()
        while not self.is_over:
            content += await self.piece()
        return bytes(content)

    async def piece(self) -> bytes:
        message = await self._exchange.hear()
        assert message["type"] == "http.response.body", message
        self.is_over = not message.get("more_body", False)
        body: bytes = message.get("body", b"")
        return body

    async def _read(self) -> None:
        self._rest += (await self.piece()).decode()


class Web:
    """Whose headers go with every request."""

    def __init__(self, headers: Headers | None = None) -> None:
        self.headers = headers or {}

    async def get(self, path: str, headers: Headers | None = None) -> Answer:
        return await self.ask("GET", path, headers=headers)

    async def post(
        self, path: str, json: Any = None, headers: Headers | None = None, body: bytes | None = None
    ) -> Answer:
        return await self.ask("POST", path, as_json.dumps(json).encode() if body is None else body, headers)

    async def patch(self, path: str, json: Any) -> Answer:
        return await self.ask("PATCH", path, as_json.dumps(json).encode())

    async def delete(self, path: str) -> Answer:
        return await self.ask("DELETE", path)

    async def share(self, session: str) -> None:
        """With everybody in its workspace."""
        answer = await self.patch(f"/api/chat/{session}", {"visibility": "workspace"})
        assert answer.status == 200, answer.body

    async def say(self, message: str, **more: Any) -> dict[str, Any]:
        """Posts it and does not wait for the answer."""
        answer = await self.post("/api/chat", {"message": message, **more}, {"prefer": "respond-async"})
        assert answer.status == 202, answer.body
        found: dict[str, Any] = answer.json
        return found

    async def ask(self, method: str, path: str, body: bytes = b"", headers: Headers | None = None) -> Answer:
        async with self.streaming(method, path, body, headers) as stream:
            content = await stream.whole()
        return Answer(stream.status, stream.headers, content)

    def exchange(self, method: str, path: str, headers: Headers | None = None) -> Exchange:
        return Exchange(self._scope("http", path, headers or {}) | {"method": method})

    @asynccontextmanager
    async def streaming(
        self, method: str, path: str, body: bytes = b"", headers: Headers | None = None
    ) -> AsyncIterator[Stream]:
        """Left, the client is gone."""
        kind = {"content-type": "application/json"} if body else {}
        exchange = self.exchange(method, path, {**kind, **(headers or {})})
        for start in range(0, max(len(body), 1), 1 << 20):
            piece = body[start : start + (1 << 20)]
            more = start + (1 << 20) < len(body)
            await exchange.send({"type": "http.request", "body": piece, "more_body": more})
        start_of_answer = await exchange.hear()
        answered = {k.decode().lower(): v.decode() for k, v in start_of_answer.get("headers", [])}
        try:
            yield Stream(exchange, start_of_answer["status"], answered)
        finally:
            await exchange.end({"type": "http.disconnect"})

    @asynccontextmanager
    async def socket(self, path: str = "/ws", headers: Headers | None = None) -> AsyncIterator["Socket"]:
        exchange = Exchange(self._scope("websocket", path, headers or {}))
        await exchange.send({"type": "websocket.connect"})
        try:
            yield Socket(exchange, (await exchange.hear())["type"] == "websocket.accept")
        finally:
            await exchange.end({"type": "websocket.disconnect", "code": 1001})

    def _scope(self, kind: str, path: str, headers: Headers) -> dict[str, Any]:
        where = urlsplit(path)
        together = {"host": "localhost", **self.headers, **headers}
        pairs = [(name.lower().encode(), value.encode("latin-1")) for name, value in together.items()]
        return {
            "type": kind,
            "path": unquote(where.path),
            "raw_path": where.path.encode(),
            "query_string": where.query.encode(),
            "headers": pairs,
            "scheme": "http",
            "http_version": "1.1",
            "root_path": "",
            "server": ("localhost", 80),
            "client": ("127.0.0.1", 5000),
            "subprotocols": [],
            "asgi": {"version": "3.0"},
        }


class Socket:
    def __init__(self, exchange: Exchange, accepted: bool) -> None:
        self._exchange = exchange
        self.accepted = accepted

    async def send(self, order: Any) -> None:
        await self.send_raw(text=as_json.dumps(order))

    async def send_raw(self, **frame: Any) -> None:
        await self._exchange.send({"type": "websocket.receive", **frame})

    async def next(self) -> dict[str, Any]:
        message = await self._exchange.hear()
        assert message["type"] == "websocket.send", message
        found: dict[str, Any] = as_json.loads(message["text"])
        return found

    async def until(self, kind: str) -> list[dict[str, Any]]:
        heard = [await self.next()]
        while heard[-1]["type"] != kind:
            heard.append(await self.next())
        return heard

    async def closed(self) -> int:
        """The code that it is closed with; whatever comes before is passed over."""
        while (message := await self._exchange.hear())["type"] != "websocket.close":
            assert message["type"] == "websocket.send", message
        return int(message["code"])

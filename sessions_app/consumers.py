"""What streams: a session's events as server-sent events, and over a WebSocket that follows several.

The middleware of `parachute_site` has put a `Caller` into the scope, or None. A stream that stays open looks
again once a minute whether that caller may still see the session.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from time import monotonic
from typing import Any, ClassVar
from urllib.parse import parse_qs
from uuid import UUID

from channels.consumer import AsyncConsumer
from channels.exceptions import StopConsumer

from sessions_app.access.caller import Caller
from sessions_app.access.models import Scope
from sessions_app.errors import Forbidden, Invalid, NotFound, ParachuteError, Unauthenticated
from sessions_app.models import Session
from sessions_app.sse import HEADERS, as_sse
from sessions_app.stream import follow
from sessions_app.threads import in_thread

log = logging.getLogger(__name__)

LOOKS_AGAIN_EVERY = 60.0  # seconds
MOST_FOLLOWED = 50  # sessions that one socket follows
NO_CHANNEL = "none"  # consumers of ours need no channel of the layer; the bus has one for the process

Message = dict[str, Any]


class Watch:
    """Whether a caller may still see a session, looked at once a minute."""

    def __init__(self, scope: Message, session_id: UUID) -> None:
        self._scope = scope
        self._session_id = session_id
        self._looked = monotonic()

    async def check(self) -> None:
        if monotonic() - self._looked >= LOOKS_AGAIN_EVERY:
            self._looked = monotonic()
            await may_follow(await self._scope["find_caller"](), self._session_id)


async def may_follow(caller: Caller | None, session_id: UUID) -> Session:
    if caller is None:
        raise Unauthenticated
    if not caller.may(Scope.READ):
        raise Forbidden("This key has no scope `read`.")
    session = await in_thread(Session.objects.visible_to(caller).filter(pk=session_id).first)()
    if session is None:
        raise NotFound
    return session  # type: ignore[no-any-return]


class EventStream(AsyncConsumer):
    """`GET /api/chat/{id}/events`. It overrides `http_request`, because a handler that runs would keep a
    disconnect from being heard."""

    channel_layer_alias: ClassVar[str] = NO_CHANNEL
    _streaming: asyncio.Task[None] | None = None

    async def http_request(self, message: Message) -> None:
        if self._streaming is None and not message.get("more_body"):
            self._streaming = asyncio.create_task(self._answer())

    async def http_disconnect(self, message: Message) -> None:
        if self._streaming is not None:
            self._streaming.cancel()
        raise StopConsumer

    async def _answer(self) -> None:
        try:
            if self.scope["method"] not in ("GET", "HEAD"):
                await self._refuse(405, {"error": {"code": "method_not_allowed", "message": "Use GET."}})
                return
            session_id = self.scope["url_route"]["kwargs"]["session_id"]
            after = _after(self.scope)
            await may_follow(self.scope["caller"], session_id)
        except ParachuteError as error:
            await self._refuse(error.status, error.as_json())
            return
        await self._stream(session_id, after)

    async def _stream(self, session_id: UUID, after: int) -> None:
        watch = Watch(self.scope, session_id)
        await self._start(200, HEADERS)
        try:
            async with aclosing(follow(session_id, after)) as frames:
                async for frame in frames:
                    await watch.check()
                    await self.send({"type": "http.response.body", "body": as_sse(frame), "more_body": True})
        except ParachuteError as error:
            log.info("A stream of %s ends: %s", session_id, error)
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _refuse(self, status: int, body: Message) -> None:
        await self._start(status, {"Content-Type": "application/json"})
        await self.send({"type": "http.response.body", "body": json.dumps(body).encode()})

    async def _start(self, status: int, headers: dict[str, str]) -> None:
        pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": pairs})


class FollowSocket(AsyncConsumer):
    """`/ws` follows what it is told to; `/ws/chat/{id}` follows one session from the start.

    `commands` maps the type of a message to what answers it; apps above add theirs in a subclass.
    """

    channel_layer_alias: ClassVar[str] = NO_CHANNEL

    def __init__(self) -> None:
        self._following: dict[UUID, asyncio.Task[None]] = {}
        self.commands: dict[str, Callable[[Message], Awaitable[None]]] = {
            "follow": self._follow,
            "unfollow": self._unfollow,
        }

    @property
    def session_id(self) -> UUID | None:
        """The one session of this socket, where its address names one."""
        found: UUID | None = self.scope["url_route"]["kwargs"].get("session_id")
        return found

    async def websocket_connect(self, message: Message) -> None:
        await self.send({"type": "websocket.accept"})
        if self.scope["caller"] is None:
            await self._close(4401)
        elif self.session_id is not None:
            try:
                await self._begin(self.session_id, _after(self.scope))
            except ParachuteError as error:
                await self._close(4000 + error.status)

    async def websocket_receive(self, message: Message) -> None:
        try:
            order = _order(message)
            command = self.commands.get(str(order.get("type")))
            if command is None:
                raise Invalid.field("type", f"Use one of: {', '.join(self.commands)}.")
            await command(order)
        except ParachuteError as error:
            await self.say({"type": "refused", **error.as_json()})

    async def websocket_disconnect(self, message: Message) -> None:
        for task in self._following.values():
            task.cancel()
        raise StopConsumer

    async def say(self, payload: Message) -> None:
        await self.send({"type": "websocket.send", "text": json.dumps(payload, separators=(",", ":"))})

    def session_of(self, order: Message) -> UUID:
        if self.session_id is not None:
            return self.session_id
        try:
            return UUID(str(order.get("sessionId")))
        except ValueError as error:
            raise NotFound from error

    async def _follow(self, order: Message) -> None:
        after = order.get("after", 0)
        if not isinstance(after, int) or after < 0:
            raise Invalid.field("after", "Give the `seq` of the last row that you have, or 0.")
        await self._begin(self.session_of(order), after)

    async def _begin(self, session_id: UUID, after: int) -> None:
        await may_follow(self.scope["caller"], session_id)
        if session_id not in self._following and len(self._following) >= MOST_FOLLOWED:
            raise Invalid.field("sessionId", f"One socket follows at most {MOST_FOLLOWED} sessions.")
        if known := self._following.pop(session_id, None):
            known.cancel()
        self._following[session_id] = asyncio.create_task(self._pass_on(session_id, after))

    async def _unfollow(self, order: Message) -> None:
        if known := self._following.pop(self.session_of(order), None):
            known.cancel()

    async def _pass_on(self, session_id: UUID, after: int) -> None:
        watch = Watch(self.scope, session_id)
        try:
            async with aclosing(follow(session_id, after)) as frames:
                async for frame in frames:
                    await watch.check()
                    await self.say(frame or {"type": "keep_alive", "sessionId": str(session_id)})
        except ParachuteError as error:
            await self._close(4000 + error.status)
        except Exception:
            log.exception("Following %s broke off", session_id)
            await self._close(1011)

    async def _close(self, code: int) -> None:
        await self.send({"type": "websocket.close", "code": code})


def _order(message: Message) -> Message:
    try:
        order = json.loads(message.get("text") or "")
    except ValueError as error:
        raise Invalid("This is no JSON.") from error
    if not isinstance(order, dict):
        raise Invalid("Send an object with a `type`.")
    return order


def _after(scope: Message) -> int:
    """`Last-Event-ID` wins over `?after`; with neither it is the start."""
    query = parse_qs(scope["query_string"].decode(errors="replace"))
    given = dict(scope.get("headers", ())).get(b"last-event-id", b"").decode(errors="replace")
    value = given or query.get("after", ["0"])[0]
    if not value.isascii() or not value.isdigit() or len(value) > 9:
        raise Invalid.field("after", "Give the `seq` of the last row that you have, or 0.")
    return int(value)

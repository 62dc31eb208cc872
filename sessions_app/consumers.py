"""What streams: a session's events as server-sent events, and over a WebSocket that follows several.

The middleware of `parachute_site` has put a `Caller` into the scope, or None, and `find_caller`, which looks
again.
"""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Any, ClassVar
from urllib.parse import parse_qs
from uuid import UUID

from channels.consumer import AsyncConsumer
from channels.exceptions import StopConsumer
from django.conf import settings
from django.utils.translation import gettext as _

from sessions_app import bounded_json
from sessions_app.access.caller import Caller
from sessions_app.access.models import KeyScope
from sessions_app.errors import Invalid, NotFound, ParachuteError, TooLarge
from sessions_app.incidents import incident
from sessions_app.reading import Page
from sessions_app.schemas import SessionOut
from sessions_app.streaming import watch
from sessions_app.streaming.flow import Send, patient
from sessions_app.streaming.listing import follow_list
from sessions_app.streaming.sse import HEADERS, OPENING, as_json, bodies
from sessions_app.streaming.stream import Look, follow, follow_in_parts
from sessions_app.streaming.watch import Watch

log = logging.getLogger(__name__)

MOST_FOLLOWED = 50  # sessions that one socket follows
LARGEST_SEQ = 10**9
NO_CHANNEL = "none"  # consumers of ours need no channel of the layer; the bus has one for the process

Message = dict[str, Any]
Feed = Callable[[Callable[[], Caller]], AsyncGenerator[Any]]  # asks who follows it before each read


class Streaming(AsyncConsumer):
    """A consumer whose work goes on beside its messages. When it ends, however it ends, so does its work."""

    channel_layer_alias: ClassVar[str] = NO_CHANNEL

    async def __call__(self, scope: Message, receive: Any, send: Send) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        try:
            await super().__call__(scope, receive, patient(send))
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._has_ended)
        return task

    def _has_ended(self, task: asyncio.Task[None]) -> None:
        """By itself, or because its reader was gone in that moment: then nobody waits for it any more."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.info("What was told to a reader broke off: %r", error)


class SentEvents(Streaming):
    """Server-sent events: `check` refuses before anything is said, `pass_on` says them. It overrides
    `http_request`, because a handler that runs would keep a disconnect from being heard."""

    async def check(self) -> None:
        raise NotImplementedError

    async def pass_on(self) -> None:
        raise NotImplementedError

    async def http_request(self, message: Message) -> None:
        if not message.get("more_body"):
            self.begin(self._answer())

    async def http_disconnect(self, message: Message) -> None:
        raise StopConsumer

    async def _answer(self) -> None:
        try:
            if self.scope["method"] not in ("GET", "HEAD"):
                raise MethodNotAllowed
            await self.check()
            await self._stream()
        except ParachuteError as error:
            await self._refuse(error)
        except Exception as error:  # noqa: BLE001 - `incident` logs it
            await self._refuse(incident(log, "An event stream", error))

    async def _stream(self) -> None:
        await self._start(200, HEADERS)
        if self.scope["method"] == "GET":
            try:
                await self.send_piece(OPENING)
                await self.pass_on()
            except ParachuteError as error:
                log.info("The stream %s ends: %s", self.scope["path"], error)
            except Exception:  # the answer has begun: its reader comes back with the last id that it saw
                log.exception("The stream %s broke off", self.scope["path"])
        await self.send({"type": "http.response.body", "body": b""})

    async def send_piece(self, body: bytes) -> None:
        await self.send({"type": "http.response.body", "body": body, "more_body": True})

    async def _refuse(self, error: ParachuteError) -> None:
        headers = {"Content-Type": "application/json"}
        if isinstance(error, MethodNotAllowed):
            headers["Allow"] = "GET, HEAD"
        await self._start(error.status, headers)
        await self.send({"type": "http.response.body", "body": json.dumps(error.as_json()).encode()})

    async def _start(self, status: int, headers: dict[str, str]) -> None:
        headers = {**headers, "X-Content-Type-Options": "nosniff"}
        pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": pairs})


class EventStream(SentEvents):
    """`GET /api/chat/{id}/events`."""

    @property
    def session_id(self) -> UUID:
        found: UUID = self.scope["url_route"]["kwargs"]["session_id"]
        return found

    async def check(self) -> None:
        await watch.check_visible(watch.may(self.scope["caller"], KeyScope.READ), self.session_id)
        _after(self.scope)

    async def pass_on(self) -> None:
        looking = Watch(self.scope["find_caller"], self.session_id)
        async with aclosing(follow_in_parts(self.session_id, _after(self.scope), looking.look)) as parts:
            async for part in parts:
                for body in bodies(part):
                    await looking.check()
                    await self.send_piece(body)


class MethodNotAllowed(ParachuteError):
    code, status = "method_not_allowed", 405

    def __init__(self) -> None:
        super().__init__(_("This path does not take that method."))


class FollowSocket(Streaming):
    """`/ws` follows what it is told to, sessions and the list of them; `/ws/chat/{id}` follows one session
    from the start.

    `commands` maps the type of a message to what answers it, `feeds` the name of what can be followed beside
    sessions to how that is done and said. Apps above add theirs in a subclass, and may say otherwise there.
    """

    def __init__(self) -> None:
        self._following: dict[UUID | str, asyncio.Task[None]] = {}  # sessions, and feeds by their name
        self._is_closed = False
        self.feeds: dict[str, tuple[Feed, Callable[[Any], Awaitable[None]]]] = {
            "list": (follow_list, self.say_list)
        }
        self.commands: dict[str, Callable[[Message], Awaitable[None]]] = {
            "follow": self.follow,
            "unfollow": self.unfollow,
        }

    @property
    def session_id(self) -> UUID | None:
        """The one session of this socket, where its address names one."""
        found: UUID | None = self.scope["url_route"]["kwargs"].get("session_id")
        return found

    async def websocket_connect(self, message: Message) -> None:
        await self.send({"type": "websocket.accept"})  # a code can only be told to an open socket
        try:
            self.caller_who_may(KeyScope.READ)
            if self.session_id is not None:
                await self._begin(self.session_id, _after(self.scope))
        except ParachuteError as error:
            await self.close(4000 + error.status)
        else:
            self.begin(self._look_again())

    async def websocket_receive(self, message: Message) -> None:
        if self._is_closed:
            return
        order: Message = {}
        try:
            order = _order(message)
            command = self.commands.get(str(order.get("type")))
            if command is None:
                raise Invalid.field(
                    "type", _("Use one of: %(commands)s.") % {"commands": ", ".join(self.commands)}
                )
            await command(order)
        except ParachuteError as error:
            await self._refuse(error, order.get("sessionId"))
        except Exception as error:  # noqa: BLE001 - `incident` logs it
            await self._refuse(incident(log, "A message of a socket", error), order.get("sessionId"))

    async def websocket_disconnect(self, message: Message) -> None:
        raise StopConsumer

    async def say(self, payload: Message) -> None:
        if not self._is_closed:
            await self.send({"type": "websocket.send", "text": as_json(payload)})

    async def say_list(self, page: Page) -> None:
        """The newest sessions, as they are now: at first, and each time that they changed."""
        sessions = [SessionOut.of(each).model_dump(by_alias=True) for each in page.sessions]
        await self.say({"type": "sessions", "sessions": sessions, "total": page.total})

    def caller_who_may(self, scope: KeyScope) -> Caller:
        return watch.may(self.scope["caller"], scope)

    def session_of(self, order: Message) -> UUID:
        if self.session_id is not None:
            return self.session_id
        try:
            return UUID(order["sessionId"])
        except (KeyError, AttributeError, TypeError, ValueError) as error:
            raise Invalid.field("sessionId", _("This is no session id.")) from error

    async def follow(self, order: Message) -> None:
        if feed := self._feed_of(order):
            self._stop_following(feed)
            self._following[feed] = self.begin(self._pass_on_feed(feed))
            return
        after = order.get("after", 0)
        if type(after) is not int or not 0 <= after < LARGEST_SEQ:
            raise _bad_after()
        await self._begin(self.session_of(order), after)

    async def _begin(self, session_id: UUID, after: int) -> None:
        await watch.check_visible(self.caller_who_may(KeyScope.READ), session_id)
        if session_id not in self._following and len(self._sessions()) >= MOST_FOLLOWED:
            raise Invalid.field(
                "sessionId",
                _("One socket follows at most %(most)s sessions.") % {"most": MOST_FOLLOWED},
            )
        self._stop_following(session_id)
        self._following[session_id] = self.begin(self._pass_on(session_id, after))

    async def unfollow(self, order: Message) -> None:
        self._stop_following(self._feed_of(order) or self.session_of(order))

    def _feed_of(self, order: Message) -> str | None:
        feed = next((name for name in self.feeds if name in order), None)
        if feed is not None:
            if order[feed] is not True or self.session_id is not None:
                raise Invalid.field(feed, _("Say `true`, over the socket at `/ws`."))
            self.caller_who_may(KeyScope.READ)
        return feed

    def _sessions(self) -> set[UUID]:
        return {followed for followed in self._following if isinstance(followed, UUID)}

    def _stop_following(self, followed: UUID | str) -> None:
        if known := self._following.pop(followed, None):
            known.cancel()

    async def _pass_on_feed(self, feed: str) -> None:
        follow_feed, say = self.feeds[feed]
        try:
            async with aclosing(follow_feed(lambda: self.caller_who_may(KeyScope.READ))) as parts:
                async for part in parts:
                    await say(part)
        except ParachuteError as error:
            await self.close(4000 + error.status)
        except Exception:
            log.exception("Following the %s broke off", feed)
            await self.close(1011)

    def look_at(self, session_id: UUID) -> Look:
        """Whether this socket's caller may still see a session, for what follows it."""
        return Watch(self.scope["find_caller"], session_id).look

    async def pass_on(self, session_id: UUID, after: int) -> None:
        """What a follower is sent; a subclass may say it in another way."""
        async with aclosing(follow(session_id, after, self.look_at(session_id))) as frames:
            async for frame in frames:
                await self.say(frame or {"type": "keep_alive", "sessionId": str(session_id)})

    async def _pass_on(self, session_id: UUID, after: int) -> None:
        try:
            await self.pass_on(session_id, after)
        except NotFound:  # it was deleted, or is another's alone
            self._following.pop(session_id, None)
            await self._tell_that_it_is_gone(session_id)
        except ParachuteError as error:
            await self.close(4000 + error.status)
        except Exception:
            log.exception("Following %s broke off", session_id)
            await self.close(1011)

    async def _look_again(self) -> None:
        """For as long as the socket is open, whether it follows anything or not."""
        while not self._is_closed:
            await asyncio.sleep(watch.LOOKS_AGAIN_EVERY)
            try:
                self.scope["caller"] = await self.scope["find_caller"]()
                await self._let_go(self.caller_who_may(KeyScope.READ))
            except ParachuteError as error:
                await self.close(4000 + error.status)
            except Exception:
                log.exception("The caller of a socket could not be looked at; trying again.")

    async def _let_go(self, caller: Caller) -> None:
        """Ends the following of what this caller may not see any more."""
        sessions = self._sessions()
        for session_id in sessions - await watch.visible_among(caller, list(sessions)):
            self._stop_following(session_id)
            await self._tell_that_it_is_gone(session_id)

    async def _tell_that_it_is_gone(self, session_id: UUID) -> None:
        """For this caller, or for everybody."""
        if session_id == self.session_id:
            await self.close(4000 + NotFound.status)
        else:
            await self._refuse(NotFound(), str(session_id))

    async def _refuse(self, error: ParachuteError, session_id: object) -> None:
        await self.say({"type": "refused", "sessionId": session_id, **error.as_json()})

    async def close(self, code: int) -> None:
        if not self._is_closed:
            self._is_closed = True
            await self.send({"type": "websocket.close", "code": code})


def _order(message: Message) -> Message:
    text = message.get("text") or ""
    if len(text) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:  # as a body; nobody else looks at it here
        raise TooLarge(_("The message is larger than 30 MB."))
    order = bounded_json.read(text)
    if not isinstance(order, dict):
        raise Invalid(_("Send an object with a `type`."))
    return order


def _after(scope: Message) -> int:
    """`Last-Event-ID` wins over `?after`; with neither it is the start."""
    query = parse_qs(scope["query_string"].decode(errors="replace"))
    given = dict(scope.get("headers", ())).get(b"last-event-id", b"").decode(errors="replace")
    value = given or query.get("after", ["0"])[0]
    if not value.isascii() or not value.isdigit() or len(value) > len(str(LARGEST_SEQ)) - 1:
        raise _bad_after()
    return int(value)


def _bad_after() -> Invalid:
    return Invalid.field("after", _("Give the `seq` of the last row that you have, or 0."))

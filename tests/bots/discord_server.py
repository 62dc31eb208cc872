"""Discord on loopback: its gateway and as much of its REST API as a whole conversation needs. A gateway that
breaks keeps what comes meanwhile, and gives it to whoever resumes."""

import asyncio
import itertools
import json
from collections import defaultdict, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aiohttp import WSMsgType, web

from bots_app.platforms.fake import Shown
from tests.bots.town import Town

US = 900_000_000_000_000_001
GUILD = 700_000_000_000_000_007
FIRST = 1_100_000_000_000_000_000
DISPATCH, HEARTBEAT, IDENTIFY, RESUME, RECONNECT, INVALID, HELLO, ACK = 0, 1, 2, 6, 7, 9, 10, 11


@dataclass
class DiscordServer(Town):
    name: str = "discord"
    token: str = "OTAwMDAwMDAwMDAwMDAwMDAx.Gk1234.abcdefghijklmnopqrstuvwxyz0123"
    account: str = "parachute"
    chats: dict[str, list[Shown]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self._ids = itertools.count(FIRST)
        self._faults: deque[tuple[int, dict[str, Any]]] = deque()
        self._uploaded: dict[str, bytes] = {}
        self._runner: web.AppRunner | None = None
        self._socket: web.WebSocketResponse | None = None
        self._events: list[dict[str, Any]] = []  # since the last IDENTIFY, by their number
        self._sent = 0
        self._sending: list[asyncio.Future[None]] = []
        self.identified = asyncio.Event()
        self.resumes = 0
        self.identifies = 0
        self.commands: list[dict[str, Any]] = []
        self.typed: list[str] = []
        self.pressed: dict[str, str] = {}
        self.sent_files: list[tuple[str, str, bytes]] = []
        self.closed: set[str] = set()
        self.refuses_intents = False

    async def begin(self) -> None:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_get("/gateway/", self._gateway)
        app.router.add_get("/cdn/{name}", self._file)
        app.router.add_route("*", "/api/v10/{path:.+}", self._call)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self.port}"

    async def end(self) -> None:
        if self._socket is not None:
            await self._socket.close()
        if self._runner is not None:
            await self._runner.cleanup()

    # what people do

    def says(self, who: str, text: str, *, chat: str = "", **more: Any) -> str:
        message = self._message(who, chat or who, text)
        if more.pop("replies_to_us", False):
            message["type"] = 19
            message["message_reference"] = {"message_id": "1", "channel_id": message["channel_id"]}
            message["referenced_message"] = {
                **self._message(str(US), message["channel_id"], "…"),
                "author": _us(),
            }
        if f"<@{US}>" in text:
            message["mentions"] = [_us()]
        if more.pop("is_bot", False):
            message["author"]["bot"] = True
        if more.pop("hides", False):
            message["webhook_id"] = "5"
        assert not more
        self._last = ("MESSAGE_CREATE", message)
        self._dispatch(*self._last)
        return str(message["id"])

    def sends(self, who: str, name: str, content: bytes, *, caption: str = "", album: str = "") -> str:
        message = self._message(who, who, caption)
        self._uploaded[name] = content
        where = f"{self.url}/cdn/{name}"
        about = {"filename": name, "size": len(content), "url": where, "proxy_url": where}
        message["attachments"] = [{"id": str(next(self._ids)), **about}]
        self._dispatch("MESSAGE_CREATE", message)
        return str(message["id"])

    def presses(self, who: str, chat: str, label: str) -> str:
        shown = next(
            each for each in reversed(self.chats[chat]) if any(label in found for found, _ in each.buttons)
        )
        data = next(data for found, data in shown.buttons if label in found)
        message = {**self._message(str(US), chat, shown.text), "id": shown.id, "author": _us()}
        more = {"message": message, "data": {"custom_id": data, "component_type": 2}}
        return self._interaction(3, who, chat, more)

    def commands_us(self, who: str, name: str, words: str = "") -> str:
        options = [{"name": "words", "type": 3, "value": words}] if words else []
        found = next(each for each in self.commands if each["name"] == name)
        data = {"id": found["id"], "name": name, "type": 1, "options": options}
        return self._interaction(2, who, who, {"data": data})

    def repeat_last(self) -> None:
        self._dispatch(*self._last)

    def slows_down(self, after: float) -> None:
        body = {"message": "You are being rate limited.", "retry_after": after, "global": False}
        self._faults.append((429, body))

    def fails_once(self) -> None:
        self._faults.append((503, {"message": "Service Unavailable"}))

    async def breaks(self) -> None:
        """The connection of the gateway, without a word."""
        assert self._socket is not None
        socket, self._socket = self._socket, None
        transport = socket._req.transport if socket._req else None
        if transport is not None:
            transport.abort()

    async def sends_away(self) -> None:
        """As Discord does it before it restarts: whoever comes back may resume."""
        assert self._socket is not None
        socket, self._socket = self._socket, None
        await socket.send_json({"op": RECONNECT, "d": None, "s": None, "t": None})

    # the wire

    def _interaction(self, kind: int, who: str, chat: str, more: dict[str, Any]) -> str:
        number = str(next(self._ids))
        self._dispatch(
            "INTERACTION_CREATE",
            {
                "id": number,
                "application_id": str(US),
                "type": kind,
                "token": f"token-{number}",
                "version": 1,
                "channel_id": chat,
                "channel": {"id": chat, "type": 1, "recipients": []},
                "user": _person(who),
                "locale": "en-US",
                "entitlements": [],
                "authorizing_integration_owners": {"1": who},
                "context": 1,
                "attachment_size_limit": 1 << 20,
                **more,
            },
        )
        return number

    def _message(self, who: str, chat: str, text: str) -> dict[str, Any]:
        message: dict[str, Any] = {
            "id": str(next(self._ids)),
            "channel_id": chat.lstrip("-"),
            "author": _person(who),
            "content": text,
            "timestamp": datetime.now(UTC).isoformat(),
            "edited_timestamp": None,
            "tts": False,
            "mention_everyone": False,
            "mentions": [],
            "mention_roles": [],
            "attachments": [],
            "embeds": [],
            "pinned": False,
            "type": 0,
            "components": [],
        }
        return {**message, "guild_id": str(GUILD)} if chat.startswith("-") else message

    def _dispatch(self, kind: str, data: dict[str, Any]) -> None:
        self._events.append({"op": DISPATCH, "t": kind, "d": data, "s": len(self._events) + 1})
        self._push()

    def _push(self) -> None:
        socket = self._socket
        if socket is None or not self.identified.is_set():
            return
        while self._sent < len(self._events):
            event = self._events[self._sent]
            self._sent += 1
            self._sending.append(asyncio.ensure_future(_send(socket, event)))

    async def _gateway(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"op": HELLO, "d": {"heartbeat_interval": 40_000}, "s": None, "t": None})
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                continue
            said = json.loads(message.data)
            if said["op"] == HEARTBEAT:
                await socket.send_json({"op": ACK, "d": None, "s": None, "t": None})
            elif said["op"] == IDENTIFY:
                if not await self._identify(socket, said["d"]):
                    break
            elif said["op"] == RESUME:
                await self._resume(socket, said["d"])
        return socket

    async def _identify(self, socket: web.WebSocketResponse, said: dict[str, Any]) -> bool:
        if self.refuses_intents or said["token"] != self.token:
            await socket.close(code=4014 if self.refuses_intents else 4004)
            return False
        self.identifies += 1
        before, self._events = self._events, []
        ready = {
            "v": 10,
            "user": _us(),
            "session_id": "session",
            "resume_gateway_url": f"ws://127.0.0.1:{self.port}/gateway/",
            "guilds": [],
            "application": {"id": str(US), "flags": 0},
        }
        self._events = [{"op": DISPATCH, "t": "READY", "d": ready, "s": 1}]
        self._sent, self._socket = 0, socket
        self.identified.set()
        self._push()
        for each in before if self.identifies == 1 else []:
            self._dispatch(each["t"], each["d"])
        return True

    async def _resume(self, socket: web.WebSocketResponse, said: dict[str, Any]) -> None:
        self.resumes += 1
        self._socket, self._sent = socket, int(said["seq"])
        self._push()
        self._dispatch("RESUMED", {})

    async def _call(self, request: web.Request) -> web.Response:
        path = request.match_info["path"]
        if path.startswith("interactions/"):
            return await self._called_back(request, path)
        if request.headers.get("Authorization") != f"Bot {self.token}":
            return _json({"message": "401: Unauthorized", "code": 0}, status=401)
        if path == "users/@me":
            return _json(_us())
        if path == "oauth2/applications/@me":
            return _json(_application())
        if path == "gateway/bot":
            limit = {"total": 1000, "remaining": 999, "reset_after": 0, "max_concurrency": 1}
            where = f"ws://127.0.0.1:{self.port}/gateway/"
            return _json({"url": where, "shards": 1, "session_start_limit": limit})
        if path.startswith("applications/"):
            given = await request.json()
            self.commands = [
                {**each, "id": str(next(self._ids)), "application_id": str(US), "version": "1"}
                for each in given
            ]
            return _json(self.commands)
        return await self._in_channel(request, path.split("/"))

    async def _in_channel(self, request: web.Request, parts: list[str]) -> web.Response:
        _channels, chat, what, *rest = parts
        if what == "typing":
            self.typed.append(chat)
            return web.Response(status=204)
        self.calls.append((request.method, chat, asyncio.get_running_loop().time()))
        if self._faults:
            status, body = self._faults.popleft()
            return _json(body, status=status, headers={"Via": "1.1 google"})
        if chat in self.closed:
            why = {"message": "Cannot send messages to this user", "code": 50007}
            return _json(why, status=403)
        return await self._say(request, chat, rest)

    async def _say(self, request: web.Request, chat: str, rest: list[str]) -> web.Response:
        known = {each.id: each for each in self.chats[chat]}
        if rest and rest[0] not in known:
            return _json({"message": "Unknown Message", "code": 10008}, status=404)
        if request.method == "DELETE":
            self.chats[chat].remove(known[rest[0]])
            return web.Response(status=204)
        given, files = await _given(request)
        for name, content in files:
            self.sent_files.append((chat, name, content))
        if len(given.get("content") or "") > 2_000:
            return _json({"message": "Invalid Form Body", "code": 50035}, status=400)
        buttons = tuple(
            (each["label"], each["custom_id"])
            for row in given.get("components") or []
            for each in row["components"]
        )
        text = given.get("content") or ""
        if rest:
            shown = known[rest[0]]
            shown.text, shown.buttons = text, buttons
            shown.edits += 1
        else:
            shown = Shown(str(next(self._ids)), text, buttons)
            if not files:
                self.chats[chat].append(shown)
        self.marked.append(text)
        self.changed()
        said = {**self._message(str(US), chat, text), "id": shown.id, "author": _us()}
        return _json(said)

    async def _called_back(self, request: web.Request, path: str) -> web.Response:
        given = await request.json()
        number = path.split("/")[1]
        self.pressed[number] = (given.get("data") or {}).get("content", "")
        self.changed()
        resource = {"interaction": {"id": number, "type": 3}, "resource": None}
        return _json(resource) if "with_response" in request.query else web.Response(status=204)

    async def _file(self, request: web.Request) -> web.Response:
        return web.Response(body=self._uploaded[request.match_info["name"]])


def _json(said: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """The library takes it for JSON only where nothing else is said of it."""
    body = json.dumps(said).encode()
    return web.Response(body=body, status=status, headers=headers, content_type="application/json")


async def _send(socket: web.WebSocketResponse, event: dict[str, Any]) -> None:
    if not socket.closed:
        await socket.send_json(event)


async def _given(request: web.Request) -> tuple[dict[str, Any], list[tuple[str, bytes]]]:
    if request.content_type == "application/json":
        return await request.json(), []
    given: dict[str, Any] = {}
    files: list[tuple[str, bytes]] = []
    for name, value in (await request.post()).items():
        if isinstance(value, web.FileField):
            files.append((value.filename, value.file.read()))
        elif name == "payload_json":
            given = json.loads(str(value))
    return given, files


def _person(who: str) -> dict[str, Any]:
    number = who.lstrip("-")
    name = f"u{number}"
    return {
        "id": number,
        "username": name,
        "global_name": f"Person {number}",
        "discriminator": "0",
        "avatar": None,
    }


def _us() -> dict[str, Any]:
    return {**_person(str(US)), "username": "parachute", "bot": True}


def _application() -> dict[str, Any]:
    return {
        "id": str(US),
        "name": "parachute",
        "icon": None,
        "description": "",
        "bot_public": False,
        "bot_require_code_grant": False,
        "verify_key": "0" * 64,
        "flags": 0,
        "owner": _person("1"),
    }

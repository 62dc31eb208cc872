"""A Bot API server on loopback that speaks as Telegram's own: enough of it for a whole conversation. What
people do there and what they see is told in the words of `Town`."""

import asyncio
import itertools
import json
import re
from collections import defaultdict, deque
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from aiohttp import web

from bots_app.platforms.fake import Shown
from tests.bots.town import Town

BOT_ID = 999_000_111
NOW = 1_790_000_000
KNOWN_TAGS = {"b", "i", "s", "u", "code", "pre", "a", "blockquote"}


@dataclass
class TelegramServer(Town):
    name: str = "telegram"
    token: str = f"{BOT_ID}:{'A' * 35}"
    account: str = "parachute_test_bot"
    chats: dict[str, list[Shown]] = field(default_factory=lambda: defaultdict(list))
    polls: int = 0

    def __post_init__(self) -> None:
        self._updates: deque[dict[str, Any]] = deque()
        self._news = asyncio.Event()
        self._ids = itertools.count(1)
        self._numbers = itertools.count(700)
        self._faults: deque[tuple[int, dict[str, Any]]] = deque()
        self._uploaded: dict[str, bytes] = {}
        self._runner: web.AppRunner | None = None
        self.typed: list[str] = []
        self.pressed: dict[str, str] = {}
        self.sent_files: list[tuple[str, str, bytes]] = []
        self.closed: set[str] = set()
        self.refuses_marks = False
        self.silent_polls = 0  # seconds for which the next poll is told to be silent
        self.has_lost_files = 0  # with which status it says so
        self.is_down = False

    async def begin(self) -> None:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/bot{token}/{method}", self._call)
        app.router.add_get("/file/bot{token}/{path:.+}", self._file)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def end(self) -> None:
        self._news.set()
        if self._runner is not None:
            await self._runner.cleanup()

    # what people do

    def says(self, who: str, text: str, *, chat: str = "", **more: Any) -> str:
        message = self._message(who, chat, more)
        message["text"] = text
        if text.startswith("/"):
            length = len(text.split()[0])
            message["entities"] = [{"type": "bot_command", "offset": 0, "length": length}]
        return self._update({"message": message})

    def sends(self, who: str, name: str, content: bytes, *, caption: str = "", album: str = "") -> str:
        message = self._message(who, "", {})
        file_id = f"file-{next(self._ids)}"
        self._uploaded[file_id] = content
        about = {"file_id": file_id, "file_unique_id": file_id, "file_size": len(content)}
        if name.endswith(".jpg"):
            message["photo"] = [{**about, "width": 10, "height": 10}]
        else:
            message["document"] = {**about, "file_name": name}
        message |= {"caption": caption} if caption else {}
        message |= {"media_group_id": album} if album else {}
        return self._update({"message": message})

    def presses(self, who: str, chat: str, label: str) -> str:
        shown = next(
            each for each in reversed(self.chats[chat]) if any(label in found for found, _ in each.buttons)
        )
        data = next(data for found, data in shown.buttons if label in found)
        press_id = f"press-{next(self._ids)}"
        message = {
            "message_id": int(shown.id),
            "date": NOW,
            "chat": self._chat(chat),
            "from": {"id": BOT_ID, "is_bot": True, "first_name": "Bot"},
            "text": shown.text,
        }
        press = {"id": press_id, "from": self._person(who), "chat_instance": "1", "data": data}
        self._update({"callback_query": {**press, "message": message}})
        return press_id

    def sends_what_nobody_knows(self) -> None:
        self._update({"message": {"message_id": 1}})

    def repeat_last(self) -> None:
        """The same update once more."""
        self._updates.append(self._last)
        self._news.set()

    def slows_down(self, after: int) -> None:
        body = {"error_code": 429, "description": f"Too Many Requests: retry after {after}"}
        self._faults.append((429, {**body, "parameters": {"retry_after": after}}))

    def fails_once(self) -> None:
        self._faults.append((502, {"error_code": 502, "description": "Bad Gateway"}))

    # the wire

    def _message(self, who: str, chat: str, more: dict[str, Any]) -> dict[str, Any]:
        message = {
            "message_id": next(self._numbers),
            "date": NOW,
            "chat": self._chat(chat or who),
            "from": self._person(who),
        }
        if more.pop("replies_to_us", False):
            us = {"id": BOT_ID, "is_bot": True, "first_name": "Bot", "username": self.account}
            replied = {"message_id": 1, "date": NOW, "chat": message["chat"], "from": us, "text": "…"}
            message["reply_to_message"] = replied
        if more.pop("hides", False):
            message["sender_chat"] = self._chat(chat)
        if thread := more.pop("thread", ""):
            message |= {"message_thread_id": int(thread), "is_topic_message": True}
        if more.pop("is_bot", False):
            message["from"] = {**self._person(who), "is_bot": True}
        assert not more
        return message

    def _person(self, who: str) -> dict[str, Any]:
        return {"id": int(who), "is_bot": False, "first_name": f"Person {who}", "username": f"u{who}"}

    def _chat(self, chat: str) -> dict[str, Any]:
        if int(chat) < 0:
            return {"id": int(chat), "type": "supergroup", "title": "Garden friends"}
        return {"id": int(chat), "type": "private", "first_name": f"Person {chat}"}

    def _update(self, what: dict[str, Any]) -> str:
        self._last = {"update_id": next(self._ids) + 5_000, **what}
        self._updates.append(self._last)
        self._news.set()
        return str(self._last["update_id"])

    async def _call(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        if self.is_down:
            return web.Response(status=502, text="Bad Gateway")
        if request.match_info["token"] != self.token:
            return _refused(401, "Unauthorized")
        given = await self._given(request)
        if method == "getUpdates":
            return await self._get_updates(given)
        if method == "getMe":
            return _ok({"id": BOT_ID, "is_bot": True, "first_name": "Bot", "username": self.account})
        if method == "getFile":
            return _ok({"file_id": given["file_id"], "file_unique_id": "x", "file_path": given["file_id"]})
        if method == "answerCallbackQuery":
            self.pressed[given["callback_query_id"]] = given.get("text", "")
            return _ok(True)
        if method == "sendChatAction":
            self.typed.append(str(given["chat_id"]))
            return _ok(True)
        return self._say(method, given)

    def _say(self, method: str, given: dict[str, Any]) -> web.Response:
        self.calls.append((method, str(given["chat_id"]), asyncio.get_running_loop().time()))
        if self._faults:
            status, body = self._faults.popleft()
            return web.json_response({"ok": False, **body}, status=status)
        chat = str(given["chat_id"])
        if chat in self.closed:
            return _refused(403, "Forbidden: bot was blocked by the user")
        if method in ("sendMessage", "editMessageText"):
            return self._text(method, chat, given)
        if method == "deleteMessage":
            self.chats[chat] = [each for each in self.chats[chat] if each.id != str(given["message_id"])]
            return _ok(True)
        kind = {"sendPhoto": "photo", "sendDocument": "document"}[method]
        name, content = given[kind]
        self.sent_files.append((chat, name, content))
        return _ok(self._as_sent(str(next(self._numbers)), chat, ""))

    def _text(self, method: str, chat: str, given: dict[str, Any]) -> web.Response:
        text = given["text"]
        if given.get("parse_mode") == "HTML":
            if self.refuses_marks or (problem := _problem_in(text)):
                why = "refused" if self.refuses_marks else problem
                return _refused(400, f"Bad Request: can't parse entities: {why}")
            self.marked.append(text)
            text = _plain(text)
        if not text.strip():
            return _refused(400, "Bad Request: message text is empty")
        if len(text.encode("utf-16-le")) // 2 > 4096:
            return _refused(400, "Bad Request: message is too long")
        markup = given.get("reply_markup") or {}
        rows = (json.loads(markup) if isinstance(markup, str) else markup).get("inline_keyboard", [])
        buttons = tuple((each["text"], each["callback_data"]) for row in rows for each in row)
        assert all(len(data.encode()) <= 64 for _, data in buttons)
        if method == "sendMessage":
            shown = Shown(str(next(self._numbers)), text, buttons)
            self.chats[chat].append(shown)
        else:
            found = [each for each in self.chats[chat] if each.id == str(given["message_id"])]
            if not found:
                return _refused(400, "Bad Request: message to edit not found")
            shown = found[0]
            if (shown.text, shown.buttons) == (text, buttons):
                return _refused(400, "Bad Request: message is not modified")
            shown.text, shown.buttons = text, buttons
            shown.edits += 1
        self.changed()
        return _ok(self._as_sent(shown.id, chat, text))

    def _as_sent(self, number: str, chat: str, text: str) -> dict[str, Any]:
        return {"message_id": int(number), "date": NOW, "chat": self._chat(chat), "text": text or "…"}

    async def _get_updates(self, given: dict[str, Any]) -> web.Response:
        self.polls += 1
        if after := self.silent_polls:
            self.silent_polls = 0
            told = {
                "error_code": 429,
                "description": "Too Many Requests",
                "parameters": {"retry_after": after},
            }
            return web.json_response({"ok": False, **told}, status=429)
        offset = int(given.get("offset", 0) or 0)
        while self._updates and self._updates[0]["update_id"] < offset:
            self._updates.popleft()
        if not self._updates:
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), 5)
            except TimeoutError:
                return _ok([])
        return web.Response(status=502) if self.is_down else _ok(list(self._updates))

    async def _given(self, request: web.Request) -> dict[str, Any]:
        if request.content_type == "application/json":
            return dict(await request.json())
        found: dict[str, Any] = {}
        for name, value in (await request.post()).items():
            if isinstance(value, web.FileField):
                found[name] = (value.filename, value.file.read())
            else:
                found[name] = value
        return found

    async def _file(self, request: web.Request) -> web.Response:
        if self.has_lost_files:
            return web.Response(status=self.has_lost_files, text="It is not here.")
        return web.Response(body=self._uploaded[request.match_info["path"].rpartition("/")[2]])


def _ok(result: Any) -> web.Response:
    return web.json_response({"ok": True, "result": result})


def _refused(status: int, why: str) -> web.Response:
    return web.json_response({"ok": False, "error_code": status, "description": why}, status=status)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.problem = ""
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.problem = self.problem or ("" if tag in KNOWN_TAGS else f"unsupported start tag {tag}")

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.problem = self.problem or f"unexpected end tag {tag}"

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def _read(text: str) -> _Tags:
    tags = _Tags()
    tags.feed(text)
    tags.close()
    return tags


def _problem_in(text: str) -> str:
    """As Telegram's own parser is: strict."""
    tags = _read(text)
    if tags.open:
        return f"can't find end tag of {tags.open[-1]}"
    return tags.problem or ("stray <" if re.search(r"<(?![/a-z])", text) else "")


def _plain(text: str) -> str:
    return "".join(_read(text).text)

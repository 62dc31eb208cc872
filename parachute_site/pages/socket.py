"""The socket of a page: what `/ws` says, told in markup that is ready to be put in its place."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from agents_app.consumers import ChatSocket
from parachute_site.pages import live
from parachute_site.pages.frame import in_rail
from parachute_site.pages.telling import Event, Item, Telling, inbox_item
from parachute_site.pages.vault import Links
from parachute_site.pages.writing import Writing
from permissions_app.frames import request_of
from sessions_app.access.caller import Caller
from sessions_app.access.models import KeyScope
from sessions_app.consumers import Message
from sessions_app.errors import Invalid, NotFound, ParachuteError
from sessions_app.history.past import ANSWERS
from sessions_app.models import EventType, Session, SessionEvent
from sessions_app.models.event import TERMINAL
from sessions_app.reading import Page
from sessions_app.streaming.bus import Payload, tails
from sessions_app.streaming.log import ON_THE_WIRE, on_the_wire
from sessions_app.streaming.stream import Frame, follow_in_parts
from sessions_app.threads import in_thread

SHOWN_EVERY = 0.05  # s: how often a growing text is drawn anew, but
CHARACTERS_A_SECOND = 200_000  # a long unfinished block (code, a table) less often
BRIEF = 60
ENDS_WRITING = (EventType.TEXT, EventType.THINKING, EventType.SESSION, *TERMINAL)
ASKED = (EventType.PERMISSION_REQUEST, EventType.USER_QUESTION, EventType.GRANT_REQUEST)

Say = Callable[[Payload], Coroutine[Any, Any, None]]


class PageSocket(ChatSocket):
    def __init__(self) -> None:
        super().__init__()
        self._waiting: set[str] = set()

    async def follow(self, order: Message) -> None:
        """Who follows the inbox anew is told all of it anew."""
        if "inbox" in order:
            self._waiting.clear()
            await self._say_inbox([], is_all=True)
        if (part := order.get("part")) is not None:
            await self._follow_part(str(part), str(order.get("of", "")))
            return
        await super().follow(order)

    async def _follow_part(self, part: str, of: str) -> None:
        """A part of a page beside the chat: told anew each time that it is another."""
        self.caller_who_may(KeyScope.READ)
        if part not in live.PARTS:
            raise Invalid.field("part", _("There is no such part."))
        self._stop_following(followed := f"part {part}")
        self._following[followed] = self.begin(self._pass_on_part(part, of))

    async def _pass_on_part(self, part: str, of: str) -> None:
        shown: str | None = None
        try:
            while True:
                html = await in_thread(live.drawn)(self.caller_who_may(KeyScope.READ), part, of)
                if html != shown:
                    await self.say({"type": "part", "part": part, "of": of, "html": html})
                shown = html
                await asyncio.sleep(live.LOOKS_EVERY)
        except ParachuteError as error:
            await self._refuse(error, None)

    async def say_asked(self, news: list[Payload]) -> None:
        if news:
            await self._say_inbox([await in_thread(self._asked)(payload) for payload in news])

    def _asked(self, payload: Payload) -> Payload:
        still = self._waiting.discard if payload["type"] in ANSWERS else self._waiting.add
        still(request_of(payload))
        return card(payload, to_operator=True)  # an inbox has only what its person may decide

    async def _say_inbox(self, items: list[Payload], *, is_all: bool = False) -> None:
        count = len(self._waiting)
        await self.say({"type": "inbox", "items": items, "isAll": is_all, "count": count})

    async def say_list(self, page: Page) -> None:
        html = await in_thread(render_to_string)("rail.html", in_rail(page))
        await self.say({"type": "list", "html": html})

    async def pass_on(self, session_id: UUID, after: int) -> None:
        folder, slug = await in_thread(_vault)(session_id)
        pane = Pane(
            session_id, folder, Links(slug), self.say, self.begin, reader=self.caller_who_may(KeyScope.READ)
        )
        await pane.begin()
        async with aclosing(follow_in_parts(session_id, after, self.look_at(session_id))) as parts:
            async for part in parts:
                await pane.show(part)


class Pane:
    """One session in one tab. Rows are told at once, a text that grows as often as an eye can follow."""

    def __init__(
        self,
        session_id: UUID,
        folder: str,
        links: Links,
        say: Say,
        begin: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        *,
        reader: Caller,
    ) -> None:
        self._session_id = str(session_id)
        self._telling = Telling(folder, to_operator=reader.is_operator, reader=reader.username, links=links)
        self._to_operator = reader.is_operator
        self._say = say
        self._begin = begin
        self._writing: dict[str, Writing] = {}  # by turn: it writes one block at a time
        self._block: dict[str, int] = {}
        self._undrawn: set[str] = set()
        self._growing: asyncio.Task[None] | None = None
        self._shown_at = 0.0

    async def show(self, part: list[Frame]) -> None:
        rows = [frame for frame in part if frame is not None and not tails.is_delta(frame)]
        if of_children := [row for row in rows if row["seq"] is None]:
            cards = [await in_thread(card)(each, to_operator=self._to_operator) for each in of_children]
            await self._say_children(cards)
            rows = [row for row in rows if row["seq"] is not None]
        if rows:
            for row in rows:
                if row["type"] in ENDS_WRITING:
                    self._forget(row["turnId"])
            told = await in_thread(self._told)(rows)
            await self._say({"type": "told", "sessionId": self._session_id, "told": told})
        for frame in part:
            if frame is None:
                await self._say({"type": "keep_alive", "sessionId": self._session_id})
            elif tails.is_delta(frame):
                await self._grow(frame)

    async def _say_children(self, items: list[Payload], *, is_all: bool = False) -> None:
        named = {"type": "children", "sessionId": self._session_id}
        await self._say(named | {"items": items, "isAll": is_all})

    async def begin(self) -> None:
        """What a tab had of its children's requests it is told anew."""
        await self._say_children([], is_all=True)

    def _told(self, rows: list[Payload]) -> list[Payload]:
        """Of several rows about one item the first has it, as it is after all of them: so it comes to stand
        where it began. An answer has it too: it may be about a turn whose rows the page passes over."""
        changed = [self._taken(row) for row in rows]
        first = {item.id: at for at, items in reversed([*enumerate(changed)]) for item in items}
        for row in rows:
            if row["type"] in TERMINAL:
                self._telling.turns.pop(row["turnId"], None)
        return [
            _about(row)
            | {"items": [_place(item) for item in items if first[item.id] == at or row["type"] in ANSWERS]}
            for at, (row, items) in enumerate(zip(rows, changed, strict=True))
        ]

    def _taken(self, row: Payload) -> list[Item]:
        """What is answered may have come with the page, from before the row after which it follows."""
        if row["type"] in ANSWERS and not self._telling.knows(row["requestId"]):
            for asked in _asked(UUID(self._session_id), row["requestId"]):
                self._telling.take(asked)
        return self._telling.take(row)

    async def _grow(self, delta: Event) -> None:
        turn = delta["turnId"]
        if self._block.get(turn) != delta["block"]:
            self._forget(turn)
            self._block[turn] = delta["block"]
        if delta["type"] == "thinking":  # no markup: it is passed on as it is
            await self._say({**_about(delta), "id": f"live-{turn}", "delta": delta["delta"]})
            return
        self._writing.setdefault(turn, Writing()).add(delta["offset"], delta["delta"])
        self._undrawn.add(turn)
        if self._growing is None or self._growing.done():
            self._growing = self._begin(self._draw_soon())

    async def _draw_soon(self) -> None:
        clock = asyncio.get_running_loop().time
        while self._undrawn:
            size = max(writing.size_of_end for writing in self._writing.values())
            pause = max(SHOWN_EVERY, size / CHARACTERS_A_SECOND)
            await asyncio.sleep(max(0.0, self._shown_at + pause - clock()))
            self._shown_at = clock()
            for turn in [*self._undrawn]:  # what was finished meanwhile is no more among them
                await self._draw(turn)

    async def _draw(self, turn: str) -> None:
        self._undrawn.discard(turn)
        if turn in self._writing:
            grown = self._writing[turn].grow()
            named = {"type": "grown", "sessionId": self._session_id, "turnId": turn, "id": f"live-{turn}"}
            await self._say({**named, "more": grown.more, "end": grown.end, "anew": grown.anew})

    def _forget(self, turn: str | None) -> None:
        """What it was writing is in the row, or was given up."""
        if turn is not None:
            self._writing.pop(turn, None)
            self._block.pop(turn, None)
            self._undrawn.discard(turn)


def card(payload: Payload, *, to_operator: bool) -> Payload:
    """What is asked, or, without markup, what is asked no more."""
    item: Payload = {"id": f"asked-{request_of(payload)}"}
    if payload["type"] in ANSWERS:
        return item
    return item | {"html": inbox_item(payload, to_operator=to_operator).html()}


def _place(item: Item) -> Payload:
    return {"id": item.id, "into": item.into, "html": item.html()}


def _about(row: Event) -> Payload:
    """What the page's own logic needs of an event; what people read is in the markup."""
    kept: Payload = {name: row[name] for name in ("type", "turnId", "seq", "ts")}
    match row["type"]:
        case "session":
            kept["begins"] = row["resumeInfo"] is not None
        case "user_message":
            kept["brief"] = " ".join(row["content"].split())[:BRIEF]
        case "permission_resolved" | "question_answered" | "grant_resolved":
            kept["requestId"] = row["requestId"]
        case "turn_waiting":
            kept |= {"reason": row["reason"], "position": row["position"]}
        case "session_updated":
            kept |= row
    return kept


def _asked(session_id: UUID, request_id: str) -> list[Payload]:
    """The row of a request; none where there is no such row."""
    rows = SessionEvent.objects.filter(session=session_id, type__in=ASKED)
    named = rows.filter(Q(payload__id=request_id) | Q(payload__requestId=request_id))
    return [on_the_wire(str(session_id), *row) for row in named.values_list(*ON_THE_WIRE)]


def _vault(session_id: UUID) -> tuple[str, str]:
    """Its folder, and the slug of whose it is."""
    found = Session.objects.values_list("vault_root", "workspace__slug").filter(pk=session_id).first()
    if found is None:
        raise NotFound()
    return found[0], found[1]

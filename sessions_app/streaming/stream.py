"""`follow`: all that happens in a session from one `seq` on, for as long as the reader stays.

1. Subscribe, and only then
2. read the rows after `after`, and
3. the text of the block that is being written, as one delta;
4. then pass on what the bus rings for: a row that comes next as it is, any gap read from the rows,
   a delta only from where the reader's text ends, a gap in the text filled from the tail.
5. What apps above tell `beside` the rows comes after those that are there, and when it rings.
6. In a silence of `KEEP_ALIVE` seconds read the rows again, because rings can be lost and rows cannot.

7. Where a row says that the session was shared, or is not any more, its reader is looked at before that row
   and what comes with it is given away.

Where the session is deleted, `NotFound` ends it.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from time import monotonic
from typing import Any, Protocol
from uuid import UUID

from django.db.models import TextField
from django.db.models.functions import Cast, Length

from sessions_app.errors import NotFound
from sessions_app.models import EventType, Session, SessionEvent
from sessions_app.models.event import TERMINAL
from sessions_app.streaming import bus
from sessions_app.streaming.bus import Payload, tails
from sessions_app.streaming.log import ANNOUNCED, ON_THE_WIRE, on_the_wire
from sessions_app.threads import in_thread

KEEP_ALIVE = 15.0
PAGE = 500  # rows, or
LARGEST_PAGE = 500_000  # characters: a reader that stalls has one of them in memory
FETCHED_AT_ONCE = 100

Frame = Payload | None  # None is a keep-alive
Look = Callable[[], Awaitable[None]]  # raises where the reader may not see the session any more


class Beside(Protocol):
    """What an app above tells one reader beside the rows: frames without a number."""

    def read(self) -> list[Payload]:
        """What is news since the last look."""

    def heard(self, payload: Payload) -> list[Payload] | None:
        """What of a ring is news; None where it has to be read."""


beside: list[Callable[[UUID], Beside]] = []  # registered in their `ready()`


async def follow(session_id: UUID, after: int, look: Look) -> AsyncGenerator[Frame]:
    async with aclosing(follow_in_parts(session_id, after, look)) as parts:
        async for part in parts:
            for frame in part:
                yield frame


async def follow_in_parts(session_id: UUID, after: int, look: Look) -> AsyncGenerator[list[Frame]]:
    """The same, and what is there at once comes as one list, so that it can be sent as one."""
    async with aclosing(_parts(session_id, after)) as parts:
        async for part in parts:
            if any(_is_about_visibility(frame) for frame in part):
                await look()
            yield part


def _is_about_visibility(frame: Frame) -> bool:
    return frame is not None and frame["type"] == EventType.SESSION_UPDATED and "visibility" in frame


async def _parts(session_id: UUID, after: int) -> AsyncGenerator[list[Frame]]:
    topic = bus.session_topic(session_id)
    async with bus.current().subscribe(topic) as listener:
        tail = await bus.current().tail(topic)
        reader = _Reader(session_id, after, tail)
        has_seen_rows = False
        async for part in reader.missed(tail):
            has_seen_rows = True
            yield part
        if not has_seen_rows:
            await in_thread(_check_exists)(session_id)  # it may have gone before we could hear of it
        async for part in reader.read_beside():
            yield part
        while True:
            heard = await listener.next(KEEP_ALIVE)
            if heard is not None and heard["type"] == tails.DELETED:
                raise NotFound
            if heard is None:
                async for part in reader.missed(await bus.current().tail(topic)):
                    yield part
                async for part in reader.read_beside():
                    yield part
                yield [None]
                continue
            async for part in reader.heard(heard):
                yield part


async def follow_turn(session_id: UUID, turn_id: UUID, after: int, look: Look) -> AsyncGenerator[Frame]:
    """The events of one turn and no other, up to its terminal one. While another turn speaks, this is silent,
    and says so."""
    spoke = monotonic()
    async with aclosing(follow(session_id, after, look)) as frames:
        async for frame in frames:
            if frame is not None and frame["turnId"] == str(turn_id):
                spoke = monotonic()
                yield frame
                if frame["type"] in TERMINAL:
                    return
            elif frame is None or monotonic() - spoke >= KEEP_ALIVE:
                spoke = monotonic()
                yield None


class _Reader:
    """What one reader has seen: the last `seq`, and how much of the unfinished block.

    A reader that joins may be past the row that ended a tail it was given, so it looks at all rows since
    that block began, and gives away those after `after`.
    """

    def __init__(self, session_id: UUID, after: int, tail: list[Payload]) -> None:
        self._session_id = session_id
        self._after = after
        self._last = min([after, *(delta["after"] for delta in tail)])
        self._finished = 0  # the newest row that finished a block: what was to come before it is old
        self._began: dict[str, int] = {}  # the newest row since then with which a turn began again, or ended
        self._block: tuple[str, int] | None = None
        self._length = 0
        self._asked_for: tuple[str, int] | None = None
        self._beside = [each(session_id) for each in beside]

    async def read_beside(self) -> AsyncIterator[list[Frame]]:
        for each in self._beside:
            if news := await in_thread(each.read)():
                yield [*news]

    async def _heard_beside(self, payload: Payload) -> AsyncIterator[list[Frame]]:
        for each in self._beside:
            news = each.heard(payload)
            if news is None:
                news = await in_thread(each.read)()
            if news:
                yield [*news]

    async def heard(self, payload: Payload) -> AsyncIterator[list[Frame]]:
        is_delta = tails.is_delta(payload)
        if not is_delta and payload["seq"] is None:
            async for part in self._heard_beside(payload):
                yield part
            return
        if not is_delta and payload["seq"] == self._last + 1 and ANNOUNCED not in payload:
            if rows := self._new_rows([payload]):
                yield rows
        elif payload["after" if is_delta else "seq"] > self._last:
            async for rows in self._rows():
                yield rows
        if is_delta:
            async for part in self._heard_text(payload):
                yield part

    async def _heard_text(self, delta: Payload) -> AsyncIterator[list[Frame]]:
        if self._lacks_text_before(delta):
            async for part in self.missed(await bus.current().tail(bus.session_topic(self._session_id))):
                yield part
        text: list[Frame] = [*self._new_text(delta)]
        if text:
            yield text

    async def missed(self, tail: list[Payload]) -> AsyncIterator[list[Frame]]:
        async for rows in self._rows():
            yield rows
        text: list[Frame] = [piece for delta in tail for piece in self._new_text(delta)]
        if text:
            yield text

    async def _rows(self) -> AsyncIterator[list[Frame]]:
        while page := await in_thread(_page)(self._session_id, self._last):
            if rows := self._new_rows(page):
                yield rows

    def _new_rows(self, rows: Sequence[Payload]) -> list[Frame]:
        for row in rows:
            self._see(row)
        return [row for row in rows if row["seq"] > self._after]

    def _see(self, row: Payload) -> None:
        self._last = row["seq"]
        if row["type"] in (EventType.TEXT, EventType.THINKING):
            self._finished, self._block = row["seq"], None
            self._began.clear()
        elif row["type"] in tails.ENDING:
            self._began[row["turnId"]] = row["seq"]
            if self._block and self._block[0] == row["turnId"]:
                self._block = None  # its blocks are counted anew

    def _is_old(self, delta: Payload) -> bool:
        """Of a block that is finished or given up; rows and deltas may overtake each other."""
        turn, block = delta["turnId"], delta["block"]
        if self._block is not None and self._block[0] == turn and block < self._block[1]:
            return True
        return bool(delta["after"] < max(self._finished, self._began.get(turn, 0)))

    def _lacks_text_before(self, delta: Payload) -> bool:
        """True once a block: what the tail does not have, the finished block brings."""
        block = (delta["turnId"], delta["block"])
        length = self._length if block == self._block else 0
        if delta["offset"] <= length or block == self._asked_for or self._is_old(delta):
            return False
        self._asked_for = block
        return True

    def _new_text(self, delta: Payload) -> Iterator[Payload]:
        if self._is_old(delta):
            return
        block = (delta["turnId"], delta["block"])
        if block != self._block:
            self._block, self._length = block, 0
        start = self._length - delta["offset"]
        text = delta["delta"][start:] if start >= 0 else ""
        if text:
            wire = {key: value for key, value in delta.items() if key != "after"}
            yield wire | {"offset": self._length, "delta": text, "seq": None}
            self._length += len(text)


def _check_exists(session_id: UUID) -> None:
    if not Session.objects.filter(pk=session_id).exists():
        raise NotFound


def _page(session_id: UUID, after: int) -> list[Payload]:
    """The next rows, as many as fit, and one at least. Read as tuples: models would cost as much again."""
    size_of_row = Length(Cast("payload", TextField()))
    found: Any = SessionEvent.objects.after(session_id, after).annotate(size=size_of_row)
    page: list[Payload] = []
    size, session = 0, str(session_id)
    for *row, length in found.values_list(*ON_THE_WIRE, "size")[:PAGE].iterator(chunk_size=FETCHED_AT_ONCE):
        page.append(on_the_wire(session, *row))
        size += length
        if size >= LARGEST_PAGE:
            break
    return page

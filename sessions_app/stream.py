"""`follow`: all that happens in a session from one `seq` on, for as long as the reader stays.

1. Subscribe, and only then
2. read the rows after `after`, and
3. the text of the block that is being written, as one delta;
4. then pass on what the bus rings for: a row that comes next as it is, any gap read from the rows,
   a delta only from where the reader's text ends, a gap in the text filled from the tail.
5. In a silence of `KEEP_ALIVE` seconds read the rows again, because rings can be lost and rows cannot.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from time import monotonic
from uuid import UUID

from sessions_app import bus
from sessions_app.bus import Payload, tails
from sessions_app.log import ANNOUNCED, as_payload
from sessions_app.models import EventType, SessionEvent
from sessions_app.models.event import TERMINAL
from sessions_app.threads import in_thread

KEEP_ALIVE = 15.0
PAGE = 200  # rows, each of which may hold 100,000 characters

Frame = Payload | None  # None is a keep-alive


async def follow(session_id: UUID, after: int) -> AsyncGenerator[Frame]:
    topic = bus.session_topic(session_id)
    async with bus.current().subscribe(topic) as listener:
        tail = await bus.current().tail(topic)
        reader = _Reader(session_id, after, tail)
        async for payload in reader.missed(tail):
            yield payload
        while True:
            heard = await listener.next(KEEP_ALIVE)
            if heard is None:
                async for payload in reader.missed(await bus.current().tail(topic)):
                    yield payload
                yield None
                continue
            async for payload in reader.heard(heard):
                yield payload


async def follow_turn(session_id: UUID, turn_id: UUID, after: int) -> AsyncGenerator[Frame]:
    """The events of one turn and no other, up to its terminal one. While another turn speaks, this is silent,
    and says so."""
    spoke = monotonic()
    async with aclosing(follow(session_id, after)) as frames:
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

    async def heard(self, payload: Payload) -> AsyncIterator[Payload]:
        is_delta = tails.is_delta(payload)
        if not is_delta and payload["seq"] == self._last + 1 and ANNOUNCED not in payload:
            for row in self._seen(payload):
                yield row
        elif payload["after" if is_delta else "seq"] > self._last:
            async for row in self._rows():
                yield row
        if is_delta:
            async for piece in self._heard_text(payload):
                yield piece

    async def _heard_text(self, delta: Payload) -> AsyncIterator[Payload]:
        if self._lacks_text_before(delta):
            async for payload in self.missed(await bus.current().tail(bus.session_topic(self._session_id))):
                yield payload
        for piece in self._new_text(delta):
            yield piece

    async def missed(self, tail: list[Payload]) -> AsyncIterator[Payload]:
        async for row in self._rows():
            yield row
        for delta in tail:
            for piece in self._new_text(delta):
                yield piece

    async def _rows(self) -> AsyncIterator[Payload]:
        while page := await in_thread(_page)(self._session_id, self._last):
            for payload in page:
                for row in self._seen(payload):
                    yield row

    def _seen(self, row: Payload) -> Iterator[Payload]:
        self._last = row["seq"]
        if row["type"] in (EventType.TEXT, EventType.THINKING):
            self._finished, self._block = row["seq"], None
            self._began.clear()
        elif row["type"] in tails.ENDING:
            self._began[row["turnId"]] = row["seq"]
            if self._block and self._block[0] == row["turnId"]:
                self._block = None  # its blocks are counted anew
        if row["seq"] > self._after:
            yield row

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


def _page(session_id: UUID, after: int) -> list[Payload]:
    events: list[SessionEvent] = list(SessionEvent.objects.after(session_id, after)[:PAGE])
    return [as_payload(event) for event in events]

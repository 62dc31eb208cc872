"""`follow`: all that happens in a session from one `seq` on, for as long as the reader stays.

1. Subscribe, and only then
2. read the rows after `after`, and
3. the text of the block that is being written, as one delta;
4. then pass on what the bus rings for: a row that comes next as it is, any gap read from the rows,
   a delta only from where the reader's text ends.
5. In a silence of `KEEP_ALIVE` seconds read the rows again, because rings can be lost and rows cannot.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from uuid import UUID

from sessions_app import bus
from sessions_app.bus import Payload
from sessions_app.log import ANNOUNCED, as_payload
from sessions_app.models import SessionEvent
from sessions_app.models.event import TERMINAL
from sessions_app.threads import in_thread

KEEP_ALIVE = 15.0
PAGE = 500

Frame = Payload | None  # None is a keep-alive


async def follow(session_id: UUID, after: int) -> AsyncGenerator[Frame]:
    topic = bus.session_topic(session_id)
    reader = _Reader(session_id, after)
    async with bus.current().subscribe(topic) as listener:
        async for payload in reader.missed(await bus.current().tail(topic)):
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
    """The events of one turn and no other, up to its terminal one."""
    async for frame in follow(session_id, after):
        if frame is None:
            yield None
        elif frame["turnId"] == str(turn_id):
            yield frame
            if frame["type"] in TERMINAL:
                return


class _Reader:
    """What one reader has seen: the last `seq`, and how much of the unfinished block."""

    def __init__(self, session_id: UUID, after: int) -> None:
        self.session_id = session_id
        self.last = after
        self._block: tuple[str, int] | None = None
        self._length = 0
        self._finished: tuple[str, int] | None = None

    async def heard(self, payload: Payload) -> AsyncIterator[Payload]:
        if "delta" in payload:
            if payload["after"] > self.last:
                async for row in self.rows():
                    yield row
            for delta in self._new_text(payload):
                yield delta
        elif payload["seq"] == self.last + 1 and ANNOUNCED not in payload:
            yield self._seen(payload)
        elif payload["seq"] > self.last:
            async for row in self.rows():
                yield row

    async def missed(self, tail: list[Payload]) -> AsyncIterator[Payload]:
        async for row in self.rows():
            yield row
        for delta in tail:
            for piece in self._new_text(delta):
                yield piece

    async def rows(self) -> AsyncIterator[Payload]:
        while page := await in_thread(_page)(self.session_id, self.last):
            for payload in page:
                yield self._seen(payload)

    def _seen(self, payload: Payload) -> Payload:
        self.last = payload["seq"]
        if "block" in payload:
            self._finished = (payload["turnId"], payload["block"])
        elif payload["type"] == "session":
            self._block = self._finished = None  # a turn begins, or begins again: its blocks are counted anew
        return payload

    def _new_text(self, delta: Payload) -> Iterator[Payload]:
        block = (delta["turnId"], delta["block"])
        if self._finished and block[0] == self._finished[0] and block[1] <= self._finished[1]:
            return
        if block != self._block:
            self._block, self._length = block, 0
        start = self._length - delta["offset"]
        if start < 0:
            return  # a delta before this one is missing; the keep-alive or the finished block brings it
        if text := delta["delta"][start:]:
            yield {key: value for key, value in delta.items() if key != "after"} | {
                "offset": self._length,
                "delta": text,
                "seq": None,
            }
            self._length += len(text)


def _page(session_id: UUID, after: int) -> list[Payload]:
    events: list[SessionEvent] = list(SessionEvent.objects.after(session_id, after)[:PAGE])
    return [as_payload(event) for event in events]

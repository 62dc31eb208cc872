"""`follow` in any order of events: deltas, rows, joins, restarts, lost and late rings.

A writer tells the truth as a worker does, over a bus that may lose rings, and clients read. Each client
checks every frame it is given: rows once and in order, and of an unfinished block its beginning, seamlessly.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.errors import NotFound
from sessions_app.streaming import bus, stream
from sessions_app.streaming.bus import memory, tails
from sessions_app.streaming.bus.base import Payload
from sessions_app.streaming.log import ANNOUNCED
from sessions_app.streaming.stream import Frame, follow
from tests.sessions_app.own_bus import OwnBus

pytestmark = pytest.mark.django_db(transaction=True)  # for the threads alone: the rows are in memory

LETTERS = "abcdefghij🦆"


class Writer:
    """One session: its rows, and what its worker says. The rows of turns that wait are not the worker's."""

    def __init__(self, own_bus: OwnBus) -> None:
        self.session_id = uuid4()
        self._bus = own_bus
        self.rows: list[Payload] = []
        self._late: list[Payload] = []
        self._turn = 1
        self._seen_by_worker = 0
        self._block = 0
        self._text: str | None = None
        self.unshared_at = 0  # the row with which it became somebody's own; 0 while it is shared

    def page(self, _: UUID, after: int) -> list[Payload]:
        return self.rows[after : after + stream.PAGE]

    @property
    def unfinished(self) -> str:
        return self._text or ""

    async def row(self, kind: str, how: str = "heard", *, turn: str | None = None, **payload: Any) -> None:
        row = {"type": kind, "turnId": turn or self._name, "seq": len(self.rows) + 1, **payload}
        self.rows.append(row)
        if turn is None:
            self._seen_by_worker = row["seq"]
        if how == "late":
            self._late.append(row)
        elif how == "announced":
            await self._publish({**row, ANNOUNCED: True})
        elif how == "heard":
            await self._publish(row)

    async def say(self, length: int, how: str = "heard") -> None:
        text = LETTERS[:length]
        offset = len(self.unfinished)
        self._text = self.unfinished + text
        await self._say(text, offset, how)

    async def _say(self, text: str, offset: int, how: str) -> None:
        delta = {"type": "text", "turnId": self._name, "seq": None, "block": self._block, "offset": offset}
        delta |= {"delta": text, "after": self._seen_by_worker}
        self._bus.is_deaf = how == "unheard"
        if how != "lost":
            await self._publish(delta)
        self._bus.is_deaf = False

    async def finish_block(self, how: str = "heard") -> None:
        if self._text is not None:
            await self.row("text", how, block=self._block, content=self._text)
            self._block, self._text = self._block + 1, None

    async def give_up_block(self) -> None:
        """The model is asked again: the next delta starts a block of another number."""
        if self._text is not None:
            self._block, self._text = self._block + 1, None

    async def restart(self, how: str = "heard") -> None:
        """What was being written is kept, another worker takes the turn up, and the old one may say one thing
        more."""
        old = (self._block, self._seen_by_worker, self.unfinished)
        await self._keep_what_was_shown(how)
        self._text = None
        await self.row("session", how)
        blocks = [row["block"] for row in self.rows if row["type"] == "text" and row["turnId"] == self._name]
        self._block = blocks[-1] + 1 if blocks else 0
        now = (self._block, self._seen_by_worker)
        if old[2]:
            self._block, self._seen_by_worker = old[:2]
            await self._say("zombie", len(old[2]), "heard")
            self._block, self._seen_by_worker = now

    async def _keep_what_was_shown(self, how: str) -> None:
        """Of this turn, if no row says that it is over, as the worker that takes it up does it."""
        tail = self._bus.unfinished(bus.session_topic(self.session_id))
        if tail and tail["turnId"] == self._name and not any(tails.ends(row, tail) for row in self.rows):
            await self.row("text", how, block=tail["block"], content=tail["delta"], interrupted=True)

    async def end_turn(self, how: str = "heard") -> None:
        await self.finish_block(how)
        await self.row("done", how)
        self._turn += 1
        self._block = 0
        await self.row("session", how)

    async def queue_a_message(self, how: str = "heard") -> None:
        waits = f"waits-{len(self.rows)}"
        await self.row("session", how, turn=waits)
        await self.row("user_message", how, turn=waits)
        await self.row("aborted", how, turn=waits)

    async def share(self, how: str = "heard") -> None:
        self.unshared_at = 0
        await self.row("session_updated", how, turn="", visibility="workspace")

    async def unshare(self, how: str = "heard") -> None:
        self.unshared_at = self.unshared_at or len(self.rows) + 1
        await self.row("session_updated", how, turn="", visibility="private")

    async def let_late_rings_come(self) -> None:
        late, self._late = self._late, []
        for row in reversed(late):
            await self._publish(row)

    @property
    def _name(self) -> str:
        return f"turn-{self._turn}"

    async def _publish(self, payload: Payload) -> None:
        await self._bus.publish(bus.session_topic(self.session_id), payload)


class Client:
    """What a page makes of the frames: its author's page."""

    def __init__(self, writer: Writer, after: int) -> None:
        self._writer = writer
        self._after = self.last = after
        self._block: tuple[str, int] | None = None
        self.text = ""
        self._finished: set[tuple[str, int]] = set()
        self.whole_blocks: list[tuple[str, str]] = []  # as it heard them, and as they are
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async with aclosing(follow(self._writer.session_id, self._after, self.look)) as frames:
            async for frame in frames:
                self.take(frame)

    async def look(self) -> None:
        """Its author may always see it."""

    def take(self, frame: Frame) -> None:
        if frame is None:
            return
        if frame["seq"] is None:
            self._take_text(frame)
        else:
            assert frame["seq"] == self.last + 1
            assert frame == self._writer.rows[self.last]
            self.last += 1
            self._take_row(frame)

    def _take_text(self, delta: Payload) -> None:
        block = (delta["turnId"], delta["block"])
        assert block not in self._finished
        if block != self._block:
            assert self._block is None or block > self._block
            self._block, self.text = block, ""
        assert delta["offset"] == len(self.text)
        assert delta["delta"]
        self.text += delta["delta"]

    def _take_row(self, row: Payload) -> None:
        of_this_turn = self._block is not None and self._block[0] == row["turnId"]
        if row["type"] == "text":
            block = (row["turnId"], row["block"])
            self._finished.add(block)
            if block == self._block:
                # What a worker says that is lost already is in no row: the row takes its place.
                begun = self.text[: len(row["content"])] if "interrupted" in row else self.text
                assert row["content"].startswith(begun)
                self.whole_blocks.append((self.text, row["content"]))
            assert not of_this_turn or self._block <= block  # type: ignore[operator]
            self._block, self.text = None, ""
        elif of_this_turn and row["type"] in ("session", "done", "aborted"):
            self._block, self.text = None, ""
        if row["type"] == "session":  # its blocks are counted anew
            self._finished = {block for block in self._finished if block[0] != row["turnId"]}

    async def until(self, is_so: Callable[["Client"], bool]) -> None:
        async with asyncio.timeout(10):
            while not is_so(self):
                if self._reading.done():
                    await self._reading
                await asyncio.sleep(0)

    async def leave(self) -> None:
        self._reading.cancel()
        await asyncio.wait([self._reading])
        if not self._reading.cancelled():
            await self._reading


class Guest(Client):
    """Somebody else of the workspace, who sees what is shared, and none of what comes when it is not."""

    was_closed_out = False

    async def _read(self) -> None:
        try:
            await super()._read()
        except NotFound:
            self.was_closed_out = True

    async def look(self) -> None:
        if self._writer.unshared_at:
            raise NotFound

    def take(self, frame: Frame) -> None:
        super().take(frame)
        assert not 0 < self._writer.unshared_at <= self.last

    async def until_end(self) -> None:
        """Of the stream, or of what there is to see."""
        async with asyncio.timeout(10):
            while not self.was_closed_out and self.last < len(self._writer.rows):
                if self._reading.done():
                    await self._reading
                await asyncio.sleep(0)


@asynccontextmanager
async def a_world(*, silence: float) -> AsyncIterator[Writer]:
    with pytest.MonkeyPatch.context() as patch:
        own_bus = OwnBus()
        writer = Writer(own_bus)
        patch.setattr(memory, "bus", own_bus)
        patch.setattr(stream, "KEEP_ALIVE", silence)
        patch.setattr(stream, "PAGE", 3)
        patch.setattr(stream, "_page", writer.page)
        patch.setattr(stream, "_check_exists", lambda session_id: None)
        await writer.row("session")
        yield writer


HEARD = st.just("heard")
ROWS = st.sampled_from(["heard", "late", "lost", "announced"])
DELTAS = st.sampled_from(["heard", "heard", "heard", "unheard", "lost"])


def steps(rows: st.SearchStrategy[str], deltas: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    lengths = st.integers(1, len(LETTERS))
    return st.lists(
        st.one_of(
            st.tuples(st.just("say"), lengths, deltas),
            st.tuples(st.just("say"), lengths, deltas),
            st.tuples(st.just("finish_block"), rows),
            st.tuples(st.just("give_up_block")),
            st.tuples(st.just("row"), st.sampled_from(["tool_result", "permission_denied"]), rows),
            st.tuples(st.just("queue_a_message"), rows),
            st.tuples(st.just("restart"), rows),
            st.tuples(st.just("end_turn"), rows),
            st.tuples(st.just("let_late_rings_come")),
            st.tuples(st.just("share"), rows),
            st.tuples(st.just("unshare"), rows),
            st.tuples(st.just("join"), st.integers(0, 3)),
            st.tuples(st.just("breathe"), st.integers(1, 50)),
        ),
        max_size=40,
    )


async def play(script: list[Any], *, silence: float, settles: bool) -> list[Client]:
    """Plays it, ends it in good order, and answers the clients when they have seen the end."""
    async with a_world(silence=silence) as writer:
        clients, guest = [Client(writer, 0)], Guest(writer, 0)
        for name, *arguments in script:
            if name == "join":
                clients.append(Client(writer, max(0, len(writer.rows) - arguments[0])))
            elif name == "breathe":
                for _ in range(arguments[0]):
                    await asyncio.sleep(0)
            else:
                await getattr(writer, name)(*arguments)
            if settles:
                for client in clients:
                    await client.until(
                        lambda it: it.last == len(writer.rows) and it.text == writer.unfinished
                    )
        await writer.let_late_rings_come()
        await writer.say(3)
        await writer.finish_block()
        await writer.row("done")
        for client in clients:
            await client.until(lambda it: it.last == len(writer.rows))
            await client.leave()
        await guest.until_end()
        assert guest.was_closed_out or not writer.unshared_at
        await guest.leave()
    return clients


@settings(max_examples=150, deadline=None)
@given(steps(HEARD, HEARD))
def test_over_a_good_bus_the_deltas_are_the_whole_text_however_one_joins(script: list[Any]) -> None:
    calm = [step for step in script if step[0] not in ("give_up_block", "breathe")]
    for client in asyncio.run(play(calm, silence=60, settles=True)):
        assert all(heard == content for heard, content in client.whole_blocks)


@settings(max_examples=250, deadline=None)
@given(steps(ROWS, DELTAS), st.sampled_from([0.001, 60.0]))
def test_over_a_bad_bus_no_row_is_lost_and_no_text_is_wrong(script: list[Any], silence: float) -> None:
    for client in asyncio.run(play(script, silence=silence, settles=False)):
        assert client.text == ""

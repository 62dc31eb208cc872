"""`follow`: whoever follows sees every row once and in order, and of an unfinished block a true beginning."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.models import EventType, Session, SessionEvent, Turn, TurnStatus
from sessions_app.streaming import bus, stream
from sessions_app.streaming.bus.base import Payload
from sessions_app.streaming.log import LARGEST_RING, as_payload, record
from sessions_app.streaming.stream import Frame, follow, follow_turn
from sessions_app.threads import in_thread
from tests.sessions_app.own_bus import OwnBus

pytestmark = [
    pytest.mark.database,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("own_bus", "service_threads"),
]

MakeTurn = Callable[..., Turn]
Frames = AsyncIterator[Frame]


async def may_see() -> None:
    """Whoever follows here may."""


@asynccontextmanager
async def following(session: Session, after: int = 0) -> AsyncIterator[Frames]:
    async with asyncio.timeout(20), aclosing(follow(session.pk, after, may_see)) as frames:
        yield frames


async def take(frames: Frames, count: int) -> list[Any]:
    """The next frames, keep-alives left out."""
    taken: list[Any] = []
    while len(taken) < count:
        frame = await anext(frames)
        taken += [frame] if frame is not None else []
    return taken


async def seqs(frames: Frames, count: int) -> list[int]:
    return [frame["seq"] for frame in await take(frames, count)]


async def write(session: Session, kind: EventType = EventType.MODEL, **more: Any) -> SessionEvent:
    payload = more.pop("payload", {})
    event: SessionEvent = await in_thread(record)(session.pk, kind, payload, **more)
    return event


async def write_unheard(session: Session, kind: EventType = EventType.MODEL, **more: Any) -> None:
    """A row whose ring is lost."""

    def write_row() -> None:
        seq = SessionEvent.objects.filter(session=session).count() + 1
        SessionEvent.objects.create(session=session, seq=seq, type=kind, **more)
        Session.objects.filter(pk=session.pk).update(last_seq=seq)

    await in_thread(write_row)()


async def say(session: Session, text: str, offset: int, **more: Any) -> None:
    delta = {
        "type": "text",
        "sessionId": str(session.pk),
        "turnId": "t1",
        "seq": None,
        "block": 0,
        "offset": offset,
        "delta": text,
        "after": 0,
        **more,
    }
    await bus.current().publish(bus.session_topic(session.pk), delta)


@pytest.fixture
def short_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "KEEP_ALIVE", 0.01)


# Rows


async def test_a_replay_is_the_rows(session: Session) -> None:
    for n in range(5):
        await write(session, EventType.TEXT, payload={"block": n, "content": f"{n}"})
    async with following(session) as frames:
        replayed = await take(frames, 5)
    assert replayed == [as_payload(event) async for event in SessionEvent.objects.after(session.pk, 0)]


async def test_a_replay_starts_after_what_the_reader_has(session: Session) -> None:
    for _ in range(5):
        await write(session)
    async with following(session, after=3) as frames:
        assert await seqs(frames, 2) == [4, 5]


async def test_after_the_replay_it_goes_on_live(session: Session) -> None:
    await write(session)
    async with following(session) as frames:
        assert await seqs(frames, 1) == [1]
        await write(session)
        await write(session)
        assert await seqs(frames, 2) == [2, 3]


async def test_rows_written_during_the_replay_are_neither_lost_nor_doubled(session: Session) -> None:
    for _ in range(3):
        await write(session)
    async with following(session) as frames:
        assert await seqs(frames, 1) == [1]  # in the middle of its first page
        for _ in range(3):
            await write(session)
        assert await seqs(frames, 5) == [2, 3, 4, 5, 6]
        await write(session)
        assert await seqs(frames, 1) == [7]


async def test_rows_written_between_subscription_and_replay_come_once(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_bus = bus.current()
    look = own_bus.tail

    async def look_late(topic: str) -> list[Payload]:
        await write(session)
        return await look(topic)

    monkeypatch.setattr(own_bus, "tail", look_late)
    async with following(session) as frames:
        assert await seqs(frames, 1) == [1]
        await write(session)
        assert await seqs(frames, 1) == [2]


async def test_a_gap_is_filled_from_the_rows(session: Session) -> None:
    async with following(session) as frames:
        await write(session)
        assert await seqs(frames, 1) == [1]
        await write_unheard(session)
        await write_unheard(session)
        await write(session)
        assert await seqs(frames, 3) == [2, 3, 4]


async def test_rings_that_overtake_each_other_change_nothing(session: Session) -> None:
    topic = bus.session_topic(session.pk)
    async with following(session) as frames:
        await write(session)
        assert await seqs(frames, 1) == [1]
        for _ in range(3):
            await write_unheard(session)
        rows = [as_payload(event) async for event in SessionEvent.objects.after(session.pk, 1)]
        for row in (rows[1], rows[0], rows[2], rows[1]):
            await bus.current().publish(topic, row)
        await write(session)
        assert await seqs(frames, 4) == [2, 3, 4, 5]


async def test_a_large_row_is_read_whole(session: Session) -> None:
    content = "x" * (LARGEST_RING + 1)
    async with following(session) as frames:
        await write(session, EventType.TOOL_RESULT, payload={"content": content})
        await write(session)
        large, small = await take(frames, 2)
    assert (large["content"], small["seq"]) == (content, 2)


async def test_a_silence_brings_rows_that_nobody_rang_for(session: Session, short_silence: None) -> None:
    async with following(session) as frames:
        assert await anext(frames) is None
        await write_unheard(session)
        await write_unheard(session)
        assert await seqs(frames, 2) == [1, 2]


async def test_a_listener_that_fell_behind_reads_the_rows(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessions_app.streaming.bus.fanout.KEPT_FOR_A_SLOW_LISTENER", 5)
    async with following(session) as frames:
        await write(session)
        assert await seqs(frames, 1) == [1]
        for _ in range(20):
            await write(session)
        assert await seqs(frames, 20) == list(range(2, 22))


async def test_10_000_rows_are_replayed_in_pages(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    pages: list[int] = []
    read = stream._page

    def counted(session_id: UUID, after: int) -> list[Payload]:
        with CaptureQueriesContext(connection) as queries:
            page = read(session_id, after)
        pages.append(len(page))
        assert len(queries) == 1
        return page

    def fill() -> None:
        for start in range(0, 10_000, 200):
            rows = (SessionEvent(session=session, seq=n + 1, type="model") for n in range(start, start + 200))
            SessionEvent.objects.bulk_create(rows)

    await in_thread(fill)()
    monkeypatch.setattr(stream, "_page", counted)
    async with following(session) as frames:
        assert await seqs(frames, 10_000) == list(range(1, 10_001))
        await say(session, "Q", 0, after=10_000)
        assert (await take(frames, 1))[0]["delta"] == "Q"
    assert pages == [stream.PAGE] * (10_000 // stream.PAGE) + [0]


async def test_a_page_of_large_rows_is_a_short_one(session: Session) -> None:
    for _ in range(12):
        await write(session, EventType.TOOL_RESULT, payload={"content": "x" * (stream.LARGEST_PAGE // 4)})
    assert len(await in_thread(stream._page)(session.pk, 0)) == 4
    async with following(session) as frames:
        assert await seqs(frames, 12) == list(range(1, 13))


async def test_many_readers_see_the_same(session: Session) -> None:
    async def read() -> list[int]:
        async with following(session) as frames:
            return await seqs(frames, 30)

    readers = [asyncio.create_task(read()) for _ in range(20)]
    for _ in range(30):
        await write(session)
    assert await asyncio.gather(*readers) == [list(range(1, 31))] * 20


async def test_a_reader_that_leaves_is_forgotten(session: Session, own_bus: OwnBus) -> None:
    topic = bus.session_topic(session.pk)
    async with following(session) as frames:
        await write(session)
        await seqs(frames, 1)
        assert topic in own_bus._fanouts[asyncio.get_running_loop()]
    assert topic not in own_bus._fanouts[asyncio.get_running_loop()]


# Text


async def texts(frames: Frames, count: int) -> list[tuple[int, str]]:
    return [(frame["offset"], frame["delta"]) for frame in await take(frames, count)]


async def test_who_joins_in_the_middle_gets_the_text_so_far_and_then_the_rest(session: Session) -> None:
    await say(session, "Quin", 0)
    await say(session, "ces ", 4)
    async with following(session) as frames:
        assert await texts(frames, 1) == [(0, "Quinces ")]
        await say(session, "are", 8)
        assert await texts(frames, 1) == [(8, "are")]


async def test_a_delta_says_nothing_of_our_own_ways(session: Session) -> None:
    await say(session, "Quin", 0)
    async with following(session) as frames:
        assert set((await take(frames, 1))[0]) == {
            *("type", "sessionId", "turnId", "seq"),
            *("block", "offset", "delta"),
        }


async def test_what_the_text_so_far_holds_is_not_said_again(session: Session, own_bus: OwnBus) -> None:
    await say(session, "Quin", 0)
    async with following(session) as frames:
        assert await texts(frames, 1) == [(0, "Quin")]
        await say(session, "Quince", 0)  # it was in the queue when the tail was read
        await say(session, "s", 6)
        assert await texts(frames, 2) == [(4, "ce"), (6, "s")]


async def test_a_row_comes_before_the_text_that_follows_it(session: Session) -> None:
    async with following(session) as frames:
        await write(session)
        assert await seqs(frames, 1) == [1]
        await write_unheard(session, EventType.TEXT, payload={"block": 0, "content": "Quin"})
        await say(session, "Pe", 0, block=1, after=2)
        assert [frame["seq"] for frame in await take(frames, 2)] == [2, None]


async def test_the_text_of_a_finished_block_is_not_said_any_more(session: Session) -> None:
    async with following(session) as frames:
        await say(session, "Quin", 0)
        assert await texts(frames, 1) == [(0, "Quin")]
        await write_unheard(session, EventType.TEXT, payload={"block": 0, "content": "Quin"})
        await say(session, "Pears", 0, block=1, after=1)
        assert [frame.get("delta") for frame in await take(frames, 2)] == [None, "Pears"]
        await say(session, "ces", 4)
        await say(session, "!", 5, block=1, after=1)
        assert await texts(frames, 1) == [(5, "!")]


async def a_turn(session: Session) -> Turn:
    made: Turn = await Turn.objects.acreate(session=session, opened_seq=2)
    return made


async def test_a_reader_past_the_finished_block_is_not_given_its_tail(session: Session) -> None:
    """The row is there, and the ring that takes the tail away is not yet."""
    turn = await a_turn(session)
    await say(session, "Quin", 0, turnId=str(turn.pk))
    await write_unheard(session, EventType.TEXT, turn=turn, payload={"block": 0, "content": "Quin"})
    async with following(session, after=1) as frames:
        await write(session)
        assert await seqs(frames, 1) == [2]


async def test_a_message_that_waits_does_not_cut_off_the_text(session: Session) -> None:
    waiting = await a_turn(session)
    async with following(session) as frames:
        await say(session, "Quin", 0)
        assert await texts(frames, 1) == [(0, "Quin")]
        await write(session, EventType.SESSION, turn_id=waiting.pk)
        await write(session, EventType.ABORTED, turn_id=waiting.pk)
        assert await seqs(frames, 2) == [1, 2]
        await say(session, "ces", 4)
        assert await texts(frames, 1) == [(4, "ces")]


async def test_a_hole_in_the_text_is_filled_from_the_tail(session: Session, own_bus: OwnBus) -> None:
    async with following(session) as frames:
        await say(session, "Quin", 0)
        assert await texts(frames, 1) == [(0, "Quin")]
        own_bus.is_deaf = True
        await say(session, "ces", 4)
        own_bus.is_deaf = False
        await say(session, " are", 7)
        assert "".join(text for _, text in await texts(frames, 1)) == "ces are"


async def test_a_hole_that_the_tail_has_too_is_asked_for_once(
    session: Session, own_bus: OwnBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    look = own_bus.tail

    async def counted(topic: str) -> list[Payload]:
        asked.append(topic)
        return await look(topic)

    monkeypatch.setattr(own_bus, "tail", counted)
    async with following(session) as frames:
        await say(session, "Quin", 0)
        assert await texts(frames, 1) == [(0, "Quin")]
        for n in range(1, 20):
            await say(session, "x", n, block=1)
        await write(session)
        assert await seqs(frames, 1) == [1]
    assert len(asked) == 2  # when it joined, and for the hole


# One turn


async def test_one_turn_is_followed_to_its_end_and_no_other(session: Session, turn: MakeTurn) -> None:
    own, other = [await in_thread(turn)(TurnStatus.DONE) for _ in range(2)]
    for kind, of_turn in (
        (EventType.SESSION, own),
        (EventType.SESSION, other),
        (EventType.ABORTED, other),
        (EventType.SESSION_UPDATED, None),
        (EventType.DONE, own),
        (EventType.WARNING, own),
    ):
        await write(session, kind, turn_id=of_turn and of_turn.pk)
    frames = [frame async for frame in follow_turn(session.pk, own.pk, 0, may_see)]
    assert [frame["seq"] for frame in frames if frame] == [1, 5]


async def test_a_followed_turn_that_is_over_leaves_no_listener(
    session: Session, turn: MakeTurn, own_bus: OwnBus
) -> None:
    own = await in_thread(turn)(TurnStatus.DONE)
    await write(session, EventType.DONE, turn_id=own.pk)
    async for _ in follow_turn(session.pk, own.pk, 0, may_see):
        pass
    assert bus.session_topic(session.pk) not in own_bus._fanouts[asyncio.get_running_loop()]


async def test_a_turn_that_waits_is_kept_alive_while_another_speaks(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 1_000, 6))
    monkeypatch.setattr(stream, "monotonic", lambda: next(clock))
    async with aclosing(follow_turn(session.pk, uuid4(), 0, may_see)) as frames, asyncio.timeout(10):
        for _ in range(6):
            await write(session)
        assert [await anext(frames), await anext(frames)] == [None, None]

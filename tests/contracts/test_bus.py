"""What `sessions_app/streaming/bus/base.py` promises, kept by each backend. The real Valkey is among them."""

import asyncio
import contextlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings
from redis import Redis
from redis.exceptions import RedisError

from parachute_site.up.valkey import binary
from sessions_app.models import EventType
from sessions_app.models.event import TERMINAL
from sessions_app.streaming import bus as buses
from sessions_app.streaming.bus import channel_layer, fanout, memory, tails
from sessions_app.streaming.bus.base import Bus, Listener, Payload
from sessions_app.streaming.bus.channel_layer import ChannelLayerBus
from sessions_app.streaming.bus.memory import MemoryBus

TOPIC = "session.one"
PASSWORD = "only-for-tests"


class Valkey:
    """A real server on a unix socket. Its path must stay short."""

    def __init__(self, folder: Path) -> None:
        self._socket = folder / "v.sock"
        self._config = folder / "v.conf"
        self._config.write_text(
            f'port 0\nunixsocket "{self._socket}"\nrequirepass {PASSWORD}\nsave ""\nappendonly no\n'
        )
        self.url = f"unix://:{PASSWORD}@{self._socket}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen([binary(), self._config], stdout=subprocess.DEVNULL)
        while not self.answers():
            os.sched_yield()

    def answers(self) -> bool:
        assert self._process is not None and self._process.poll() is None, "Valkey did not start"
        try:
            return bool(self.client().ping())
        except RedisError:
            return False

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def client(self) -> Any:
        return Redis.from_url(self.url)

    def subscriptions(self, topic: str) -> int:
        ((_, count),) = self.client().pubsub_numsub(f"parachute__group__topic.{topic}")
        return int(count)


@pytest.fixture
def stopped_valkey() -> Iterator[Valkey]:
    folder = Path(tempfile.mkdtemp(prefix="v-", dir="/tmp"))
    server = Valkey(folder)
    layer = {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [server.url], "prefix": "parachute"},
    }
    with override_settings(
        CHANNEL_LAYERS={"default": layer},
        PARACHUTE_REDIS=server.url,
        PARACHUTE_BUS="sessions_app.streaming.bus.channel_layer",
    ):
        yield server
    server.kill()
    shutil.rmtree(folder)


@pytest.fixture
def valkey(stopped_valkey: Valkey) -> Valkey:
    stopped_valkey.start()
    return stopped_valkey


@pytest.fixture(params=["memory", "channel_layer"])
def bus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Bus:
    fresh: Bus
    if request.param == "memory":
        fresh = MemoryBus()
        monkeypatch.setattr(memory, "bus", fresh)
    else:
        request.getfixturevalue("valkey")
        fresh = ChannelLayerBus()
        monkeypatch.setattr(channel_layer, "bus", fresh)
    return fresh


@pytest.fixture
def over_valkey(valkey: Valkey) -> ChannelLayerBus:
    return ChannelLayerBus()


def delta(text: str, offset: int, *, turn: str = "t1", block: int = 0, after: int = 5) -> Payload:
    return {
        "type": "text",
        "turnId": turn,
        "block": block,
        "offset": offset,
        "delta": text,
        "after": after,
        "seq": None,
    }


def row(kind: str, seq: int, *, turn: str | None = "t1") -> Payload:
    return {"type": kind, "turnId": turn, "seq": seq}


async def heard(listener: Listener, count: int) -> list[Payload]:
    """The next ones, and no silence between them."""
    async with asyncio.timeout(10):
        return [payload for _ in range(count) if (payload := await listener.next(5)) is not None]


async def say(bus: Bus, *payloads: Payload) -> None:
    for payload in payloads:
        await bus.publish(TOPIC, payload)


@asynccontextmanager
async def listening(bus: Bus, count: int) -> AsyncIterator[list[Listener]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(bus.subscribe(TOPIC)) for _ in range(count)]


async def test_what_is_published_after_subscribing_is_heard_in_order(bus: Bus) -> None:
    async with bus.subscribe(TOPIC) as listener:
        await say(bus, *(row("model", n) for n in range(100)))
        assert [payload["seq"] for payload in await heard(listener, 100)] == list(range(100))


async def test_what_was_published_before_is_not_heard(bus: Bus) -> None:
    await say(bus, row("model", 1))
    async with bus.subscribe(TOPIC) as listener:
        await say(bus, row("model", 2))
        assert (await heard(listener, 1))[0]["seq"] == 2


async def test_a_payload_arrives_as_it_was(bus: Bus) -> None:
    payload = {**row("tool_use", 3), "tool": {"input": {"a": [1, None, True, "é\u2028🦆"]}}}
    async with bus.subscribe(TOPIC) as listener:
        await say(bus, payload)
        assert await heard(listener, 1) == [payload]


async def test_every_listener_of_a_topic_hears_it(bus: Bus) -> None:
    async with listening(bus, 20) as listeners:
        await say(bus, row("model", 1), row("model", 2))
        assert [[p["seq"] for p in await heard(each, 2)] for each in listeners] == [[1, 2]] * 20


async def test_another_topic_is_not_heard(bus: Bus) -> None:
    async with bus.subscribe(TOPIC) as listener, bus.subscribe("session.two") as other:
        await bus.publish("session.two", row("model", 1))
        await say(bus, row("model", 2))
        assert (await heard(listener, 1))[0]["seq"] == 2
        assert (await heard(other, 1))[0]["seq"] == 1


async def test_silence_is_told(bus: Bus) -> None:
    async with bus.subscribe(TOPIC) as listener:
        assert await listener.next(0.01) is None


async def test_who_left_is_not_counted_and_may_come_back(bus: Bus) -> None:
    for n in range(3):
        async with bus.subscribe(TOPIC) as listener:
            await say(bus, row("model", n))
            assert (await heard(listener, 1))[0]["seq"] == n


async def test_one_leaves_and_the_other_still_hears(bus: Bus) -> None:
    async with bus.subscribe(TOPIC) as stays:
        async with bus.subscribe(TOPIC):
            pass
        await say(bus, row("model", 1))
        assert (await heard(stays, 1))[0]["seq"] == 1


async def test_who_stalls_is_told_to_read_again_and_costs_a_bounded_amount(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fanout, "KEPT_FOR_A_SLOW_LISTENER", 50)
    async with listening(bus, 2) as (stalls, reads):
        for n in range(175):
            await say(bus, row("model", n))
            await heard(reads, 1)  # so it has reached the other one too
        kept: list[Payload | None] = []
        while kept[-1:] != [row("model", 174)]:
            kept.append(await stalls.next(5))
    assert kept[0] is None
    assert len(kept) <= 50
    assert kept[1:] == [row("model", n) for n in range(175 - len(kept) + 1, 175)]


async def test_a_ring_from_a_thread_is_heard(bus: Bus, settings: Any) -> None:
    settings.PARACHUTE_BUS = type(bus).__module__
    async with bus.subscribe(TOPIC) as listener:
        thread = threading.Thread(target=lambda: [buses.ring(TOPIC, row("model", n)) for n in range(100)])
        thread.start()
        assert [payload["seq"] for payload in await heard(listener, 100)] == list(range(100))
        thread.join()


async def test_a_ring_that_cannot_be_sent_is_said(
    bus: Bus, settings: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PARACHUTE_BUS = type(bus).__module__
    monkeypatch.setattr(type(bus), "publish", lambda *_: 1 / 0)
    assert buses.ring(TOPIC, row("model", 1)).result(5) is None
    assert "A ring for session.one was lost" in caplog.text


RINGS_AND_ENDS = """
from sessions_app.streaming import bus
bus.ring_lists(7)
bus.ring("session.one", {"type": "model", "turnId": None, "seq": 1})
"""


async def test_a_process_that_ends_has_rung_before(
    valkey: Valkey, over_valkey: ChannelLayerBus, tmp_path: Path
) -> None:
    async with over_valkey.subscribe(TOPIC) as session, over_valkey.subscribe(buses.LISTS) as lists:
        assert await rings_and_ends(valkey, tmp_path) == (0, "")
        assert await heard(session, 1) == [row("model", 1, turn=None)]
        assert await heard(lists, 1) == [{"workspace": 7}]


async def test_a_process_that_cannot_ring_ends_all_the_same(stopped_valkey: Valkey, tmp_path: Path) -> None:
    status, said = await rings_and_ends(stopped_valkey, tmp_path)
    assert status == 0
    assert "The bus is away" in said
    assert "Traceback" not in said


async def rings_and_ends(server: Valkey, home: Path) -> tuple[int | None, str]:
    """What it ended with, and what it complained of."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "manage.py", "shell", "-c", RINGS_AND_ENDS),
        cwd=Path(__file__).parents[2],
        env={"PARACHUTE_HOME": str(home), "VAULT_PATH": str(home), "REDIS_URL": server.url},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    _, said = await asyncio.wait_for(process.communicate(), 30)
    return process.returncode, said.decode()


# The tail


async def text_of(bus: Bus) -> str | None:
    tail = await bus.tail(TOPIC)
    return tail[0]["delta"] if tail else None


async def test_the_tail_is_the_text_so_far_as_one_delta(bus: Bus) -> None:
    await say(bus, delta("Qui", 0), delta("nces ", 3), delta("🦆", 8), delta("!", 9))
    assert await bus.tail(TOPIC) == [delta("Quinces 🦆!", 0)]


async def test_there_is_no_tail_before_the_first_delta(bus: Bus) -> None:
    assert await bus.tail(TOPIC) == []


@pytest.mark.parametrize("kind", ["text", "thinking", "session", "done", "aborted", "error", "typed_error"])
async def test_the_finished_block_or_the_end_takes_the_tail_away(bus: Bus, kind: str) -> None:
    await say(bus, delta("Quin", 0), row(kind, 6))
    assert await text_of(bus) is None


async def test_a_session_that_is_deleted_leaves_no_text(bus: Bus) -> None:
    await say(bus, delta("Quin", 0), {"type": tails.DELETED})
    assert await bus.tail(TOPIC) == []


@pytest.mark.parametrize("kind", ["tool_result", "permission_denied", "session_updated"])
async def test_rows_in_the_middle_of_a_block_leave_its_tail(bus: Bus, kind: str) -> None:
    await say(bus, delta("Quin", 0), row(kind, 6), delta("ces", 4))
    assert await text_of(bus) == "Quinces"


@pytest.mark.parametrize("kind", ["session", "user_message", "aborted"])
async def test_a_turn_that_waits_leaves_the_tail_of_the_one_that_runs(bus: Bus, kind: str) -> None:
    await say(bus, delta("Quin", 0), row(kind, 6, turn="t2"), delta("ces", 4))
    assert await text_of(bus) == "Quinces"


async def test_the_late_ring_of_a_finished_block_leaves_the_tail_of_the_next(bus: Bus) -> None:
    await say(bus, delta("Qui", 0), delta("Pears", 0, block=1, after=6), row("text", 6))
    assert await text_of(bus) == "Pears"


async def test_a_new_block_takes_the_place_of_one_that_was_given_up(bus: Bus) -> None:
    await say(bus, delta("Qui", 0), delta("Pe", 0, block=1), delta("ars", 2, block=1))
    assert await bus.tail(TOPIC) == [delta("Pears", 0, block=1)]


async def test_a_tail_with_a_hole_is_its_true_beginning(bus: Bus) -> None:
    await say(bus, delta("Qui", 0), delta("s are", 7), delta(" ripe", 12))
    assert await text_of(bus) == "Qui"


async def test_what_an_older_attempt_still_says_is_not_in_the_tail(bus: Bus) -> None:
    await say(bus, delta("Qui", 0), delta("Pea", 0, after=8), delta("nces", 3), delta("rs", 3, after=8))
    assert await text_of(bus) == "Pears"


async def test_a_tail_without_a_beginning_is_none(bus: Bus) -> None:
    await say(bus, delta("nces", 3))
    assert await text_of(bus) is None


def test_what_ends_a_tail_is_what_ends_a_block() -> None:
    assert {EventType.TEXT, EventType.THINKING, EventType.SESSION, *TERMINAL} == tails.ENDING


# Over Redis only


async def test_200_listeners_in_one_process_are_one_subscription(
    over_valkey: ChannelLayerBus, valkey: Valkey
) -> None:
    async with listening(over_valkey, 200) as listeners:
        await say(over_valkey, row("model", 1))
        assert [len(await heard(listener, 1)) for listener in listeners] == [1] * 200
        assert valkey.subscriptions(TOPIC) == 1
    assert valkey.subscriptions(TOPIC) == 0


async def test_listeners_that_come_and_go_at_once_leave_no_subscription_and_miss_nothing(
    over_valkey: ChannelLayerBus, valkey: Valkey
) -> None:
    async def come_and_go(n: int) -> None:
        for _ in range(5):
            async with over_valkey.subscribe(TOPIC) as listener:
                await say(over_valkey, row("model", n))
                assert await heard(listener, 1)

    await asyncio.gather(*(come_and_go(n) for n in range(20)))
    assert valkey.subscriptions(TOPIC) == 0


async def test_a_tail_goes_away_by_itself(over_valkey: ChannelLayerBus, valkey: Valkey) -> None:
    await say(over_valkey, delta("Qui", 0), delta("n", 3))
    assert 0 < valkey.client().ttl(f"parachute:tail:{TOPIC}") <= tails.LIVES


async def test_a_bus_that_is_away_is_a_warning_and_no_error(
    stopped_valkey: Valkey, caplog: pytest.LogCaptureFixture
) -> None:
    bus = ChannelLayerBus()
    await say(bus, delta("Qui", 0))
    assert await bus.tail(TOPIC) == []
    async with bus.subscribe(TOPIC) as listener:
        assert await listener.next(0.01) is None
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    assert "The bus is away" in caplog.text


async def test_a_bus_that_is_away_is_left_alone_for_a_while(
    stopped_valkey: Valkey, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_layer, "LEFT_ALONE_FOR", 1_000.0)
    bus = ChannelLayerBus()
    await say(bus, *(delta("Qui", n) for n in range(1_000)))
    assert len(caplog.records) == 1


async def test_a_bus_that_does_not_answer_holds_nobody_up(
    stopped_valkey: Valkey, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_layer, "ANSWERS_WITHIN", 0.05)
    gone = asyncio.Event()

    async def never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            await gone.wait()

    path = stopped_valkey.url.partition("@")[2]
    async with await asyncio.start_unix_server(never_answer, path), asyncio.timeout(5):
        await say(ChannelLayerBus(), delta("Qui", 0))
        assert "TimeoutError" in caplog.text
        gone.set()


async def test_who_subscribed_while_the_bus_was_away_hears_it_when_it_is_there(
    stopped_valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_layer, "LEFT_ALONE_FOR", 0.0)
    bus = ChannelLayerBus()
    async with bus.subscribe(TOPIC) as listener:
        stopped_valkey.start()
        assert await listener.next(0.01) is None  # and joins
        await say(bus, row("model", 1))
        assert (await heard(listener, 1))[0]["seq"] == 1


async def test_after_a_restart_of_the_bus_listeners_read_again_and_hear_again(
    over_valkey: ChannelLayerBus, valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_layer, "LEFT_ALONE_FOR", 0.0)
    async with over_valkey.subscribe(TOPIC) as listener, asyncio.timeout(20):
        await say(over_valkey, row("model", 1))
        assert await heard(listener, 1)
        valkey.kill()
        await say(over_valkey, row("model", 2))  # lost
        valkey.start()
        assert await listener.next(0.05) is None
        while (again := await listener.next(0.05)) is None:
            await say(over_valkey, row("model", 3))
        assert again["seq"] == 3


@pytest.mark.parametrize("was_there", [True, False])
async def test_when_the_bus_is_back_the_listeners_are_told_to_read_again(
    stopped_valkey: Valkey, monkeypatch: pytest.MonkeyPatch, was_there: bool
) -> None:
    """Within seconds, though nothing is said any more; those too that came while it was away."""
    monkeypatch.setattr(channel_layer, "BEATS_EVERY", 0.05)
    monkeypatch.setattr(channel_layer, "LEFT_ALONE_FOR", 0.05)
    bus = ChannelLayerBus()
    if was_there:
        stopped_valkey.start()
    async with bus.subscribe(TOPIC) as listener, asyncio.timeout(20):
        if was_there:
            stopped_valkey.kill()
            await say(bus, row("model", 1))  # lost
        stopped_valkey.start()
        assert await listener.next(60) is None
        await say(bus, row("model", 2))
        while (again := await listener.next(60)) is None:
            pass
        assert again["seq"] == 2


async def test_hundreds_that_join_at_once_all_get_the_tail(over_valkey: ChannelLayerBus) -> None:
    await say(over_valkey, delta("Quin", 0))
    tails_of_all = await asyncio.gather(*(over_valkey.tail(TOPIC) for _ in range(400)))
    assert [tail[0]["delta"] for tail in tails_of_all] == ["Quin"] * 400


async def test_an_outage_is_told_once(
    valkey: Valkey, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_layer, "LEFT_ALONE_FOR", 0.0)
    bus = ChannelLayerBus()
    for outage in (1, 2):
        await say(bus, row("model", 1))
        valkey.kill()
        await say(bus, *(row("model", n) for n in range(3)))
        valkey.start()
        assert caplog.text.count("The bus is away") == outage


async def test_what_is_not_understood_makes_nobody_deaf(
    over_valkey: ChannelLayerBus, valkey: Valkey, caplog: pytest.LogCaptureFixture
) -> None:
    async with over_valkey.subscribe(TOPIC) as listener:
        valkey.client().publish(f"parachute__group__topic.{TOPIC}", b"\xc1")
        await say(over_valkey, row("model", 1))
        assert await listener.next(5) is None
        assert (await heard(listener, 1))[0]["seq"] == 1
    assert "not understood" in caplog.text


async def test_who_is_cancelled_while_publishing_is_cancelled(bus: Bus) -> None:
    """At whatever step it comes: the Redis client loses one in five."""

    async def speaks() -> None:
        await bus.publish(TOPIC, delta("a", 0))
        await asyncio.Event().wait()

    for steps in range(60):
        speaking = asyncio.create_task(speaks())
        for _ in range(steps):
            await asyncio.sleep(0)
        speaking.cancel()
        done, _ = await asyncio.wait({speaking}, timeout=5)
        assert done

"""Real readers of the real server: they stall, come back, come in hundreds, and lose the bus or the database.

Whoever stays, or comes back with the last id it saw, has every row once and in order, and whole text.
"""

import asyncio
import json
import re
import socket
import sqlite3
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, closing
from typing import Self
from uuid import UUID

import aiohttp
import psutil
import pytest

from agents_app.model.demo.wire import Happening, Reply, Stall, Text
from sessions_app.streaming.stream import KEEP_ALIVE
from tests.depth import few_of
from tests.processes.conftest import House
from tests.processes.program import TERMINAL, Event, Program
from tests.processes.running import RunningUp
from tests.scripted_model import Gate, ScriptedModel

pytestmark = pytest.mark.processes

PATIENCE = 90.0
PACE = 0.02  # seconds between two pieces

LOCKS_THE_DATABASE = """
import sqlite3, sys, time
database = sqlite3.connect(sys.argv[1], timeout=20, isolation_level=None)
database.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
time.sleep(3)
database.execute("COMMIT")
"""


class Seen:
    """What one reader makes of its frames. A frame that does not fit to those before it fails the test."""

    def __init__(self) -> None:
        self.last = 0
        self.types: list[str] = []
        self.contents: list[str] = []  # of each row of text
        self.joined: list[tuple[str, str]] = []  # of each block: the deltas, and the row
        self._block: tuple[str, int] | None = None
        self._text = ""
        self._is_over = False
        self.rejoined = False

    def take(self, event: Event) -> None:
        if event["seq"] is None:
            self._take_delta(event)
            return
        assert event["seq"] == self.last + 1, (event["seq"], self.last)
        self.last = event["seq"]
        self.types.append(event["type"])
        if event["type"] == "text":
            self._take_block(event)

    def _take_delta(self, delta: Event) -> None:
        block = (delta["turnId"], delta["block"])
        if block != self._block or self.rejoined:
            self._block, self._text = block, ""
        self.rejoined = False
        assert delta["offset"] == len(self._text)
        self._text += delta["delta"]

    def _take_block(self, row: Event) -> None:
        self.contents.append(row["content"])
        if self._block == (row["turnId"], row["block"]):
            assert row["content"].startswith(self._text)
            if not self.rejoined:
                self.joined.append((self._text, row["content"]))
        self._block, self._text = None, ""

    @property
    def text(self) -> str:
        """Of the block that is being written."""
        return self._text

    @property
    def endings(self) -> list[str]:
        return [kind for kind in self.types if kind in TERMINAL]


class Readers:
    """Opens readers over one HTTP client."""

    def __init__(self, up: RunningUp, program: Program, web: aiohttp.ClientSession) -> None:
        self._up, self._key, self._web = up, program.key, web

    @classmethod
    @asynccontextmanager
    async def of(cls, up: RunningUp, program: Program) -> AsyncIterator[Self]:
        headers = {"Authorization": f"Bearer {program.key}"}
        connector = aiohttp.TCPConnector(limit=0)
        patience = aiohttp.ClientTimeout(PATIENCE)
        async with (
            asyncio.timeout(PATIENCE),
            aiohttp.ClientSession(up.address, headers=headers, connector=connector, timeout=patience) as web,
        ):
            yield cls(up, program, web)

    async def post(self, message: str, session: str | None = None) -> str:
        order = {"message": message, "sessionId": session}
        async with self._web.post("/api/chat", json=order, headers={"Prefer": "respond-async"}) as answer:
            assert answer.status == 202, await answer.text()
            return str((await answer.json())["sessionId"])

    async def sse(self, session: str, after: int = 0) -> AsyncGenerator[Event]:
        path, sent = f"/api/chat/{session}/events", {"Last-Event-ID": str(after)}
        async with self._web.get(path, headers=sent, max_line_size=1 << 24) as answer:
            assert answer.status == 200
            rest = b""
            async for part in answer.content.iter_any():
                *lines, rest = (rest + part).split(b"\n")
                for line in lines:
                    if line.startswith(b"data:"):
                        yield json.loads(line[5:])

    async def socket(self, session: str) -> AsyncGenerator[Event]:
        async with self._web.ws_connect(f"/ws/chat/{session}", max_msg_size=0) as ws:
            async for message in ws:
                event = json.loads(message.data)
                if event["type"] != "keep_alive":
                    yield event

    async def until_over(
        self, events: AsyncIterator[Event], seen: Seen | None = None, turns: int = 1
    ) -> Seen:
        seen = seen or Seen()
        async for event in events:
            seen.take(event)
            if len(seen.endings) == turns:
                break
        else:
            raise AssertionError(f"The stream ended after {seen.types}")
        return seen

    async def stalled(self, session: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection with small buffers on which a reader has asked, and reads nothing."""
        ours = socket.socket()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
        ours.setblocking(False)
        await asyncio.get_running_loop().sock_connect(ours, ("127.0.0.1", self._up.port))
        reader, writer = await asyncio.open_connection(sock=ours, limit=1 << 24)
        asks = f"GET /api/chat/{session}/events HTTP/1.0\r\nHost: localhost\r\nX-API-Key: {self._key}\r\n\r\n"
        writer.write(asks.encode())
        assert await reader.readline() == b"HTTP/1.0 200 OK\r\n"
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        return reader, writer


async def after(first: Event, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    yield first
    async for event in events:
        yield event


async def resumed(reader: asyncio.StreamReader) -> AsyncIterator[Event]:
    reader._transport.resume_reading()  # type: ignore[attr-defined]
    while line := await reader.readline():
        if line.startswith(b"data:"):
            yield json.loads(line[5:])


def paced(*marks: str | Happening, pieces: int) -> tuple[str | Happening, ...]:
    """For each mark so many small pieces at an even pace, and then the mark."""
    parts: list[str | Happening] = []
    for number, mark in enumerate(marks):
        for piece in range(pieces):
            parts += [f"w{number}-{piece:03} ", Stall(PACE)]
        parts.append(mark)
    return tuple(parts)


def memory_of(up: RunningUp, name: str) -> float:
    return float(psutil.Process(up.pid_of(name)).memory_full_info().uss) / 1e6


async def test_readers_that_stall_cost_little_and_then_have_everything(
    up: RunningUp, program: Program, model: ScriptedModel
) -> None:
    blocks, block, stalling = 160, "quinces " * 5_000, 12  # 6.4 MB to each, twice: as deltas and as rows
    gate = model.hold()
    model.script("a lot", [Reply((Text("So: "), gate, *(Text(block) for _ in range(blocks))), piece=4_000)])
    async with Readers.of(up, program) as readers:
        session = await readers.post("a lot")
        stalled = [await readers.stalled(session) for _ in range(stalling)]
        sockets = [readers.socket(session) for _ in range(stalling)]
        firsts = [await anext(events) for events in sockets]
        reads = asyncio.create_task(readers.until_over(readers.sse(session)))
        assert await asyncio.to_thread(gate.reached.wait, PATIENCE)
        before = memory_of(up, "web")
        gate.release()
        at_once = await reads
        grown = memory_of(up, "web") - before
        late = await asyncio.gather(
            *(readers.until_over(resumed(reader)) for reader, _ in stalled),
            *(
                readers.until_over(after(first, events))
                for first, events in zip(firsts, sockets, strict=True)
            ),
        )
        for _, writer in stalled:
            writer.close()
    assert [seen.types for seen in late] == [at_once.types] * (2 * stalling)
    assert at_once.endings == ["done"]
    assert all(deltas == content for deltas, content in at_once.joined)
    assert grown < 90, f"{2 * stalling} stalled readers cost {grown:.0f} MB"


async def test_readers_that_come_back_again_and_again_miss_nothing(house: House) -> None:
    up, program, model = house.up, house.program, house.model
    model.script("evenly", [Reply(tuple(Text(*paced("", pieces=60)) for _ in range(4)))])

    async def comes_back(every: int) -> Seen:
        """Leaves after so many frames, and comes back with the last id that it saw."""
        seen, visits = Seen(), 0
        while not seen.endings:
            visits += 1
            seen.rejoined = True
            async with aclosing(readers.sse(session, seen.last)) as events:
                for _ in range(every):
                    seen.take(await anext(events))
                    if seen.endings:
                        break
        assert visits > 3
        return seen

    async with Readers.of(up, program) as readers:
        session = await readers.post("evenly")
        stays = asyncio.create_task(readers.until_over(readers.sse(session)))
        came_back = await asyncio.gather(*(comes_back(every) for every in range(3, 15)))
        whole = await stays
    assert len(whole.joined) == 4
    assert all(seen.types == whole.types for seen in came_back)
    assert all(deltas == content for seen in (whole, *came_back) for deltas, content in seen.joined)


@pytest.mark.depth
async def test_hundreds_of_readers_at_once_see_the_same(house: House) -> None:
    up, program, model = house.up, house.program, house.model
    before = len(up.lines)
    block = paced("", pieces=100)
    for number in range(4):
        model.script(f"number {number}.", [Reply((Text(*block), Text(*block)))])
    async with Readers.of(up, program) as readers:
        sessions = [await readers.post(f"number {number}.") for number in range(4)]
        by_sse = [readers.until_over(readers.sse(sessions[number % 4])) for number in range(200)]
        by_socket = [readers.until_over(readers.socket(sessions[number % 4])) for number in range(100)]
        every = await asyncio.gather(*by_sse, *by_socket)
    for seen in every:
        assert seen.endings == ["done"]
        assert seen.contents == ["".join(part for part in block if isinstance(part, str))] * 2
    assert any(seen.joined for seen in every)
    cut = [seen for seen in every if any(deltas != content for deltas, content in seen.joined)]
    # On a machine with more to do than this the bus may seem away, and a block's deltas end before it does.
    assert not cut or "The bus is away" in "\n".join(up.lines[before:])


@pytest.mark.parametrize("times", few_of([1, 3], 1))
async def test_the_bus_is_killed(shaken: House, times: int) -> None:
    """In mid-sentence, with messages that come while it is away. Text may stop until its block is finished;
    rows may not."""
    up, program, model = shaken.up, shaken.program, shaken.model
    before = len(up.lines)
    gates: dict[int, list[Gate]] = {number: [model.hold() for _ in range(times)] for number in range(3)}
    for number, stops in gates.items():
        blocks = [Text(*paced(stop, "", pieces=60)) for stop in stops]
        model.script(f"number {number}.", [Reply(tuple(blocks))])
    async with Readers.of(up, program) as readers:
        sessions = [await readers.post(f"number {number}.") for number in range(3)]
        reads = [
            asyncio.create_task(readers.until_over(kind(session), turns=1 + times))
            for session in sessions
            for kind in (readers.sse, readers.socket)
            for _ in range(8 if times > 1 else 2)
        ]
        for killed in range(times):
            stops = [gates[number][killed] for number in range(3)]
            starts = len(re.findall(r"valkey started", up.text))
            up.kill("valkey")
            for session in sessions:
                await readers.post("and then?", session)
            await asyncio.to_thread(up.wait_log, r"valkey started", times=starts + 1)
            await asyncio.to_thread(up.wait_health)
            for stop in stops:
                assert await asyncio.to_thread(stop.reached.wait, PATIENCE)
                stop.release()
        every = await asyncio.gather(*reads)
    for seen in every:
        assert seen.endings == ["done"] * (1 + times)
        assert seen.types.count("text") == 2 * times
    assert "was taken back" not in "\n".join(up.lines[before:])


async def test_the_database_is_locked_for_three_seconds(house: House) -> None:
    up, program, model = house.up, house.program, house.model
    before = len(up.lines)
    for number in range(6):
        model.script(f"number {number}.", [Reply(tuple(Text(*paced("", pieces=30)) for _ in range(8)))])
    async with Readers.of(up, program) as readers:
        sessions = [await readers.post(f"number {number}.") for number in range(6)]
        reads = [
            asyncio.create_task(readers.until_over(kind(session), turns=2))
            for session in sessions
            for kind in (readers.sse, readers.socket)
        ]
        async for event in readers.sse(sessions[0]):
            if event["type"] == "text":
                break
        with locking(up) as locker:
            posts = [readers.post("and then?", session) for session in sessions]
            new = [readers.post("hello") for _ in range(4)]
            began = asyncio.get_running_loop().time()
            accepted = await asyncio.gather(*posts, *new)
            took = asyncio.get_running_loop().time() - began
            assert await asyncio.to_thread(locker.wait, PATIENCE) == 0
        every = await asyncio.gather(*reads)
        greeted = await asyncio.gather(*(readers.until_over(readers.sse(it)) for it in accepted[6:]))
    assert 2 < took < 15
    assert [seen.endings for seen in every] == [["done", "done"]] * 12
    assert all(seen.types.count("text") == 9 for seen in every)
    assert all(deltas == content for seen in every for deltas, content in seen.joined)
    assert [seen.endings for seen in greeted] == [["done"]] * 4
    said = "\n".join(up.lines[before:])
    assert not re.search(r"was taken back|Traceback|database is locked", said)


def locking(up: RunningUp) -> subprocess.Popen[str]:
    """A process that has the database for itself for three seconds."""
    locker = subprocess.Popen(
        [sys.executable, "-c", LOCKS_THE_DATABASE, up.home / "db.sqlite3"], stdout=subprocess.PIPE, text=True
    )
    assert locker.stdout and locker.stdout.readline() == "locked\n"
    return locker


@pytest.mark.depth
async def test_a_row_that_nobody_rang_for_comes_with_the_keep_alive(house: House) -> None:
    up, program = house.up, house.program
    async with Readers.of(up, program) as readers:
        session = await readers.post("hello")
        last = (await readers.until_over(readers.sse(session))).last
        async with aclosing(readers.sse(session, last - 1)) as events:
            assert (await anext(events))["type"] == "done"  # and now it waits
            await asyncio.to_thread(write_unheard, up, session)
            async with asyncio.timeout(KEEP_ALIVE + 5):
                row = await anext(events)
    assert (row["type"], row["seq"]) == ("warning", last + 1)


def write_unheard(up: RunningUp, session: str) -> None:
    key = UUID(session).hex
    with closing(sqlite3.connect(up.home / "db.sqlite3", timeout=20)) as database, database:
        database.execute("UPDATE sessions_app_session SET last_seq = last_seq + 1 WHERE id = ?", [key])
        database.execute(
            "INSERT INTO sessions_app_sessionevent (session_id, seq, type, payload, created_at) SELECT"
            " id, last_seq, 'warning', '{}', '2026-01-01 00:00:00' FROM sessions_app_session WHERE id = ?",
            [key],
        )

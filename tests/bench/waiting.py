"""What a long replay takes, and what readers and sessions cost that only wait."""

import asyncio
import json
import re
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, closing
from pathlib import Path
from statistics import median
from time import perf_counter
from uuid import UUID

import aiohttp
import psutil

from tests.bench.measures import Row
from tests.bench.ours import Ours
from tests.processes.running import RunningUp

EVENTS = 10_000
REPLAYS = 7
READERS = 500
SESSIONS = 5
FIRST = 100  # readers, before those that are counted: they pay for pools and caches
REPLAY_AIM = 200.0  # ms
READER_AIM = 60.0  # KB

Open = Callable[[AsyncExitStack, str], Awaitable[None]]


def fill(home: Path, session: str) -> int:
    """Writes rows until the session has so many, as a long day of work would have; the last `seq`."""
    with closing(sqlite3.connect(home / "db.sqlite3", timeout=20)) as database, database:
        found = database.execute(
            "SELECT session_id, turn_id, created_at, seq FROM sessions_app_sessionevent WHERE session_id = ?"
            " ORDER BY seq DESC LIMIT 1",
            [UUID(session).hex],
        )
        session_id, turn_id, at, last = found.fetchone()
        end = max(EVENTS, int(last))
        rows = [(session_id, turn_id, at, seq, *_event(seq)) for seq in range(last + 1, end + 1)]
        database.executemany(
            "INSERT INTO sessions_app_sessionevent (session_id, turn_id, created_at, seq, type, payload)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            rows,
        )
        database.execute("UPDATE sessions_app_session SET last_seq = ? WHERE id = ?", [end, session_id])
    return end


def _event(seq: int) -> tuple[str, str]:
    """A block of text, a tool and its result, in turn."""
    use = f"toolu_{seq // 3:024}"
    tool = {"id": use, "name": "Read", "input": {"file_path": "/vault/Projects/Quinces.md"}}
    match seq % 3:
        case 0:
            return "text", json.dumps(
                {"block": seq // 3, "content": "A few words, and no more than that. " * 6}
            )
        case 1:
            return "tool_use", json.dumps({"tool": tool, "parentToolUseId": None})
    result = {"toolUseId": use, "content": "It says what it says.\n" * 10}
    return "tool_result", json.dumps(result | {"isError": False, "durationMs": 12, "truncated": False})


async def replay(ours: Ours, home: Path) -> Row:
    """From the request to the last byte of the last row; what came is looked at after that."""
    async with ours.web() as web:
        session = await ours.finished(web, "in words")
        last = await asyncio.to_thread(fill, home, session)
        took = []
        for _ in range(REPLAYS):
            began = perf_counter()
            async with web.get(f"/api/chat/{session}/events") as answer:
                body = await _up_to(answer, last)
            took.append(perf_counter() - began)
            assert _seqs(body) == list(range(1, last + 1))
    return Row(f"replay of {last:,} events", median(took) * 1e3, aim=REPLAY_AIM)


async def _up_to(answer: aiohttp.ClientResponse, last: int) -> bytes:
    parts, end = [], b""
    async for part in answer.content.iter_any():
        parts.append(part)
        end = (end + part)[-4_000:]
        if f'"seq":{last},'.encode() in end and end.endswith(b"\n\n"):
            return b"".join(parts)
    raise AssertionError("The replay ended early.")


def _seqs(body: bytes) -> list[int]:
    return [json.loads(line[5:])["seq"] for line in body.split(b"\n") if line.startswith(b"data:")]


async def waiting_readers(ours: Ours, up: RunningUp) -> list[Row]:
    """How much the memory of `web` grows by, a reader that has seen the last row and waits for the next."""
    async with ours.web() as web:
        sessions = [await ours.finished(web, "in words") for _ in range(SESSIONS)]
        lasts = {session: (await ours.last_seq(web, session)) - 1 for session in sessions}

        async def by_sse(stack: AsyncExitStack, session: str) -> None:
            path = f"/api/chat/{session}/events?after={lasts[session]}"
            answer = await stack.enter_async_context(web.get(path))
            while not (await answer.content.readline()).startswith(b"data:"):
                pass

        async def by_socket(stack: AsyncExitStack, session: str) -> None:
            path = f"/ws/chat/{session}?after={lasts[session]}"
            socket = await stack.enter_async_context(web.ws_connect(path))
            await socket.receive_json()

        return [
            await _cost(up, sessions, by_sse, "a reader that waits, SSE"),
            await _cost(up, sessions, by_socket, "a reader that waits, WebSocket"),
        ]


async def _cost(up: RunningUp, sessions: list[str], open_one: Open, name: str) -> Row:
    """In a process that has not served anything yet: memory that was freed there would be used again."""
    starts = len(re.findall("web started", up.text))
    up.kill("web")
    await asyncio.to_thread(up.wait_log, "web started", times=starts + 1)
    await asyncio.to_thread(up.wait_health)

    async def more(stack: AsyncExitStack, count: int) -> float:
        for start in range(0, count, 50):
            await asyncio.gather(*(open_one(stack, sessions[n % SESSIONS]) for n in range(start, start + 50)))
        return pss([up.pid_of("web")])

    async with AsyncExitStack() as stack:
        before = await more(stack, FIRST)
        after = await more(stack, READERS)
    return Row(name, (after - before) * 1e3 / READERS, aim=READER_AIM, unit="KB")


async def resting_sessions(ours: Ours, up: RunningUp, count: int = 4) -> Row:
    """How much the worker and its children grow by, a session whose process rests after its turn."""
    await ours.new_chat("in words")
    before = _worker(up)
    for _ in range(count):
        await ours.new_chat("in words")
    return Row("a session at rest, worker and CLI (PSS)", (_worker(up) - before) / count, unit="MB")


def _worker(up: RunningUp) -> float:
    worker = psutil.Process(up.pid_of("turns"))
    return pss([worker.pid, *(child.pid for child in worker.children(recursive=True))])


def pss(pids: list[int]) -> float:
    return sum(float(psutil.Process(pid).memory_full_info().pss) for pid in pids) / 1e6

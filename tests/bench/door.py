"""What a stranger at the door costs everybody else: how long `/api/health` takes meanwhile, at most, and by
how much the web process grows."""

import asyncio
import subprocess
import sys
from time import perf_counter

import aiohttp
import psutil

from tests.bench.measures import Row
from tests.processes.program import Program
from tests.processes.running import RunningUp

ATTACKS = {
    "form": "29 MB of hostile form",
    "chunks": "600 MB in chunks",
    "drips": "120 connections that drip",
}
HEALTH_AIM, MEMORY_AIM = 250.0, 60.0  # ms, MB
EVERY = 0.01  # seconds between two looks
FIRST = 50  # looks before all, as the first requests pay for imports


async def under_attack(up: RunningUp) -> list[Row]:
    key, web = Program(up).key, psutil.Process(up.pid_of("web"))
    rows = []
    async with aiohttp.ClientSession(up.address) as session:
        for _ in range(FIRST):
            await _look(session)
        for how, name in ATTACKS.items():
            before = web.memory_info().rss
            attack = subprocess.Popen([sys.executable, "-m", "tests.bench.hostile", how, str(up.port), key])
            slowest, largest, count = 0.0, 0, 0
            while attack.poll() is None:
                count += 1
                slowest = max(slowest, await _look(session))
                largest = max(largest, web.memory_info().rss)
                await asyncio.sleep(EVERY)
            assert attack.returncode == 0
            rows += [
                Row(f"{name}, /api/health at most", slowest * 1e3, aim=HEALTH_AIM, is_promise=True),
                Row(
                    f"{name}, web grows by",
                    (largest - before) / 1e6,
                    aim=MEMORY_AIM,
                    unit="MB",
                    is_promise=True,
                ),
            ]
    return rows


async def _look(session: aiohttp.ClientSession) -> float:
    began = perf_counter()
    async with session.get("/api/health") as answer:
        assert answer.status == 200
        await answer.read()
    return perf_counter() - began

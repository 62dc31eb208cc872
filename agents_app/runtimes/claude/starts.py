"""Who may start a process now: two at a time, and none where memory is short."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from agents_app.runtimes.base import Waits
from agents_app.runtimes.claude import memory

AT_ONCE = 2  # more only slow each other down: 32 at once took 10 s each, two at a time 3.6 s
NEEDED = 400 << 20  # a process at work holds about 250 MB, and what its tools start comes on top
LOOKS_AGAIN_AFTER = 1.0  # seconds


class Starts:
    def __init__(self, make_room: Callable[[], bool]) -> None:
        """`make_room` ends one process that only rests; False where there is none."""
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._make_room = make_room
        self._waiting = 0
        self.running = 0  # processes that are at work: their end makes room too

    @asynccontextmanager
    async def slot(self, waits: Waits) -> AsyncIterator[None]:
        self._waiting += 1
        try:
            if self._slots.locked():
                await waits("workers", self._waiting)
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        try:
            await self._wait_for_memory(waits)
            yield
        finally:
            self._slots.release()

    async def _wait_for_memory(self, waits: Waits) -> None:
        """Where nothing of ours could make room, waiting helps nobody: it is started all the same."""
        is_told = False
        while self._is_short() and (self._make_room() or self.running):
            if not is_told:
                is_told = True
                await waits("memory", 1)
            await asyncio.sleep(LOOKS_AGAIN_AFTER)

    def _is_short(self) -> bool:
        free = memory.available()
        return free is not None and free < NEEDED

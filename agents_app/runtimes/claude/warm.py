"""Processes that rest between two turns of their session, so that the next message is answered at once.

Bounded by number and by time. One is taken only if it fits to the letter, and if its transcript is as it left
it: another worker may have run a turn of the session meanwhile.
"""

import asyncio
import logging
import os
from dataclasses import dataclass
from uuid import UUID

from agents_app.endings import to_its_end
from agents_app.runtimes.base import RunRequest
from agents_app.runtimes.claude.process import ClaudeProcess, Fingerprint

log = logging.getLogger(__name__)

GIB = 1024**3
MEMORY_A_PROCESS = 2 * GIB  # of the machine's: a process that rests holds about 0.25 GiB
FEWEST, MOST = 1, 8
RESTS_AT_MOST = 600.0  # seconds

State = tuple[int, int] | None  # size and time of the transcript


@dataclass
class Resting:
    process: ClaudeProcess
    state: State
    timer: asyncio.TimerHandle

    def fits(self, fingerprint: Fingerprint, state: State) -> bool:
        return self.state == state and self.process.fingerprint == fingerprint and self.process.is_alive()


class WarmProcesses:
    def __init__(self, most: int | None = None) -> None:
        self._most = fitting_number() if most is None else most
        self._resting: dict[UUID, Resting] = {}  # the one that rests longest first
        self._ending: set[asyncio.Task[None]] = set()

    async def take(self, request: RunRequest, fingerprint: Fingerprint) -> ClaudeProcess | None:
        resting = self._resting.pop(request.session_id, None)
        if resting is None:
            return None
        resting.timer.cancel()
        if request.resume and resting.fits(fingerprint, state_of(request)):
            return resting.process
        await to_its_end(resting.process.end())
        return None

    async def keep(self, process: ClaudeProcess, request: RunRequest) -> bool:
        """False where none is kept at all: then it is the caller's to end."""
        if not self._most:
            return False
        await process.rest()
        while len(self._resting) >= self._most:
            self._let_go(next(iter(self._resting)))
        session = process.session_id
        timer = asyncio.get_running_loop().call_later(RESTS_AT_MOST, self._let_go, session)
        self._resting[session] = Resting(process, state_of(request), timer)
        return True

    async def close(self) -> None:
        for session in tuple(self._resting):
            self._let_go(session)
        if self._ending:
            await asyncio.wait(tuple(self._ending))

    def _let_go(self, session: UUID) -> None:
        resting = self._resting.pop(session)
        resting.timer.cancel()
        task = asyncio.create_task(resting.process.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


def fitting_number() -> int:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(FEWEST, min(MOST, memory // MEMORY_A_PROCESS))


def state_of(request: RunRequest) -> State:
    """Of the transcript, to compare it with itself later; what it holds is not looked at."""
    found = [path.lstat() for path in request.config.glob(f"projects/*/{request.session_id}.jsonl")]
    return (found[0].st_size, found[0].st_mtime_ns) if len(found) == 1 else None

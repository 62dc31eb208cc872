"""Processes that rest between two turns of their session, so that the next message is answered at once.

Bounded by number, by time, and by the memory that they are measured to hold. One is taken only if it fits
to the letter, and if its transcript is as it left it: another worker may have run a turn of the session
meanwhile.
"""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from agents_app.runtimes.base import RunRequest
from agents_app.runtimes.claude import memory
from agents_app.runtimes.claude.process import ClaudeProcess, Fingerprint
from agents_app.workers.endings import to_its_end

log = logging.getLogger(__name__)

MOST = 8
SHARE_OF_MEMORY = 8  # all together hold at most an eighth of it
RESTS_AT_MOST = 600.0  # seconds

State = tuple[int, int] | None  # size and time of the transcript


@dataclass
class Resting:
    process: ClaudeProcess
    state: State
    holds: int  # bytes
    timer: asyncio.TimerHandle

    def fits(self, fingerprint: Fingerprint, state: State) -> bool:
        return self.state == state and self.process.fingerprint == fingerprint


class WarmProcesses:
    def __init__(self, most: int = MOST, *, room: int | None = None) -> None:
        """`room`: the bytes that all together may hold."""
        self._most = most
        self._room = memory.total() // SHARE_OF_MEMORY if room is None else room
        self._resting: dict[UUID, Resting] = {}  # the one that rests longest first
        self._ending: set[asyncio.Task[None]] = set()

    async def take(self, request: RunRequest, fingerprint: Fingerprint) -> ClaudeProcess | None:
        if request.session_id not in self._resting:
            return None
        state = await asyncio.to_thread(state_of, request)
        resting = self._resting.pop(request.session_id, None)
        if resting is None:
            return None
        resting.timer.cancel()
        if request.resume and resting.fits(fingerprint, state) and await resting.process.rise():
            return resting.process
        await to_its_end(resting.process.end())
        return None

    async def keep(self, process: ClaudeProcess, request: RunRequest) -> bool:
        """False where there is no room for it, or it finds no rest: then it is the caller's to end."""
        if not self._most:
            return False
        holds, state = await process.rest(), await asyncio.to_thread(state_of, request)
        if holds is None or holds > self._room:
            return False
        while len(self._resting) >= self._most or self._held() + holds > self._room:
            self.make_room()
        session = process.session_id
        timer = asyncio.get_running_loop().call_later(RESTS_AT_MOST, self._let_go, session)
        self._resting[session] = Resting(process, state, holds, timer)
        return True

    def make_room(self) -> bool:
        """Ends the one that has rested longest; False where none rests."""
        if not self._resting:
            return False
        self._let_go(next(iter(self._resting)))
        return True

    async def forget(self, session_id: UUID) -> None:
        if resting := self._resting.pop(session_id, None):
            resting.timer.cancel()
            await to_its_end(resting.process.end())

    async def leave(self, vault: Path) -> bool:
        """Ends all that rest in it; False where none does."""
        there = [each for each, it in self._resting.items() if it.process.fingerprint.vault == vault]
        await self._end(there)
        return bool(there)

    def __contains__(self, session_id: UUID) -> bool:
        return session_id in self._resting

    def _held(self) -> int:
        return sum(each.holds for each in self._resting.values())

    async def close(self) -> None:
        await self._end(tuple(self._resting))

    async def _end(self, sessions: Iterable[UUID]) -> None:
        for session in sessions:
            self._let_go(session)
        if self._ending:
            await asyncio.wait(tuple(self._ending))

    def _let_go(self, session: UUID) -> None:
        resting = self._resting.pop(session)
        resting.timer.cancel()
        task = asyncio.create_task(resting.process.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


def state_of(request: RunRequest) -> State:
    """Of the transcript, to compare it with itself later; what it holds is not looked at. There may be any
    number of folders, as an agent makes them: call it in a thread."""
    found = [path.lstat() for path in request.config.glob(f"projects/*/{request.session_id}.jsonl")]
    return (found[0].st_size, found[0].st_mtime_ns) if len(found) == 1 else None

"""Watching a turn while it runs: for an abort, for more that is said, for the deadline, and for its loss."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, NamedTuple

from django.utils import timezone

from agents_app.runtimes.base import Run
from agents_app.turns.running import finish
from agents_app.workers.endings import end
from sessions_app.models import Message, Session, SessionKind, Turn
from sessions_app.streaming import bus
from sessions_app.streaming.log import Hold, HoldLost
from sessions_app.threads import in_thread

log = logging.getLogger(__name__)

LOOKS_EVERY = 2.0  # seconds, beside the ring
INTERRUPT_GRACE = 0.7  # to end by itself, with what it has written; a person waits, so then it is ended
DEADLINE = timedelta(hours=1)


class Look(NamedTuple):
    """What the rows say of a turn while it runs."""

    is_held: bool
    is_aborted: bool = False
    is_late: bool = False
    has_more: bool = False


def deadline_of(session: Session, said: int | None = None) -> timedelta | None:
    """Of each turn; `said` are the seconds that its agent's file names. Waiting for a person counts too."""
    usual = None if session.kind == SessionKind.ORCHESTRATOR else DEADLINE
    own = timedelta(seconds=said) if said else None
    return min((each for each in (usual, own) if each is not None), default=None)


class TurnWatch:
    """`has_more` is called with the run when something was said meanwhile."""

    def __init__(self, turn: Turn, hold: Hold, has_more: Callable[[Run], Awaitable[None]]) -> None:
        self._turn = turn
        self._hold = hold
        self._has_more = has_more
        self.run: Run | None = None  # as soon as there is one: before, nobody needs to be asked to stop
        self.is_late = False
        self.deadline = deadline_of(turn.session)  # until its agent's file is read

    async def guard(self, work: asyncio.Task[Any]) -> None:
        """Stops the work when somebody aborts the turn, when it is late, or when it is ours no more. It
        begins again when it fails, because nobody could stop a turn that is not watched."""
        while not work.done():
            try:
                if await self._is_stopped(work):
                    return
                async with bus.current().subscribe(bus.turn_topic(self._turn.pk)) as listener:
                    while not await self._is_stopped(work):
                        await listener.next(LOOKS_EVERY)
                return
            except HoldLost:
                continue  # lost since it looked: it looks again, and ends the work
            except Exception:
                log.exception("Turn %s could not be watched; trying again.", self._turn.pk)
                await asyncio.sleep(LOOKS_EVERY)

    def look(self) -> Look:
        row = finish.held(self._hold).values_list("abort_requested_at", "started_at").first()
        if row is None:
            return Look(is_held=False)
        return Look(
            is_held=True,
            is_aborted=row[0] is not None,
            is_late=self.deadline is not None and timezone.now() - row[1] >= self.deadline,
            has_more=Message.objects.filter(turn=self._turn, waits=True).exists(),
        )

    async def _is_stopped(self, work: asyncio.Task[Any]) -> bool:
        look = await in_thread(self.look)()
        if not look.is_held:
            await end(work)
        elif look.is_aborted or look.is_late:
            self.is_late = not look.is_aborted
            await self._interrupt(work)
        elif look.has_more and self.run is not None:
            await self._has_more(self.run)
        return look.is_aborted or look.is_late or not look.is_held

    async def _interrupt(self, work: asyncio.Task[Any]) -> None:
        if self.run is not None:
            asking = asyncio.create_task(self.run.interrupt())
            await asyncio.wait({work}, timeout=INTERRUPT_GRACE)
            asking.cancel()
        await end(work)

"""The turn engine as its tests see it: somebody says something, a worker runs it, rows come out."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from django.utils import timezone

from agents_app.runtimes.scripted import Pause, ScriptedRuntime
from agents_app.turns.held import leases
from agents_app.turns.held.claim import claim
from agents_app.turns.held.holder import Holder
from agents_app.turns.running.run import run_waiting_turns
from agents_app.turns.said.abort import abort
from agents_app.turns.said.opening import Opened, Opening, open_turn
from sessions_app.access.caller import Caller
from sessions_app.models import Message, Session, SessionEvent, Turn
from sessions_app.models.event import TERMINAL
from sessions_app.threads import in_thread

PATIENCE = 20


def pause(*, deaf: bool = False) -> Pause:
    """A step of a script at which the agent stands until `go_on` is set. A deaf one does not hear that it is
    interrupted: only being cancelled ends it."""
    return Pause(asyncio.Event(), asyncio.Event(), deaf)


class Engine:
    def __init__(self, caller: Caller, runtime: ScriptedRuntime) -> None:
        self.caller = caller
        self.runtime = runtime
        self.working: list[asyncio.Task[None]] = []

    async def say(self, text: str, **more: Any) -> Opened:
        return await in_thread(open_turn)(self.caller, Opening(text, **more))

    async def run(self, opened: Opened, holder: Holder | None = None) -> None:
        async with asyncio.timeout(PATIENCE):
            await run_waiting_turns(opened.session_id, holder or Holder("w"), self.runtime)

    async def answer(self, text: str, **more: Any) -> list[SessionEvent]:
        """Says it, runs it, and gives what was written of it."""
        opened = await self.say(text, **more)
        await self.run(opened)
        return await events(opened)

    async def abort(self, opened: Opened) -> None:
        await in_thread(abort)(self.caller, opened.session_id)

    @asynccontextmanager
    async def paused(
        self, opened: Opened, at: Pause, holder: Holder | None = None
    ) -> AsyncIterator[asyncio.Task[None]]:
        """While a worker runs it, and stands at this step. Left, the worker is through with it."""
        working = asyncio.create_task(self.run(opened, holder))
        reached = asyncio.create_task(at.reached.wait())
        async with asyncio.timeout(PATIENCE):
            await asyncio.wait({working, reached}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
        assert at.reached.is_set(), "it ended before that step"
        try:
            yield working
        finally:
            await asyncio.wait({working})
        if not working.cancelled():
            working.result()


async def events(opened: Opened) -> list[SessionEvent]:
    return [event async for event in SessionEvent.objects.filter(turn_id=opened.turn_id).order_by("seq")]


async def turn_of(opened: Opened) -> Turn:
    turn: Turn = await Turn.objects.aget(pk=opened.turn_id)
    return turn


async def message_of(opened: Opened) -> Message:
    return await Message.objects.aget(turn_id=opened.turn_id, source="user")


def types(written: list[SessionEvent]) -> list[str]:
    return [event.type for event in written]


def last_words(written: list[SessionEvent]) -> dict[str, Any]:
    """The payload of the one terminal event, which is the last."""
    ends = [event for event in written if event.type in TERMINAL]
    assert ends == written[-1:], "one terminal event, and nothing after it"
    payload: dict[str, Any] = ends[0].payload
    return payload


async def has_no_gaps(session_id: UUID) -> bool:
    session = await Session.objects.aget(pk=session_id)
    seqs = [seq async for seq in session.events.order_by("seq").values_list("seq", flat=True)]
    return seqs == list(range(1, session.last_seq + 1))


async def expire() -> None:
    await Turn.objects.active().aupdate(leased_at=timezone.now() - leases.LEASE_ENDS * 2)


async def lose(opened: Opened) -> None:
    """A worker claims it and is heard of no more."""
    assert await in_thread(claim)(opened.session_id, Holder("dead"))
    await expire()
    assert await in_thread(leases.sweep)() == 1

"""One turn, from its claim to its end.

1. Claim the next queued turn of the session.
2. Watch from here on for an abort, for more that is said, for the deadline, and for the loss of the turn.
3. Prepare: directory, wall, prompt, and how to take it up.
4. Open the runtime behind the gate; where the agent cannot resume after all, prepare the next way.
5. Record what comes out of it: how it was resumed, then its work. What is said meanwhile is handed over.
6. When all that was said is answered, take no more.
7. Write the end: `done`, `aborted`, or an error.
8. Publish the transcript to the vault.
"""

import asyncio
import logging
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from time import monotonic
from typing import NamedTuple
from uuid import UUID

from django.db import DatabaseError
from django.utils import timezone

from agents_app.endings import end, to_its_end
from agents_app.errors import AgentError
from agents_app.runtimes.base import CannotResume, Run, Runtime
from agents_app.runtimes.events import Answered, Delta, Ended, Ready, RuntimeEvent, Said, Used, Warned
from agents_app.turns import finish, steering
from agents_app.turns.claim import claim
from agents_app.turns.deleting import is_deleted
from agents_app.turns.outcome import Outcome, as_failure
from agents_app.turns.prepare import Prepared, as_permitted, prepare
from agents_app.turns.recorder import Recorder
from agents_app.turns.ringing import ring_workers
from agents_app.turns.worker import Holder
from permissions_app import strangers
from permissions_app.asking import Asking
from permissions_app.gate import Gate
from permissions_app.rules.setting import Setting
from sessions_app import bus, statements, transcripts
from sessions_app.log import Hold, HoldLost
from sessions_app.models import EventType, Kind, Message, Session, SessionEvent, Turn
from sessions_app.threads import connected, in_thread

log = logging.getLogger(__name__)

LOOKS_EVERY = 2.0  # seconds, beside the ring
INTERRUPT_GRACE = 0.7  # to end by itself, with what it has written; a person waits, so then it is ended
CLOSES_WITHIN = 30.0  # a runtime that has answered; each has shorter limits of its own
DEADLINE = timedelta(hours=1)
STOPPED = AgentError("cli_crashed", "The agent stopped in the middle, and nobody had asked it to.")
TOO_LATE = AgentError("deadline_exceeded", f"It ran for {DEADLINE.seconds // 60} minutes and was stopped.")


async def run_session(session_id: UUID, holder: Holder, runtime: Runtime) -> None:
    """Runs what waits in a session, in order, until nothing waits or another worker has it."""
    vault = None
    try:
        while not holder.is_draining:
            # To its end: a claim that is cancelled half-way may have got a turn that nobody would run.
            claimed = await to_its_end(in_thread(claim)(session_id, holder))
            if claimed is None:
                return
            vault = Path(claimed[0].session.workspace.vault_path)
            await TurnRun(*claimed, holder, runtime).go()
        await in_thread(ring_workers)(session_id)  # there may be more, for a worker that stays
    finally:
        await to_its_end(_let_go_if_deleted(session_id, vault, runtime))


async def _let_go_if_deleted(session_id: UUID, vault: Path | None, runtime: Runtime) -> None:
    """Who deleted it removed its files at once. This is what its agent, and its turn's end, wrote since."""
    if await in_thread(is_deleted)(session_id):
        await runtime.forget(session_id)
        await in_thread(transcripts.remove)(session_id, vault)


class Look(NamedTuple):
    """What the rows say of a turn while it runs."""

    is_held: bool
    is_aborted: bool = False
    is_late: bool = False
    has_more: bool = False


class TurnRun:
    def __init__(self, turn: Turn, hold: Hold, holder: Holder, runtime: Runtime) -> None:
        self._turn = turn
        self._hold = hold
        self._holder = holder
        self._runtime = runtime
        self._began = monotonic()
        self._run: Run | None = None
        self._recorder: Recorder | None = None
        self._prepared: Prepared | None = None
        self._has_more = False
        self._saying = asyncio.Lock()  # what is taken from the rows is said before the end is looked at
        self._is_late = False
        self._named_hosts: frozenset[str] | None = None  # read when they count, and again after more is said

    async def go(self) -> None:
        self._holder.turns.add(self._turn.pk)
        work = asyncio.create_task(self._work())
        watch = asyncio.create_task(self._watch(work))
        try:
            await asyncio.wait({work})
            await to_its_end(self._end(work))
        except asyncio.CancelledError:  # this worker stops: somebody else goes on with it
            await to_its_end(self._give_back(work))
            raise
        finally:
            await to_its_end(end(watch))
            self._holder.turns.discard(self._turn.pk)

    async def _work(self) -> Outcome:
        recorder = self._recorder = await self._new_recorder()
        unresumable = ""
        while True:
            prepared = self._prepared = await in_thread(self._prepare)(unresumable)
            try:
                return await self._run_through(prepared, recorder)
            except CannotResume as problem:
                if not prepared.request.resume:
                    raise
                log.warning("Session %s could not be resumed: %s", self._turn.session_id, problem.message)
                unresumable = problem.message

    def _prepare(self, unresumable: str) -> Prepared:
        """It writes too: a worker that thaws here would say again what the next has said."""
        if not finish.is_held(self._hold):
            raise HoldLost(f"turn {self._turn.pk}")
        return prepare(self._turn, unresumable)

    async def _run_through(self, prepared: Prepared, recorder: Recorder) -> Outcome:
        gate = self._gate_for(prepared, recorder)
        outcome: Outcome | None = None
        try:
            async with (
                asyncio.timeout(None) as closing,
                self._runtime.open(prepared.request, gate, recorder.waits) as run,
            ):
                self._run = run
                outcome = await self._hear(run, prepared, recorder)
                closing.reschedule(asyncio.get_running_loop().time() + CLOSES_WITHIN)
        except (TimeoutError, asyncio.CancelledError):
            if outcome is None:
                raise
            log.warning(
                "The runtime of turn %s was cut off while it closed; its answer stands.", self._turn.pk
            )
        assert outcome is not None
        return outcome

    async def _hear(self, run: Run, prepared: Prepared, recorder: Recorder) -> Outcome:
        outcome = Outcome()
        async with aclosing(run.events()) as events:
            async for event in events:
                if isinstance(event, Ready):
                    recorder.announce(prepared.rows, event)
                elif isinstance(event, Ended):
                    outcome.add(event)
                    if event.interrupted or await self._has_answered_all(run):
                        await recorder.settled()
                        return outcome
                else:
                    await _write(recorder, event)
                    await self._hand_over(run, recorder)
        raise AgentError("cli_crashed", "The agent ended without an answer.")

    async def _hand_over(self, run: Run, recorder: Recorder) -> None:
        """What was said meanwhile, while a tool runs: then the agent reads it with the tool's answer."""
        if self._has_more and recorder.is_using_a_tool:
            async with self._saying:
                self._has_more = False
                await self._say(run, await in_thread(steering.taken)(self._hold))

    async def _has_answered_all(self, run: Run) -> bool:
        """At the end of an answer. What waits is said now; where nothing does, nothing will, in this turn."""
        async with self._saying:
            if run.owes_an_answer:
                return False
            waiting = await in_thread(steering.taken_or_closed)(self._hold)
            await self._say(run, waiting)
            return not waiting

    async def _say(self, run: Run, messages: list[Message]) -> None:
        if messages:
            self._named_hosts = None
        for message in messages:
            await run.inject(message.pk, message.content)

    async def _new_recorder(self) -> Recorder:
        session = self._turn.session
        first = await in_thread(self._first_block)() if self._turn.attempt > 1 else 0
        return Recorder(session.pk, self._hold, first_block=first, last_seq=session.last_seq)

    def _first_block(self) -> int:
        """It goes on counting where the attempt before it ended."""
        blocks = SessionEvent.objects.filter(turn=self._turn, type__in=(EventType.TEXT, EventType.THINKING))
        newest = blocks.order_by("-seq").first()
        return newest.payload["block"] + 1 if newest else 0

    def _gate_for(self, prepared: Prepared, recorder: Recorder) -> Gate:
        session = self._turn.session
        hold = self._hold

        def standing(setting: Setting) -> Setting | None:
            """What people allowed, or took away, since the last call counts from this one on."""
            now = connected(statements.standing_if_held)(hold.turn_id, hold.attempt)
            if now is None:
                return None
            setting = as_permitted(setting, session, now.metadata)
            return self._with_hosts(setting, now.has_read_strangers)

        asks = Asking(session.pk, hold, agent=session.agent_slug, settled=recorder.settled)
        return Gate(
            prepared.setting,
            standing=standing,
            on_denied=recorder.denied,
            asks=asks,
            audit=prepared.audit,
            reads_strangers=partial(in_thread(strangers.mark), session.pk),
        )

    def _with_hosts(self, setting: Setting, has_read_strangers: bool) -> Setting:
        """The hosts that people named count once it has read strangers; until then nobody reads for them."""
        if not has_read_strangers:
            return setting
        if self._named_hosts is None:
            self._named_hosts = strangers.named_hosts(self._turn.session_id)
        return replace(setting, has_read_strangers=True, named_hosts=self._named_hosts)

    async def _watch(self, work: asyncio.Task[Outcome]) -> None:
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

    async def _is_stopped(self, work: asyncio.Task[Outcome]) -> bool:
        look = await in_thread(self._look)()
        if not look.is_held:
            await end(work)
        elif look.is_aborted or look.is_late:
            self._is_late = not look.is_aborted
            await self._interrupt(work)
        elif look.has_more and self._run is not None and self._recorder is not None:
            self._has_more = True
            await self._hand_over(self._run, self._recorder)
        return look.is_aborted or look.is_late or not look.is_held

    def _look(self) -> Look:
        row = finish.held(self._hold).values_list("abort_requested_at", "started_at").first()
        if row is None:
            return Look(is_held=False)
        has_deadline = self._turn.session.kind != Kind.ORCHESTRATOR
        return Look(
            is_held=True,
            is_aborted=row[0] is not None,
            is_late=has_deadline and timezone.now() - row[1] >= DEADLINE,
            has_more=Message.objects.filter(turn=self._turn, waits=True).exists(),
        )

    async def _interrupt(self, work: asyncio.Task[Outcome]) -> None:
        if self._run is not None:
            asking = asyncio.create_task(self._run.interrupt())
            await asyncio.wait({work}, timeout=INTERRUPT_GRACE)
            asking.cancel()
        await end(work)

    async def _give_back(self, work: asyncio.Task[Outcome]) -> None:
        """Back to the queue, unless it is over already, or somebody wants it to be."""
        if not work.done():
            await end(work)
            await self._settle()
            if _problem_of(work) and await in_thread(finish.put_back)(self._hold):
                await in_thread(ring_workers)(self._turn.session_id)
                return
        await self._end(work)

    async def _end(self, work: asyncio.Task[Outcome]) -> None:
        try:
            await self._write_end(work)
        except HoldLost as lost:
            if await in_thread(is_deleted)(self._turn.session_id):
                log.info("Session %s was deleted while %s ran.", self._turn.session_id, lost)
            else:
                log.warning("This worker lost %s; what it did since is not written.", lost)
        except DatabaseError:
            log.exception(
                "Turn %s could not be ended; when its lease is over it is run again.", self._turn.pk
            )
        else:
            await self._publish()

    async def _write_end(self, work: asyncio.Task[Outcome]) -> None:
        await self._settle()
        problem = _problem_of(work)
        look = await in_thread(self._look)()
        if not look.is_held:
            raise HoldLost(f"turn {self._turn.pk}")
        if look.is_aborted:
            await self._keep_unfinished()
            await in_thread(finish.aborted)(self._turn, self._hold)
        elif problem is not None:
            await self._keep_unfinished()
            kind, payload = as_failure(self._turn.pk, TOO_LATE if self._is_late else problem)
            await in_thread(finish.failed)(self._turn, self._hold, kind, payload)
        else:
            await self._done(work.result())

    async def _settle(self) -> None:
        """No row comes after the turn's last. What went wrong with one is told by what waited for it."""
        if self._recorder is not None:
            await asyncio.gather(self._recorder.settled(), return_exceptions=True)

    async def _keep_unfinished(self) -> None:
        if self._recorder is not None:
            await self._recorder.keep_unfinished()

    async def _done(self, outcome: Outcome) -> None:
        assert self._recorder is not None and self._prepared is not None
        payload = outcome.as_done(self._prepared, self._recorder, seconds=monotonic() - self._began)
        warm_on = self._holder.name if self._runtime.rests(self._turn.session_id) else ""
        await in_thread(finish.done)(
            self._turn, self._hold, payload, usage=outcome.usage, cost_usd=outcome.cost_usd, warm_on=warm_on
        )

    async def _publish(self) -> None:
        if self._prepared is None:
            return
        try:
            await in_thread(_publish)(self._prepared)
        except Exception:
            log.exception("The transcript of %s was not published.", self._turn.session_id)


async def _write(recorder: Recorder, event: RuntimeEvent) -> None:
    match event:
        case Delta():
            await recorder.delta(event)
        case Said():
            await recorder.said(event)
        case Used():
            await recorder.used(event)
        case Answered():
            await recorder.answered(event)
        case Warned():
            await recorder.warned(event)


def _publish(prepared: Prepared) -> None:
    request = prepared.request
    last = transcripts.publish(request.session_id, request.vault, request.directory)
    if last:
        Session.objects.filter(pk=request.session_id).update(last_entry=last)


def _problem_of(work: asyncio.Task[Outcome]) -> BaseException | None:
    """Why it did not come to its end; None where it did. That somebody stopped it is known already."""
    if work.cancelled():
        return STOPPED
    return work.exception() or (STOPPED if work.result().interrupted else None)

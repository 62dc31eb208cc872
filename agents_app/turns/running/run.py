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
from pathlib import Path
from time import monotonic
from uuid import UUID

from django.db import DatabaseError
from django.utils.translation import gettext as _

from agents_app.errors import AgentError
from agents_app.runtimes.base import CannotResume, Run, Runtime
from agents_app.runtimes.events import Ended, Ready
from agents_app.tools.mcp.chosen import not_connected
from agents_app.turns.held.claim import claim
from agents_app.turns.held.holder import Holder
from agents_app.turns.held.ringing import ring_workers
from agents_app.turns.running import finish
from agents_app.turns.running.gating import NamedHosts, gate_for
from agents_app.turns.running.kept import Row
from agents_app.turns.running.outcome import TurnOutcome, as_failure, problem_of
from agents_app.turns.running.prepare import Prepared, as_row, prepare
from agents_app.turns.running.recorder import Recorder
from agents_app.turns.running.watching import TurnWatch
from agents_app.turns.said import steering
from agents_app.turns.said.deleting import is_deleted
from agents_app.workers.endings import end, to_its_end
from sessions_app.history import transcripts
from sessions_app.models import Message, Session, Turn
from sessions_app.streaming.log import Hold, HoldLost
from sessions_app.threads import in_thread

log = logging.getLogger(__name__)

CLOSES_WITHIN = 30.0  # a runtime that has answered; each has shorter limits of its own


async def run_waiting_turns(session_id: UUID, holder: Holder, runtime: Runtime) -> None:
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


class TurnRun:
    def __init__(self, turn: Turn, hold: Hold, holder: Holder, runtime: Runtime) -> None:
        self._turn = turn
        self._hold = hold
        self._holder = holder
        self._runtime = runtime
        self._began = monotonic()
        self._recorder = Recorder(turn.session_id, hold, last_seq=turn.session.last_seq)
        self._watch = TurnWatch(turn, hold, self._more_is_said)
        self._named_hosts = NamedHosts(turn.session_id)
        self._prepared: Prepared | None = None
        self._has_more = False
        self._saying = asyncio.Lock()  # what is taken from the rows is said before the end is looked at

    async def go(self) -> None:
        self._holder.turns.add(self._turn.pk)
        work = asyncio.create_task(self._work())
        watch = asyncio.create_task(self._watch.guard(work))
        try:
            await asyncio.wait({work})
            await to_its_end(self._end(work))
        except asyncio.CancelledError:  # this worker stops: somebody else goes on with it
            await to_its_end(self._give_back(work))
            raise
        finally:
            await to_its_end(end(watch))
            self._holder.turns.discard(self._turn.pk)

    async def _work(self) -> TurnOutcome:
        if self._turn.attempt > 1:
            await self._recorder.go_on()
        unresumable = ""
        while True:
            prepared = self._prepared = await in_thread(self._prepare)(unresumable)
            self._watch.deadline = prepared.deadline
            try:
                return await self._run_through(prepared)
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

    async def _run_through(self, prepared: Prepared) -> TurnOutcome:
        gate = gate_for(self._turn.session, self._hold, prepared, self._recorder, self._named_hosts)
        outcome: TurnOutcome | None = None
        try:
            async with (
                asyncio.timeout(None) as closing,
                self._runtime.open(prepared.request, gate, self._recorder.waits) as run,
            ):
                self._watch.run = run
                outcome = await self._hear(run, prepared)
                closing.reschedule(asyncio.get_running_loop().time() + CLOSES_WITHIN)
        except (TimeoutError, asyncio.CancelledError):
            if outcome is None:
                raise
            log.warning(
                "The runtime of turn %s was cut off while it closed; its answer stands.", self._turn.pk
            )
        assert outcome is not None
        return outcome

    async def _hear(self, run: Run, prepared: Prepared) -> TurnOutcome:
        outcome = TurnOutcome()
        async with aclosing(run.events()) as events:
            async for event in events:
                if isinstance(event, Ready):
                    self._recorder.announce([*prepared.rows, *_not_connected(prepared, event)], event)
                elif isinstance(event, Ended):
                    outcome.add(event)
                    if event.interrupted or await self._has_answered_all(run):
                        await self._recorder.settled()
                        return outcome
                else:
                    await self._recorder.write(event)
                    await self._hand_over(run)
        raise AgentError("cli_crashed", _("The agent ended without an answer."))

    async def _more_is_said(self, run: Run) -> None:
        self._has_more = True
        await self._hand_over(run)

    async def _hand_over(self, run: Run) -> None:
        """What was said meanwhile, while a tool runs: then the agent reads it with the tool's answer."""
        if self._has_more and self._recorder.is_using_a_tool:
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
            self._named_hosts.read_again()
        for message in messages:
            await run.inject(message.pk, message.content)

    async def _give_back(self, work: asyncio.Task[TurnOutcome]) -> None:
        """Back to the queue, unless it is over already, or somebody wants it to be."""
        if not work.done():
            await end(work)
            await self._recorder.through()
            cut_off = self._recorder.cut_off()
            if problem_of(work) and await in_thread(finish.put_back)(self._hold, *cut_off):
                await in_thread(ring_workers)(self._turn.session_id)
                return
        await self._end(work)

    async def _end(self, work: asyncio.Task[TurnOutcome]) -> None:
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

    async def _write_end(self, work: asyncio.Task[TurnOutcome]) -> None:
        await self._recorder.through()
        problem = problem_of(work)
        look = await in_thread(self._watch.look)()
        if not look.is_held:
            raise HoldLost(f"turn {self._turn.pk}")
        if look.is_aborted:
            await self._recorder.keep_unfinished()
            await in_thread(finish.aborted)(self._turn, self._hold)
        elif problem is not None:
            await self._recorder.keep_unfinished()
            kind, payload = as_failure(self._turn.pk, self._too_late() or problem)
            await in_thread(finish.failed)(self._turn, self._hold, kind, payload)
        else:
            await self._done(work.result())

    def _too_late(self) -> AgentError | None:
        if not self._watch.is_late or self._watch.deadline is None:
            return None
        seconds = int(self._watch.deadline.total_seconds())
        ran = _("%d seconds") % seconds if seconds < 120 else _("%d minutes") % (seconds // 60)
        return AgentError("deadline_exceeded", _("It ran for %(time)s and was stopped.") % {"time": ran})

    async def _done(self, outcome: TurnOutcome) -> None:
        assert self._prepared is not None
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


def _not_connected(prepared: Prepared, ready: Ready) -> list[Row]:
    """A server that is not there costs its tools, and never the turn."""
    states = {each.get("name", ""): each.get("status", "") for each in ready.mcp_servers}
    return [as_row(each) for each in not_connected(prepared.request.given, states)]


def _publish(prepared: Prepared) -> None:
    request = prepared.request
    last = transcripts.publish(request.session_id, request.vault, request.directory)
    if last:
        Session.objects.filter(pk=request.session_id).update(last_entry=last)

"""One turn, from its claim to its end.

1. Claim the next queued turn of the session.
2. Watch for an abort, and for the loss of the turn, from here on.
3. Prepare: directory, wall, prompt, and how to take it up.
4. Announce it: `session` with how it was resumed, warnings, `prompt_metadata`.
5. Open the runtime behind the gate.
6. Record what comes out of it, until its end.
7. Write the end: `done`, `aborted`, or an error.
8. Publish the transcript to the vault.
"""

import asyncio
import logging
from contextlib import aclosing
from time import monotonic
from typing import Any
from uuid import UUID, uuid4

from django.db import DatabaseError

from agents_app.endings import end, to_its_end
from agents_app.errors import AgentError
from agents_app.runtimes.base import Run, Runtime
from agents_app.runtimes.events import Answered, Delta, Ended, Ready, Said, Used, Warned
from agents_app.turns import finish
from agents_app.turns.claim import claim
from agents_app.turns.opening import about
from agents_app.turns.prepare import Prepared, prepare
from agents_app.turns.recorder import Recorder
from agents_app.turns.ringing import ring_workers
from agents_app.turns.worker import Holder
from permissions_app.gate import Gate
from sessions_app import bus, transcripts
from sessions_app.log import Hold, HoldLost
from sessions_app.models import EventType, Session, SessionEvent, Turn
from sessions_app.threads import in_thread

log = logging.getLogger(__name__)

LOOKS_FOR_ABORT_EVERY = 2.0  # seconds, beside the ring
INTERRUPT_GRACE = 5.0  # to end by itself, with what it has written (1.4 s was seen); then it is ended
CLOSES_WITHIN = 30.0  # a runtime that has answered; each has shorter limits of its own
STOPPED = AgentError("cli_crashed", "The agent stopped in the middle, and nobody had asked it to.")


async def run_session(session_id: UUID, holder: Holder, runtime: Runtime) -> None:
    """Runs what waits in a session, in order, until nothing waits or another worker has it."""
    # To its end: a claim that is cancelled half-way may have got a turn that nobody would run.
    while claimed := await to_its_end(in_thread(claim)(session_id, holder)):
        await TurnRun(*claimed, holder, runtime).go()


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
            watch.cancel()
            self._holder.turns.discard(self._turn.pk)

    async def _work(self) -> Ended:
        prepared = self._prepared = await in_thread(prepare)(self._turn)
        recorder = self._recorder = await in_thread(self._new_recorder)()
        await self._announce(prepared, recorder)
        gate = Gate(prepared.setting, is_current=self._is_current, on_denied=recorder.denied)
        ended: Ended | None = None
        try:
            async with asyncio.timeout(None) as closing, self._runtime.open(prepared.request, gate) as run:
                self._run = run
                ended = await _record(run, recorder)
                closing.reschedule(asyncio.get_running_loop().time() + CLOSES_WITHIN)
        except (TimeoutError, asyncio.CancelledError):
            if ended is None:
                raise
            log.warning(
                "The runtime of turn %s was cut off while it closed; its answer stands.", self._turn.pk
            )
        assert ended is not None
        return ended

    def _new_recorder(self) -> Recorder:
        """It goes on counting blocks where the attempt before it ended."""
        blocks = SessionEvent.objects.filter(turn=self._turn, type__in=(EventType.TEXT, EventType.THINKING))
        newest = blocks.order_by("-seq").first()
        first = newest.payload["block"] + 1 if newest else 0
        last: int = Session.objects.values_list("last_seq", flat=True).get(pk=self._turn.session_id)
        return Recorder(self._turn.session_id, self._hold, first_block=first, last_seq=last)

    async def _announce(self, prepared: Prepared, recorder: Recorder) -> None:
        await recorder.row(EventType.SESSION, about(self._turn.session, prepared.resume_info))
        for warning in prepared.warnings:
            await recorder.row(EventType.WARNING, warning)
        await recorder.row(EventType.PROMPT_METADATA, prepared.prompt)

    async def _is_current(self) -> bool:
        return await in_thread(finish.is_held)(self._hold)

    async def _watch(self, work: asyncio.Task[Ended]) -> None:
        """Stops the work when somebody aborts the turn, or when it is ours no more. It begins again when it
        fails, because nobody could stop a turn that is not watched."""
        while not work.done():
            try:
                if await self._is_stopped(work):
                    return
                async with bus.current().subscribe(bus.turn_topic(self._turn.pk)) as listener:
                    while not await self._is_stopped(work):
                        await listener.next(LOOKS_FOR_ABORT_EVERY)
                return
            except Exception:
                log.exception("Turn %s could not be watched; trying again.", self._turn.pk)
                await asyncio.sleep(LOOKS_FOR_ABORT_EVERY)

    async def _is_stopped(self, work: asyncio.Task[Ended]) -> bool:
        held, abort = await in_thread(self._look)()
        if not held:
            await end(work)
        elif abort:
            await self._interrupt(work)
        return abort or not held

    def _look(self) -> tuple[bool, bool]:
        """Whether the turn is still ours, and whether somebody wants it stopped."""
        row = finish.held(self._hold).values_list("abort_requested_at").first()
        return row is not None, row is not None and row[0] is not None

    async def _interrupt(self, work: asyncio.Task[Ended]) -> None:
        if self._run is not None:
            asking = asyncio.create_task(self._run.interrupt())
            await asyncio.wait({work}, timeout=INTERRUPT_GRACE)
            asking.cancel()
        await end(work)

    async def _give_back(self, work: asyncio.Task[Ended]) -> None:
        """Back to the queue, unless it is over already, or somebody wants it to be."""
        if not work.done():
            await end(work)
            if _problem_of(work) and await in_thread(finish.put_back)(self._hold):
                await in_thread(ring_workers)(self._turn.session_id)
                return
        await self._end(work)

    async def _end(self, work: asyncio.Task[Ended]) -> None:
        try:
            await self._write_end(work)
        except HoldLost as lost:
            log.warning("This worker lost %s; what it did since is not written.", lost)
        except DatabaseError:
            log.exception(
                "Turn %s could not be ended; when its lease is over it is run again.", self._turn.pk
            )
        else:
            await self._publish()

    async def _write_end(self, work: asyncio.Task[Ended]) -> None:
        problem = _problem_of(work)
        held, abort = await in_thread(self._look)()
        if not held:
            raise HoldLost(f"turn {self._turn.pk}")
        if abort:
            await self._keep_unfinished()
            await in_thread(finish.aborted)(self._turn, self._hold)
        elif problem is not None:
            await self._keep_unfinished()
            await self._fail(problem)
        else:
            await self._done(work.result())

    async def _keep_unfinished(self) -> None:
        if self._recorder is not None:
            await self._recorder.keep_unfinished()

    async def _done(self, ended: Ended) -> None:
        assert self._recorder is not None and self._prepared is not None
        payload = {
            "response": ended.response or self._recorder.response,
            "model": ended.model,
            "durationMs": round((monotonic() - self._began) * 1000),
            "toolCalls": self._recorder.tool_calls,
            "spawned": [],
            "permissionDenials": self._recorder.denials,
            "sessionResume": _session_resume(self._prepared),
            "usage": dict(ended.usage),
            "costUsd": ended.cost_usd,
        }
        await in_thread(finish.done)(
            self._turn, self._hold, payload, usage=ended.usage, cost_usd=ended.cost_usd
        )

    async def _fail(self, error: BaseException) -> None:
        kind = EventType.TYPED_ERROR
        if isinstance(error, AgentError):
            payload = error.as_payload()
            log.warning("Turn %s failed: %s: %s", self._turn.pk, error.code, error.message)
        else:
            incident = uuid4().hex[:12]
            log.error("Turn %s failed, incident %s", self._turn.pk, incident, exc_info=error)
            kind = EventType.ERROR
            payload = {
                "error": f"Something failed that was not foreseen. The log has it as incident {incident}.",
                "incidentId": incident,
            }
        await in_thread(finish.failed)(self._turn, self._hold, kind, payload)

    async def _publish(self) -> None:
        if self._prepared is None:
            return
        request = self._prepared.request
        try:
            await in_thread(transcripts.publish)(request.session_id, request.vault, request.directory)
        except Exception:
            log.exception("The transcript of %s was not published.", request.session_id)


async def _record(run: Run, recorder: Recorder) -> Ended:
    async with aclosing(run.events()) as events:
        async for event in events:
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
                case Ready():
                    await recorder.row(EventType.MODEL, {"model": event.model})
                    await recorder.row(EventType.INIT, _init(event))
                case Ended():
                    return event
    raise AgentError("cli_crashed", "The agent ended without an answer.")


def _init(ready: Ready) -> dict[str, Any]:
    return {
        "tools": list(ready.tools),
        "mcpServers": [dict(server) for server in ready.mcp_servers],
        "permissionMode": ready.permission_mode,
    }


def _session_resume(prepared: Prepared) -> dict[str, Any]:
    info = prepared.resume_info
    resumed = info["method"] == "sdk_resume"
    return {
        "method": info["method"],
        "sdkSessionValid": resumed,
        "sdkResumeAttempted": resumed,
        "contextInjected": False,
        "messagesInjected": 0,
        "tokensEstimate": 0,
        "previousMessageCount": info["previousMessageCount"],
        "loadedFromDisk": resumed,
        "cacheHit": False,
    }


def _problem_of(work: asyncio.Task[Ended]) -> BaseException | None:
    """Why it did not come to its end; None where it did. That somebody stopped it is known already."""
    if work.cancelled():
        return STOPPED
    return work.exception() or (STOPPED if work.result().interrupted else None)

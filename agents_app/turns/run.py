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

from agents_app.errors import AgentError
from agents_app.runtimes.base import Run, Runtime
from agents_app.runtimes.events import Answered, Delta, Ended, Ready, Said, Used, Warned
from agents_app.turns import finish
from agents_app.turns.claim import claim
from agents_app.turns.opening import about
from agents_app.turns.prepare import Prepared, prepare
from agents_app.turns.recorder import Recorder
from agents_app.turns.worker import Holder
from permissions_app.gate import Gate
from sessions_app import bus, transcripts
from sessions_app.log import Hold, HoldLost
from sessions_app.models import EventType, Session, SessionEvent, Turn
from sessions_app.threads import in_thread

log = logging.getLogger(__name__)

LOOKS_FOR_ABORT_EVERY = 2.0  # seconds, beside the ring
INTERRUPT_GRACE = 2.0  # to end by itself, with what it has written; then it is ended


async def run_session(session_id: UUID, holder: Holder, runtime: Runtime) -> None:
    """Runs what waits in a session, in order, until nothing waits or another worker has it."""
    while claimed := await in_thread(claim)(session_id, holder):
        await TurnRun(*claimed, runtime).go()


class TurnRun:
    def __init__(self, turn: Turn, hold: Hold, runtime: Runtime) -> None:
        self._turn = turn
        self._hold = hold
        self._runtime = runtime
        self._began = monotonic()
        self._run: Run | None = None
        self._recorder: Recorder | None = None
        self._prepared: Prepared | None = None

    async def go(self) -> None:
        work = asyncio.create_task(self._work())
        watch = asyncio.create_task(self._watch(work))
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:  # this worker stops: somebody else goes on with it
            await _cancelled(work)
            await in_thread(finish.put_back)(self._hold)
            raise
        finally:
            watch.cancel()
        await self._end(work)

    async def _work(self) -> Ended:
        prepared = self._prepared = await in_thread(prepare)(self._turn)
        recorder = self._recorder = await in_thread(self._new_recorder)()
        await self._announce(prepared, recorder)
        gate = Gate(prepared.setting, is_current=self._is_current, on_denied=recorder.denied)
        async with self._runtime.open(prepared.request, gate) as run:
            self._run = run
            ended = await _record(run, recorder)
        self._run = None
        return ended

    def _new_recorder(self) -> Recorder:
        blocks = (EventType.TEXT, EventType.THINKING)
        finished = SessionEvent.objects.filter(turn=self._turn, type__in=blocks).count()
        last: int = Session.objects.values_list("last_seq", flat=True).get(pk=self._turn.session_id)
        return Recorder(self._turn.session_id, self._hold, first_block=finished, last_seq=last)

    async def _announce(self, prepared: Prepared, recorder: Recorder) -> None:
        await recorder.row(EventType.SESSION, about(self._turn.session, prepared.resume_info))
        for warning in prepared.warnings:
            await recorder.row(EventType.WARNING, warning)
        await recorder.row(EventType.PROMPT_METADATA, prepared.prompt)

    async def _is_current(self) -> bool:
        return await in_thread(finish.is_held)(self._hold.turn_id, self._hold.attempt)

    async def _watch(self, work: asyncio.Task[Ended]) -> None:
        """Stops the work when somebody aborts the turn, or when it is ours no more."""
        async with bus.current().subscribe(bus.turn_topic(self._turn.pk)) as listener:
            while True:
                try:
                    held, abort = await in_thread(self._look)()
                except DatabaseError:
                    log.exception("The turn could not be looked at; trying again.")
                    held, abort = True, False
                if not held:
                    work.cancel()
                    return
                if abort:
                    await self._interrupt(work)
                    return
                await listener.next(LOOKS_FOR_ABORT_EVERY)

    def _look(self) -> tuple[bool, bool]:
        held = Turn.objects.active().filter(pk=self._turn.pk, attempt=self._hold.attempt)
        asked = held.values_list("abort_requested_at", flat=True).first() if held else None
        return bool(held), asked is not None

    async def _interrupt(self, work: asyncio.Task[Ended]) -> None:
        if self._run is not None:
            asking = asyncio.create_task(self._run.interrupt())
            await asyncio.wait({work}, timeout=INTERRUPT_GRACE)
            asking.cancel()
        work.cancel()

    async def _end(self, work: asyncio.Task[Ended]) -> None:
        try:
            await self._write_end(work)
        except HoldLost as lost:
            log.warning("This worker lost %s; what it did since is not written.", lost)
            return
        await in_thread(self._publish)()

    async def _write_end(self, work: asyncio.Task[Ended]) -> None:
        _, aborted = await in_thread(self._look)()
        error = None if work.cancelled() else work.exception()
        if isinstance(error, HoldLost):
            raise error
        if aborted or work.cancelled():
            partial = await self._recorder.keep_unfinished() if self._recorder else ""
            await in_thread(finish.aborted)(self._turn, self._hold, partial=partial)
        elif error is not None:
            await self._fail(error)
        else:
            await self._done(work.result())

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
        kind, payload = EventType.TYPED_ERROR, {}
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
        if self._recorder:
            await self._recorder.keep_unfinished()
        await in_thread(finish.failed)(self._turn, self._hold, kind, payload)

    def _publish(self) -> None:
        if self._prepared is not None:
            request = self._prepared.request
            transcripts.publish(request.session_id, request.vault, request.directory)


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


async def _cancelled(work: asyncio.Task[Ended]) -> None:
    work.cancel()
    await asyncio.wait({work})

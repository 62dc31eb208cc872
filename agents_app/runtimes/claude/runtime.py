"""One run of the real CLI: started through the launcher, speaking to the model through the door, each of its
tool calls decided by the gate. A process that ended its turn well may rest for the session's next one."""

import asyncio
import logging
import shutil
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

from claude_agent_sdk import ClaudeSDKError, Message, UserMessage
from django.conf import settings

from agents_app.egress.door import Egress
from agents_app.egress.reach import Reach
from agents_app.model.door import Door
from agents_app.runtimes.base import CannotResume, HeldBack, NotThisTime, RunFailed, RunRequest, Waits
from agents_app.runtimes.claude.failures import failure_to_start
from agents_app.runtimes.claude.process import ClaudeProcess, Fingerprint
from agents_app.runtimes.claude.quota import Quota
from agents_app.runtimes.claude.refusals import refusals
from agents_app.runtimes.claude.starts import Starts
from agents_app.runtimes.claude.translate import Translator
from agents_app.runtimes.claude.warm import MOST, WarmProcesses
from agents_app.runtimes.events import Answered, Ended, Ready, RuntimeEvent, Used
from agents_app.workers.endings import to_its_end
from permissions_app.gate import Answer, Carried, Gate
from permissions_app.rules.decision import Decision, Verdict
from permissions_app.rules.deny_list import cli_deny_rules
from permissions_app.rules.ladder import ToolCall

log = logging.getLogger(__name__)
logging.getLogger("claude_agent_sdk").setLevel(logging.CRITICAL)  # it raises what it logs, or we killed it

STARTS = 3  # that are tried where somebody changes the vault in the moment of a start
CANNOT_RESUME = ("No conversation found", "Failed to resume session")
BY_THE_CLI = "The deny list refused this before it ran: such files hold secrets. Trust does not lift it."
NOT_THROUGH_THE_GATE = "The gate did not allow this call."
ALLOWED_BEFORE = Decision(Verdict.ALLOW, "gate", "The gate allowed this call a moment ago.")


class ClaudeRuntime:
    def __init__(self, door: Door, egress: Egress | None = None, *, most_warm: int | None = None) -> None:
        self._door, self._egress = door, egress
        self._papers = _own_folder(door.socket.stem)
        self._warm = WarmProcesses(MOST if most_warm is None else most_warm)
        self._starts = Starts(self._warm.make_room)

    @asynccontextmanager
    async def open(self, request: RunRequest, gate: Gate, waits: Waits) -> AsyncIterator["ClaudeRun"]:
        reach = Reach(gate, request.directory)
        process, was_warm = await self._process(request, reach, waits)
        name = "demo" if self._door.upstream.is_demo else ""
        gate.stands_behind(process.carrier, process.held)
        most = settings.PARACHUTE_LIMITS.scratch
        room = Quota(request.config, request.session_id, most) if request.sandbox.is_wall else None
        run = ClaudeRun(process, request, reach, room, was_warm=was_warm, model_name=name)
        is_kept = False
        self._starts.running += 1
        try:
            process.serve(run, str(request.turn_id))
            try:
                async with room.watched(process.kill) if room else nullcontext():
                    yield run
            except RunFailed:  # the model's failure is in the transcript too, if the CLI may write it
                await process.close()
                raise
            may_rest = run.is_at_rest and request.may_rest and not run.has_filled_its_room
            is_kept = may_rest and await self._warm.keep(process, request)
            if not is_kept:
                await process.close()
        finally:
            self._starts.running -= 1
            if not is_kept:
                await to_its_end(process.end())
            if room and room.is_full:
                await to_its_end(asyncio.to_thread(room.empty))

    def rests(self, session_id: UUID) -> bool:
        return session_id in self._warm

    async def forget(self, session_id: UUID) -> None:
        await self._warm.forget(session_id)

    async def close(self) -> None:
        await self._warm.close()

    async def _process(self, request: RunRequest, reach: Reach, waits: Waits) -> tuple[ClaudeProcess, bool]:
        """The one that rests for this session, if it fits, else a new one; and whether it had rested."""
        deny = await asyncio.to_thread(cli_deny_rules, reach.gate.setting)
        if warm := await self._warm.take(request, Fingerprint.of(request, deny)):
            return warm, True
        request.config.mkdir(mode=0o700, parents=True, exist_ok=True)
        for left in reversed(range(1, STARTS)):
            try:
                return await self._started(request, deny, reach, waits), False
            except NotThisTime:
                if left == 1:  # what rests there may be why, each time
                    await self._warm.leave(request.vault)
            except HeldBack:
                if not await self._warm.leave(request.vault):
                    raise
        return await self._started(request, deny, reach, waits), False

    async def _started(
        self, request: RunRequest, deny: list[str], reach: Reach, waits: Waits
    ) -> ClaudeProcess:
        process = ClaudeProcess(request, deny, self._door, self._papers, self._egress)
        try:
            async with self._starts.slot(waits):
                await process.start(request, reach)
        except BaseException:
            await to_its_end(process.end())
            raise
        return process


class ClaudeRun:
    def __init__(
        self,
        process: ClaudeProcess,
        request: RunRequest,
        reach: Reach,
        room: Quota | None = None,
        *,
        was_warm: bool = False,
        model_name: str = "",
    ) -> None:
        self._process = process
        self._request = request
        self._gate = reach.gate
        self._room = room
        self.reach = reach
        self._was_warm = was_warm
        self._model_name = model_name
        self._calls: dict[str, ToolCall] = {}
        self._carried: dict[str, Carried] = {}  # the CLI did something else instead
        self._unheard: set[str] = set()  # what was said and is not yet told back: the CLI has not read it
        self._has_ended = False

    @property
    def owes_an_answer(self) -> bool:
        return bool(self._unheard)

    @property
    def is_at_rest(self) -> bool:
        """It answered all that was said, and could answer more."""
        return self._has_ended and not self._unheard

    async def events(self) -> AsyncGenerator[RuntimeEvent]:
        translator = Translator(self._model_name, self._process.trouble)
        try:
            await self.inject(self._request.message_id, self._request.text)
            async for message in self._process.client.receive_messages():
                self._unheard.discard(_told_back(message))
                await self._tell_refusals(message)
                for event in translator.events(message):
                    yield self._as_ours(event)
        except ClaudeSDKError as error:
            raise self._failure(error) from error
        raise self._failure(EOFError())

    @property
    def has_filled_its_room(self) -> bool:
        return self._room is not None and self._room.is_full

    def _failure(self, error: ClaudeSDKError | EOFError) -> RunFailed:
        if self._room and self._room.is_full:
            return self._room.failure()
        heard = self._process.heard()
        failure = failure_to_start(error, heard)
        is_not_there = any(words in heard for words in CANNOT_RESUME)
        return CannotResume(failure.code, failure.message) if is_not_there else failure

    async def inject(self, message_id: UUID, text: str) -> None:
        self._has_ended = False
        self._unheard.add(str(message_id))
        await self._process.client.query(_prompt(message_id, text))

    def _as_ours(self, event: RuntimeEvent) -> RuntimeEvent:
        if isinstance(event, Answered):
            self.reach.ends(event.tool_use_id)
        match event:
            case Used():
                self._calls[event.id] = ToolCall(event.id, event.name, event.input)
            case Answered() if carried := self._carried.pop(event.tool_use_id, None):
                return replace(event, content=carried.text, is_error=carried.is_error)
            case Ready():
                return replace(event, was_warm=self._was_warm)
            case Ended():
                self._has_ended = True
                cost = event.cost_usd - self._process.told_cost
                self._process.told_cost = event.cost_usd
                return replace(event, cost_usd=max(cost, 0.0))
        return event

    async def interrupt(self) -> None:
        try:
            await self._process.client.interrupt()
        except Exception:
            log.exception("A CLI could not be interrupted; it is ended.")

    async def decide(self, call: ToolCall, directory: Path) -> Decision:
        decision = await self._gate(call, directory)
        if decision.verdict is Verdict.ALLOW:
            self.reach.begins(call)
        return decision

    async def decide_again(self, call: ToolCall) -> Answer:
        if self._gate.allowed_this(call):
            return Answer(ALLOWED_BEFORE)
        if self._gate.asks_about(call):
            answer = await self._gate.ask(call)
            if answer.carried:
                self._carried[call.id] = answer.carried
            if answer.decision.verdict is Verdict.ALLOW:
                self.reach.begins(call)
            return answer
        refusal = await self._gate.refused_elsewhere(call, "not_through_the_gate", NOT_THROUGH_THE_GATE)
        return Answer(refusal)

    async def _tell_refusals(self, message: Message) -> None:
        """What the CLI refused by its own deny rules never came to the gate, and is told like the gate's."""
        for call in refusals(message, self._calls):
            await self._gate.refused_elsewhere(call, "deny_list", BY_THE_CLI)


async def _prompt(message_id: UUID, text: str) -> AsyncIterator[dict[str, Any]]:
    yield {
        "type": "user",
        "uuid": str(message_id),
        "message": {"role": "user", "content": text},
        "parent_tool_use_id": None,
    }


def _told_back(message: Message) -> str:
    """The id of what a person said, told back when the CLI reads it: at the beginning of an answer, or with
    what a tool answered. Two that wait may be read together, so answers say nothing about how many were."""
    return str(message.uuid) if isinstance(message, UserMessage) else ""


def _own_folder(worker: str) -> Path:
    """For the files that prompts go by. A worker that was killed left its own behind: it starts with none."""
    folder = Path(settings.PARACHUTE_HOME) / "papers" / worker
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    return folder

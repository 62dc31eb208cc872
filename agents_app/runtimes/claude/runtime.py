"""One run of the real CLI: started through the launcher, speaking to the model through the door, each of its
tool calls decided by the gate. A process that ended its turn well may rest for the session's next one."""

import asyncio
import logging
import os
import shutil
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeSDKError, Message
from django.conf import settings

from agents_app.door import Door
from agents_app.endings import to_its_end
from agents_app.runtimes.base import RunFailed, RunRequest
from agents_app.runtimes.claude.failures import failure_to_start
from agents_app.runtimes.claude.process import ClaudeProcess, Fingerprint
from agents_app.runtimes.claude.refusals import refusals
from agents_app.runtimes.claude.translate import Translator
from agents_app.runtimes.claude.warm import WarmProcesses
from agents_app.runtimes.events import Ended, RuntimeEvent, Used
from permissions_app.gate import Gate
from permissions_app.rules.decision import Decision, Verdict
from permissions_app.rules.deny_list import cli_deny_rules
from permissions_app.rules.ladder import ToolCall

log = logging.getLogger(__name__)
logging.getLogger("claude_agent_sdk").setLevel(logging.CRITICAL)  # it raises what it logs, or we killed it

STARTS_AT_ONCE = 2  # more only slow each other down: 32 at once took 10 s each, two at a time 3.6 s
BY_THE_CLI = "The deny list refused this before it ran: such files hold secrets. Trust does not lift it."
NOT_THROUGH_THE_GATE = "The gate did not allow this call."
ALLOWED_BEFORE = Decision(Verdict.ALLOW, "gate", "The gate allowed this call a moment ago.")


class ClaudeRuntime:
    def __init__(self, door: Door, *, most_warm: int | None = None) -> None:
        self._door = door
        self._papers = _own_folder(door.socket.stem)
        self._starting = asyncio.Semaphore(STARTS_AT_ONCE)
        self._warm = WarmProcesses(most_warm)

    @asynccontextmanager
    async def open(self, request: RunRequest, gate: Gate) -> AsyncIterator["ClaudeRun"]:
        process = await self._process(request, gate)
        run = ClaudeRun(process, request, gate)
        is_kept = False
        try:
            process.serve(run, str(request.turn_id))
            try:
                yield run
            except RunFailed:  # the model's failure is in the transcript too, if the CLI may write it
                await process.close()
                raise
            is_kept = run.has_ended and await self._warm.keep(process, request)
            if not is_kept:
                await process.close()
        finally:
            if not is_kept:
                await to_its_end(process.end())

    async def close(self) -> None:
        await self._warm.close()

    async def _process(self, request: RunRequest, gate: Gate) -> ClaudeProcess:
        """The one that rests for this session, if it fits, else a new one."""
        deny = await asyncio.to_thread(cli_deny_rules, gate.setting)
        if warm := await self._warm.take(request, Fingerprint.of(request, deny)):
            return warm
        _make_place(request)
        process = ClaudeProcess(request, deny, self._door, self._papers)
        try:
            async with self._starting:
                await process.start(request)
        except BaseException:
            await to_its_end(process.end())
            raise
        return process


class ClaudeRun:
    def __init__(self, process: ClaudeProcess, request: RunRequest, gate: Gate) -> None:
        self._process = process
        self._request = request
        self._gate = gate
        self._calls: dict[str, ToolCall] = {}
        self.has_ended = False

    async def events(self) -> AsyncGenerator[RuntimeEvent]:
        client = self._process.client
        translator = Translator("demo" if settings.PARACHUTE_MODEL.is_demo else "")
        try:
            await client.query(self._prompt())
            async for message in client.receive_messages():
                await self._tell_refusals(message)
                for event in translator.events(message):
                    if isinstance(event, Used):
                        self._calls[event.id] = ToolCall(event.id, event.name, event.input)
                    self.has_ended = isinstance(event, Ended)
                    yield event
                    if self.has_ended:
                        return
        except ClaudeSDKError as error:
            raise failure_to_start(error, self._process.heard()) from error
        text = f"The agent's program ended before its answer. {self._process.heard()}"
        raise RunFailed("cli_crashed", text.strip())

    async def interrupt(self) -> None:
        try:
            await self._process.client.interrupt()
        except Exception:
            log.exception("A CLI could not be interrupted; it is ended.")

    async def decide(self, call: ToolCall, directory: Path) -> Decision:
        return await self._gate(call, directory)

    async def decide_again(self, call: ToolCall) -> Decision:
        if self._gate.allowed_this(call):
            return ALLOWED_BEFORE
        return await self._gate.refused_elsewhere(call, "not_through_the_gate", NOT_THROUGH_THE_GATE)

    async def _prompt(self) -> AsyncIterator[dict[str, Any]]:
        yield {
            "type": "user",
            "uuid": str(self._request.message_id),
            "message": {"role": "user", "content": self._request.text},
            "parent_tool_use_id": None,
        }

    async def _tell_refusals(self, message: Message) -> None:
        """What the CLI refused by its own deny rules never came to the gate, and is told like the gate's."""
        for call in refusals(message, self._calls):
            await self._gate.refused_elsewhere(call, "deny_list", BY_THE_CLI)


def _make_place(request: RunRequest) -> None:
    """The session's own folder. A transcript in which nothing was said yet when its CLI was killed would be
    in the way: of a new start ("already in use") as of a resume ("no conversation found")."""
    request.config.mkdir(mode=0o700, parents=True, exist_ok=True)
    projects = request.config / "projects"
    if not request.resume and os.path.lexists(projects):
        projects.rename(request.config / f"projects-before-{request.message_id}")


def _own_folder(worker: str) -> Path:
    """For the files that prompts go by. A worker that was killed left its own behind: it starts with none."""
    folder = Path(settings.PARACHUTE_HOME) / "papers" / worker
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    return folder

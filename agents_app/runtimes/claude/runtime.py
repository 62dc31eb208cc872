"""One run of the real CLI: started through the launcher, speaking to the model through the door, each of its
tool calls decided by the gate, and everything that it started gone when the run is left."""

import asyncio
import logging
import os
import shutil
import tempfile
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ClaudeSDKError,
    HookContext,
    HookInput,
    HookJSONOutput,
    Message,
    PermissionResultAllow,
    PermissionResultDeny,
    ToolPermissionContext,
)
from django.conf import settings

from agents_app import launcher
from agents_app.door import Door
from agents_app.endings import to_its_end
from agents_app.runtimes.base import RunFailed, RunRequest
from agents_app.runtimes.claude.failures import failure_to_start
from agents_app.runtimes.claude.options import launch_for, options_for
from agents_app.runtimes.claude.refusals import refusals
from agents_app.runtimes.claude.translate import Translator
from agents_app.runtimes.events import Ended, RuntimeEvent, Used
from agents_app.sandboxes.base import CannotConfine
from permissions_app.gate import Gate
from permissions_app.rules.deny_list import cli_deny_rules
from permissions_app.rules.ladder import ToolCall

log = logging.getLogger(__name__)
logging.getLogger("claude_agent_sdk").setLevel(logging.CRITICAL)  # it raises what it logs, or we killed it

STARTS_AT_ONCE = 2  # more only slow each other down: 32 at once took 10 s each, two at a time 3.6 s
CLOSES_WITHIN = 5.0
BY_THE_CLI = "The deny list refused this before it ran: such files hold secrets. Trust does not lift it."
NOT_THROUGH_THE_GATE = "The gate did not allow this call."


class ClaudeRuntime:
    def __init__(self, door: Door) -> None:
        self._door = door
        self._papers = _own_folder(door.socket.stem)
        self._starting = asyncio.Semaphore(STARTS_AT_ONCE)

    @asynccontextmanager
    async def open(self, request: RunRequest, gate: Gate) -> AsyncIterator["ClaudeRun"]:
        _make_place(request)
        mark = launcher.new_mark()
        door_pass = self._door.issue()
        with tempfile.TemporaryDirectory(prefix="run-", dir=self._papers) as folder:
            run = ClaudeRun(request, gate, Path(folder))
            client: ClaudeSDKClient | None = None
            try:
                options = await asyncio.to_thread(
                    run.options, mark=mark, token=door_pass.token, door=self._door.socket
                )
                client = ClaudeSDKClient(options)
                door_pass.turn = str(request.turn_id)
                async with self._starting:
                    await run.connect(client)
                try:
                    yield run
                except RunFailed:  # the model's failure is in the transcript too, if the CLI may write it
                    await _close(client)
                    raise
                await _close(client)
            finally:
                door_pass.revoke()
                await to_its_end(_end(client, mark))


class ClaudeRun:
    def __init__(self, request: RunRequest, gate: Gate, papers: Path) -> None:
        self._request = request
        self._gate = gate
        self._papers = papers
        self._client: ClaudeSDKClient | None = None
        self._last_words: deque[str] = deque(maxlen=3)
        self._calls: dict[str, ToolCall] = {}

    def options(self, *, mark: str, token: str, door: Path) -> ClaudeAgentOptions:
        """It looks at many files, for keys and for what a wall shows: call it in a thread."""
        try:
            launch = launch_for(self._request, papers=self._papers, mark=mark, token=token, door=door)
        except CannotConfine as error:
            raise RunFailed("sandbox_unavailable", str(error)) from error
        options = options_for(
            self._request,
            launch=launch,
            papers=self._papers,
            deny=cli_deny_rules(self._gate.setting),
            gate=self._before_tool,
            ask=self._may_use,
        )
        options.stderr = self._last_words.append
        return options

    async def connect(self, client: ClaudeSDKClient) -> None:
        try:
            await client.connect()
        except (ClaudeSDKError, OSError) as error:
            raise failure_to_start(error, self._heard()) from error
        self._client = client

    async def events(self) -> AsyncGenerator[RuntimeEvent]:
        assert self._client is not None
        translator = Translator("demo" if settings.PARACHUTE_MODEL.is_demo else "")
        try:
            await self._client.query(self._prompt())
            async for message in self._client.receive_messages():
                await self._tell_refusals(message)
                for event in translator.events(message):
                    if isinstance(event, Used):
                        self._calls[event.id] = ToolCall(event.id, event.name, event.input)
                    yield event
                    if isinstance(event, Ended):
                        return
        except ClaudeSDKError as error:
            raise failure_to_start(error, self._heard()) from error
        raise RunFailed(
            "cli_crashed", f"The agent's program ended before its answer. {self._heard()}".strip()
        )

    async def interrupt(self) -> None:
        if self._client is not None:
            try:
                await self._client.interrupt()
            except Exception:
                log.exception("A CLI could not be interrupted; it is ended.")

    async def _prompt(self) -> AsyncIterator[dict[str, Any]]:
        yield {
            "type": "user",
            "uuid": str(self._request.message_id),
            "message": {"role": "user", "content": self._request.text},
            "parent_tool_use_id": None,
        }

    def _heard(self) -> str:
        return " ".join(self._last_words)

    async def _before_tool(
        self, given: HookInput, tool_use_id: str | None, context: HookContext
    ) -> HookJSONOutput:
        """The gate, asked before every call. What raises here blocks the call."""
        hook: Any = given
        call = ToolCall(tool_use_id or hook["tool_use_id"], hook["tool_name"], hook["tool_input"])
        decision = await self._gate(call, Path(hook["cwd"]))
        return {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": decision.verdict.value,
                "permissionDecisionReason": decision.reason,
            }
        }

    async def _may_use(
        self, name: str, given: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResultAllow | PermissionResultDeny:
        """The CLI's own second thoughts. Only what the gate allowed, with this very input, is let through."""
        call = ToolCall(context.tool_use_id or "", name, given)
        if self._gate.allowed_this(call):
            return PermissionResultAllow()
        decision = await self._gate.refused_elsewhere(call, "not_through_the_gate", NOT_THROUGH_THE_GATE)
        return PermissionResultDeny(message=decision.reason)

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


async def _close(client: ClaudeSDKClient) -> None:
    """The friendly end, in which the CLI writes its transcript to the last line."""
    try:
        async with asyncio.timeout(CLOSES_WITHIN):
            await client.disconnect()
    except (TimeoutError, ClaudeSDKError) as error:
        log.warning("A CLI did not end by itself (%s) and is killed.", type(error).__name__)


async def _end(client: ClaudeSDKClient | None, mark: str) -> None:
    """The certain end. What the SDK thinks of it does not change that it is one."""
    await asyncio.to_thread(launcher.end_everything, mark)
    try:
        async with asyncio.timeout(CLOSES_WITHIN):
            if client is not None:
                await client.disconnect()
    except Exception:
        log.exception("The SDK did not let go of a CLI that has ended.")


def _own_folder(worker: str) -> Path:
    """For the files that prompts go by. A worker that was killed left its own behind: it starts with none."""
    folder = Path(settings.PARACHUTE_HOME) / "papers" / worker
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    return folder

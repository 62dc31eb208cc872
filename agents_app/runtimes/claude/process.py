"""One process of the CLI, behind its wall: started once, good for one turn after another of its session."""

import asyncio
import logging
import sys
import tempfile
from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

from claude_agent_sdk import (
    ClaudeSDKClient,
    ClaudeSDKError,
    HookContext,
    HookInput,
    HookJSONOutput,
    PermissionResultAllow,
    PermissionResultDeny,
    ToolPermissionContext,
)

from agents_app import launcher
from agents_app.carrying.carrier import Carrier
from agents_app.egress.door import Egress, EgressPass
from agents_app.egress.reach import Reach
from agents_app.launcher.outward import outward
from agents_app.launcher.walled import STANDS, Until, locks
from agents_app.model.door import Door, Trouble
from agents_app.runtimes.base import RunRequest
from agents_app.runtimes.claude import memory
from agents_app.runtimes.claude.carried import instead, result
from agents_app.runtimes.claude.failures import failure_to_confine, failure_to_start
from agents_app.runtimes.claude.options import Doors, Hooks, launch_for, options_for
from agents_app.runtimes.claude.servers import Uses
from agents_app.sandboxes import neighbours
from agents_app.sandboxes.base import CannotConfine, Launch
from agents_app.sandboxes.mounts import named_paths, settings_held, shows
from agents_app.tools.mcp.given import GivenServer
from agents_app.tools.own import OwnServer
from agents_app.tools.skills.given import GivenSkill
from agents_app.workers.endings import to_its_end
from permissions_app.audit import PLATFORM
from permissions_app.audit.decisions import TurnAudit
from permissions_app.gate import Answer, Carried
from permissions_app.rules.decision import Decision, Verdict
from permissions_app.rules.ladder import ToolCall

log = logging.getLogger(__name__)

STANDS_WITHIN = 20.0  # seconds: other agents in the vault stand still meanwhile
STARTS_WITHIN = 45.0  # the SDK would wait a minute, and raise a bare Exception
CLOSES_WITHIN = 5.0
BETWEEN_TURNS = Decision(Verdict.DENY, "turn_over", "No turn is running in this session.")


class Served(Protocol):
    """Who answers for the tool calls of a process, and for its connections: the turn that it serves."""

    @property
    def reach(self) -> Reach: ...

    async def decide(self, call: ToolCall, directory: Path) -> Decision: ...

    async def decide_again(self, call: ToolCall) -> Answer:
        """May wait for a person."""


@dataclass(frozen=True)
class Fingerprint:
    """All that a process was started with. A turn that wants anything else gets a new process: a connected
    one never sees a changed file or option."""

    model: str
    system_prompt: str
    append: str
    directory: Path
    vault: Path
    sandbox: str
    masked: tuple[Path, ...]
    opened: tuple[Path, ...]
    web: bool
    read_only: tuple[Path, ...]
    writable: tuple[str, ...] | None
    deny: tuple[str, ...]
    tools: tuple[str, ...] | None
    max_turns: int | None
    servers: tuple[OwnServer, ...]
    mcp_file: Path | None
    given: tuple[GivenServer, ...]
    skills: tuple[GivenSkill, ...]

    @classmethod
    def of(cls, request: RunRequest, deny: list[str]) -> "Fingerprint":
        return cls(
            model=request.model,
            system_prompt=request.system_prompt,
            append=request.append,
            directory=request.directory,
            vault=request.vault,
            sandbox=request.sandbox.name,
            masked=request.masked,
            opened=request.opened,
            web=request.web,
            read_only=request.read_only,
            writable=request.writable,
            deny=tuple(deny),
            tools=request.tools,
            max_turns=request.max_turns,
            servers=request.servers,
            mcp_file=request.mcp_file,
            given=request.given,
            skills=request.skills,
        )


class ClaudeProcess:
    def __init__(
        self, request: RunRequest, deny: list[str], door: Door, papers: Path, egress: Egress | None = None
    ) -> None:
        self.session_id = request.session_id
        self.fingerprint = Fingerprint.of(request, deny)
        self.client: ClaudeSDKClient
        self._mark = launcher.new_mark()
        self._door = door
        self._pass = door.issue()
        self._egress = egress if request.web else None
        self._out: EgressPass | None = None
        self._papers = tempfile.TemporaryDirectory(prefix="run-", dir=papers)
        self._last_words: deque[str] = deque(maxlen=3)
        self._serves: Served | None = None
        self._carried: dict[str, tuple[ToolCall, Carried]] = {}  # of which its CLI is still to hear
        self.told_cost = 0.0  # the CLI counts on from turn to turn
        self._uses = Uses()
        self._own: set[tuple[int, str]] = set()  # the processes that it is, as opposed to what turns started
        self._is_started = False
        self._shown: list[tuple[Path, int]] | None = None  # by its wall, if it has one, since its start
        self._ends = ExitStack()  # what its wall has left on the host
        self._building = ExitStack()  # what others wait for until it stands
        self._stands = asyncio.Event()
        self._at_rest = ExitStack()  # what lets it go on
        self._has_rested: Callable[[], None] = lambda: None

    async def start(self, request: RunRequest, reach: Reach) -> None:
        """Servers of the vault may connect while it starts: to whatever `reach` lets them."""
        if self._egress:
            self._out = self._egress.issue(self.session_id)
            self._out.enter(request.turn_id, reach)
        try:
            options = await to_its_end(asyncio.to_thread(self._options, request))
        except BaseException:
            await to_its_end(asyncio.to_thread(self._building.close))
            raise
        letting_go = asyncio.create_task(self._let_others_go())
        self.client = ClaudeSDKClient(options)
        self._is_started = True
        try:
            async with asyncio.timeout(STARTS_WITHIN):
                await self.client.connect()
                if self._out:
                    await self._out.is_open.wait()
        except (ClaudeSDKError, OSError) as error:
            raise failure_to_start(error, self.heard()) from error
        finally:
            self._stands.set()
            await to_its_end(asyncio.wait({letting_go}))
        try:
            letting_go.result()
        except CannotConfine as error:
            raise failure_to_confine(error) from error
        self._own = await asyncio.to_thread(self._marked)

    async def _let_others_go(self) -> None:
        """When its wall stands, or could not be built, or keeps them for too long."""
        try:
            async with asyncio.timeout(STANDS_WITHIN):
                await self._stands.wait()
        except TimeoutError:
            log.warning("A wall did not stand within %d s; its start is given up.", STANDS_WITHIN)
            await self.kill()
        finally:
            await asyncio.to_thread(self._building.close)

    def serve(self, turn: Served, turn_id: str) -> None:
        self._serves, self._pass.turn = turn, turn_id
        if self._out:
            self._out.enter(UUID(turn_id), turn.reach)

    @property
    def carrier(self) -> Carrier | None:
        """Who makes the writes that its wall keeps it from."""
        shown = self._shown
        if shown is None:
            return None
        return Carrier(self.fingerprint.vault, lambda place: shows(shown, place))

    @property
    def held(self) -> frozenset[str]:
        """The settings of repositories that its wall shows read-only."""
        return settings_held(self._shown or [])

    async def rest(self) -> int | None:
        """Between turns it may neither ask the model nor use a tool, and what the last turn left is ended.
        Behind a wall it stands still, because its agent can have made it do something else. Says how many
        bytes it holds; None where it does not come to rest."""
        self._serves, self._pass.turn = None, None
        self._carried.clear()
        if self._out:
            self._out.leave()
        await asyncio.to_thread(launcher.end_everything, self._mark, None, self._own)
        if self._shown is not None and not await self._stands_still():
            return None
        return await asyncio.to_thread(memory.held_by, [pid for pid, _ in self._own])

    async def _stands_still(self) -> bool:
        standing = launcher.standing_still([self._mark])
        try:
            async with self._between_walls():
                self._has_rested = await to_its_end(asyncio.to_thread(self._at_rest.enter_context, standing))
        except CannotConfine:
            return False
        return await asyncio.to_thread(self._marked) == self._own

    async def rise(self) -> bool:
        """It goes on, for the next turn. False where something of it has run meanwhile, or has ended."""
        async with self._between_walls():
            try:
                await to_its_end(asyncio.to_thread(self._has_rested))
            except CannotConfine:
                return False
            finally:
                await to_its_end(asyncio.to_thread(self._at_rest.close))
        return self._is_alive()

    def _is_alive(self) -> bool:
        """Where the system does not say, it is taken to be."""
        return all(Path(f"/proc/{pid}").exists() for pid, _ in self._own)

    def _between_walls(self) -> AbstractAsyncContextManager[None]:
        """Who runs or ends while another stands still has that one's start count for nothing."""
        if self._shown is None:
            return nullcontext()
        return neighbours.between_walls(self.fingerprint.vault, locks())

    async def close(self) -> None:
        """The friendly end, in which the CLI writes its transcript to the last line."""
        await to_its_end(asyncio.to_thread(self._at_rest.close))
        try:
            async with asyncio.timeout(CLOSES_WITHIN):
                await self.client.disconnect()
        except (TimeoutError, ClaudeSDKError) as error:
            log.warning("A CLI did not end by itself (%s) and is killed.", type(error).__name__)

    async def kill(self) -> None:
        """All that runs in it, at once; to be followed by its end."""
        await asyncio.to_thread(launcher.end_everything, self._mark)

    async def end(self) -> None:
        """The certain end. What the SDK thinks of it does not change that it is one."""
        self._serves, self._pass.turn = None, None
        self._pass.revoke()
        if self._out:
            self._out.revoke()
        async with self._between_walls():
            await asyncio.to_thread(launcher.end_everything, self._mark)
            await asyncio.to_thread(self._at_rest.close)
            try:
                await asyncio.to_thread(self._ends.close)
            except OSError:
                log.exception("What a wall left on the host could not be taken away.")
        try:
            async with asyncio.timeout(CLOSES_WITHIN):
                if self._is_started:
                    await self.client.disconnect()
        except Exception:
            log.exception("The SDK did not let go of a CLI that has ended.")
        self._papers.cleanup()

    def _marked(self) -> set[tuple[int, str]]:
        if not sys.platform.startswith("linux"):
            return set()
        return {(each.pid, each.started) for each in launcher.marked(self._mark)}

    def trouble(self) -> Trouble | None:
        """What the door knows of how the model failed it."""
        return self._pass.trouble

    def heard(self) -> str:
        return " ".join(self._last_words)

    def _options(self, request: RunRequest) -> Any:
        """It looks at many files, for what a wall shows: call it in a thread."""
        papers = Path(self._papers.name)
        try:
            doors = Doors(self._pass.token, self._door.socket, self._way_out if self._out else None)
            until = Until(self._ends, self._building)
            launch = launch_for(request, papers=papers, mark=self._mark, doors=doors, until=until)
            self._shown = named_paths(launch) if request.sandbox.is_wall else None
        except CannotConfine as error:
            raise failure_to_confine(error) from error
        except OSError as error:
            log.warning("A wall could not be built around %s", request.vault, exc_info=True)
            problem = CannotConfine(f"The vault could not be looked through ({error.strerror}).")
            raise failure_to_confine(problem) from error
        deny = list(self.fingerprint.deny)
        hooks = Hooks(gate=self._before_tool, ask=self._may_use, after=self._after_tool)
        options = options_for(request, launch=launch, papers=papers, deny=deny, hooks=hooks, uses=self._uses)
        options.stderr = self._hear
        return options

    def _hear(self, line: str) -> None:
        if line.strip() == STANDS:
            self._stands.set()
        else:
            self._last_words.append(line)

    def _way_out(self, launch: Launch) -> Launch:
        assert self._out
        return outward(launch, self._out, not_through="door.invalid")

    async def _before_tool(
        self, given: HookInput, tool_use_id: str | None, context: HookContext
    ) -> HookJSONOutput:
        """The gate, asked before every call. What raises here blocks the call."""
        hook: Any = given
        call = ToolCall(tool_use_id or hook["tool_use_id"], hook["tool_name"], hook["tool_input"])
        turn = self._serves
        decision = await turn.decide(call, Path(hook["cwd"])) if turn else self._between_turns(call)
        if decision.verdict is Verdict.ALLOW:
            self._uses.allowed(call)
        return {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": decision.verdict.value,
                "permissionDecisionReason": decision.reason,
            }
        }

    async def _after_tool(
        self, given: HookInput, tool_use_id: str | None, context: HookContext
    ) -> HookJSONOutput:
        """What the server made in its place, and why the egress door refused something to it: most programs
        say no more than "403"."""
        hook: Any = given
        said: dict[str, Any] = {}
        if made := self._carried.pop(tool_use_id or hook["tool_use_id"], None):
            said = result(*made, hook.get("tool_response"))
        elif refused := self._serves.reach.told() if self._serves else "":
            said = {"additionalContext": refused}
        if not said:
            return {}
        said["hookEventName"] = hook["hook_event_name"]
        output: Any = said
        return {"hookSpecificOutput": output}

    def _between_turns(self, call: ToolCall) -> Decision:
        """There is no gate to ask, and so none that would record it."""
        TurnAudit(PLATFORM, None, self.session_id, None)(call, BETWEEN_TURNS, 0.0)
        return BETWEEN_TURNS

    async def _may_use(
        self, name: str, given: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResultAllow | PermissionResultDeny:
        """The CLI's own second thoughts. Only what the gate allowed, with this very input, is let through, or
        what a person allows now."""
        call = ToolCall(context.tool_use_id or "", name, given)
        turn = self._serves
        answer = await turn.decide_again(call) if turn else Answer(self._between_turns(call))
        if answer.carried and (harmless := instead(call, answer.carried)):
            self._carried[call.id] = call, answer.carried
            return PermissionResultAllow(updated_input=harmless)
        if answer.carried:
            return PermissionResultDeny(message=answer.carried.text)
        if answer.decision.verdict is Verdict.ALLOW:
            return PermissionResultAllow(updated_input=dict(answer.input) if answer.input else None)
        return PermissionResultDeny(message=answer.decision.reason)

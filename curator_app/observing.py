"""One run of the curator, from its claim to its end. It never raises, and no chat waits for it.

1. Read the exchange, and whether a person set title or summary.
2. Write the file that names its tools' process, with the token in it.
3. Open the CLI: resumed where it has looked at this chat before, behind a gate of its three tools.
4. Hear it to its end. What its tools change is written by the web server, with the run.
5. Write how it ended; where its memory is lost, once more from 3 with a new one.
"""

import asyncio
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings

from agents_app.errors import AgentError
from agents_app.runtimes.base import CannotResume, RunRequest, Runtime
from agents_app.runtimes.events import Answered, Ended, Ready
from agents_app.sandboxes.none import NoWall
from curator_app import handed, memory, services
from curator_app.gate import SERVER, CuratorGate
from curator_app.models import CuratorRun
from curator_app.prompt import SYSTEM, Exchange, exchange_of
from permissions_app.audit import PLATFORM
from permissions_app.audit.decisions import TurnAudit
from permissions_app.rules.decision import Decision
from permissions_app.rules.setting import Setting, Trust
from permissions_app.rules.tools import ToolCall
from sessions_app.access.tokens import Audience, issue
from sessions_app.incidents import incident
from sessions_app.threads import in_thread

log = logging.getLogger(__name__)

CODE = Path(__file__).resolve().parents[1]
TOO_LONG = f"It took longer than {services.GIVEN_UP_AFTER:.0f} seconds and was given up."
# What the CLI would hand on to them: its pass for our door, and a token for its own helpers.
NOT_THEIRS = ("ANTHROPIC_API_KEY", "CLAUDE_CODE_MESSAGING_TOKEN")
CONNECTED = "connected"
NO_TOOLS = "Its tools could not be started."
THE_MODELS_OWN = frozenset({"invalid", "conflict"})
LONGEST_TROUBLE = 300
NO_ANSWER = "It ended without an answer."


class NoTools(AgentError): ...


@dataclass
class Heard:
    model: str = ""
    cost: services.Cost = field(default_factory=services.Cost)
    trouble: str = ""  # what kept a tool from its work, where that was not the model's own mistake


@dataclass(frozen=True)
class Look:
    """What one try needs to know. `memory`: the SDK session in which it has looked at this chat before."""

    run: CuratorRun
    exchange: Exchange
    memory: UUID | None


async def observe(run: CuratorRun, runtime: Runtime) -> None:
    heard = Heard()
    try:
        async with asyncio.timeout(services.GIVEN_UP_AFTER):
            sdk_session = await _through(await in_thread(_look)(run), runtime, heard)
        outcome = services.Outcome(heard.model, heard.cost, sdk_session, heard.trouble)
        await in_thread(services.finish)(run.pk, outcome)
    except asyncio.CancelledError:
        await in_thread(services.put_back)(run.pk)
        raise
    except TimeoutError:
        await _fail(run, TOO_LONG, heard)
    except AgentError as error:
        await _fail(run, error.message, heard, forget=error.code == "context_exceeded")
    except Exception as error:  # noqa: BLE001 - `incident` logs it
        problem = incident(log, f"The curator's run {run.pk}", error)
        await _fail(run, f"{problem.message} ({problem.details['incidentId']})", heard)


async def _fail(run: CuratorRun, error: str, heard: Heard, *, forget: bool = False) -> None:
    log.warning(
        "The curator could not look at exchange %d of %s: %s", run.exchange_number, run.session_id, error
    )
    try:
        await in_thread(services.fail)(run.pk, error, cost=heard.cost, forget=forget)
    except Exception:
        log.exception("The curator's run %s could not be ended; the sweep does.", run.pk)


def _look(run: CuratorRun) -> Look:
    run.session.refresh_from_db()
    kept = run.session.metadata.get(services.SDK_SESSION)
    return Look(run, exchange_of(run.turn, run.session, run.exchange_number), UUID(kept) if kept else None)


async def _through(look: Look, runtime: Runtime, heard: Heard) -> UUID:
    """The SDK session in which it remembers this chat from now on."""
    if look.memory is not None:
        try:
            await _once(look, look.memory, runtime, heard)
            return look.memory
        except CannotResume as problem:
            log.warning("The curator's memory of %s is lost: %s", look.run.session_id, problem.message)
    fresh = uuid4()
    await _once(Look(look.run, look.exchange, None), fresh, runtime, heard)
    return fresh


async def _once(look: Look, sdk_session: UUID, runtime: Runtime, heard: Heard) -> None:
    run = look.run
    with _tools_file(look) as file:
        request = _request(look, sdk_session, file)
        async with (
            runtime.open(request, _gate(run, request), _waits) as agent,
            aclosing(agent.events()) as events,
        ):
            async for event in events:
                if isinstance(event, Ready):
                    _check_tools(event)
                elif isinstance(event, Answered) and event.is_error:
                    heard.trouble = _trouble(event.content) or heard.trouble
                elif isinstance(event, Ended):
                    heard.model, heard.cost = event.model, services.Cost(event.usage, event.cost_usd)
                    return
    raise AgentError("cli_crashed", NO_ANSWER)


def _check_tools(ready: Ready) -> None:
    """A server that did not come up, or not before the CLI went on, leaves a curator that can only talk."""
    states = {each.get("name"): each.get("status") for each in ready.mcp_servers}
    if states.get(SERVER, CONNECTED) != CONNECTED:
        raise NoTools("mcp_connection_failed", NO_TOOLS)


def _trouble(answer: str) -> str:
    """What a model can mend, and what a person set, is none."""
    try:
        error = json.loads(answer)["error"]
        return "" if error["code"] in THE_MODELS_OWN else str(error["message"])
    except (ValueError, KeyError, TypeError):
        return answer[:LONGEST_TROUBLE]


@contextmanager
def _tools_file(look: Look) -> Iterator[Path]:
    """By file, because what the SDK is given as a dictionary goes on a command line."""
    folder = memory.folder_of(look.run.session_id)
    (folder / "empty").mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / "tools.json"
    file.touch(mode=0o600)
    file.write_text(json.dumps({"mcpServers": {SERVER: _server(look)}}))
    try:
        yield file
    finally:
        file.unlink(missing_ok=True)


def _server(look: Look) -> dict[str, Any]:
    session_id = look.run.session_id
    arguments = ["-P", "-m", handed.MODULE, "--session-id", str(session_id)]
    arguments += ["--title-is-set"] if look.exchange.is_title_a_persons else []
    arguments += ["--summary-is-set"] if look.exchange.is_summary_a_persons else []
    environment = {
        handed.ADDRESS: settings.PARACHUTE_WEB,
        handed.TOKEN: issue(Audience.CURATOR, session_id, look.run.life),
        "PYTHONPATH": str(CODE),
        **dict.fromkeys(NOT_THEIRS, ""),
    }
    return {"type": "stdio", "command": sys.executable, "args": arguments, "env": environment}


def _request(look: Look, sdk_session: UUID, tools: Path) -> RunRequest:
    folder = memory.folder_of(look.run.session_id)
    return RunRequest(
        session_id=sdk_session,
        turn_id=look.run.pk,
        message_id=uuid4(),
        text=look.exchange.as_prompt(),
        resume=look.memory is not None,
        model=settings.PARACHUTE_CURATOR_MODEL,
        system_prompt=SYSTEM,
        append="",
        directory=folder / "empty",
        vault=folder / "empty",
        config=folder / "config",
        sandbox=NoWall(),
        tools=(),
        mcp_file=tools,
        is_fresh=True,
    )


def _gate(run: CuratorRun, request: RunRequest) -> CuratorGate:
    setting = Setting(
        trust=Trust.SANDBOXED,
        behind_wall=False,
        operator=False,
        vault=request.vault,
        working_directory=request.directory,
        home=Path(settings.PARACHUTE_HOME).resolve(),
        scratch=None,
        own_config=None,
        own_servers=frozenset({SERVER}),
    )
    return CuratorGate(
        setting,
        standing=lambda setting: setting,
        on_denied=_denied,
        audit=TurnAudit(PLATFORM, run.session.workspace_id, run.session_id, None),
    )


async def _denied(call: ToolCall, decision: Decision) -> None:
    log.warning("The curator asked for %s and was refused.", call.name)


async def _waits(reason: str, position: int) -> None:
    """Nobody follows it."""

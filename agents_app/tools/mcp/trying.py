"""Starting a server once, to see whether it works and which tools it has: within ten seconds, or why not.

A process runs behind the wall that it has in a chat at `vault`, without the web, and is ended. One that is
reached by an address is asked by this server itself, at addresses of the public web only; one on this
computer for an operator alone.
"""

import asyncio
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from agents_app import launcher
from agents_app.errors import AgentError
from agents_app.launcher.walled import STANDS, Around, Until, with_vault
from agents_app.rights.owners import check_owns
from agents_app.sandboxes.base import CannotConfine, Launch, Sandbox
from agents_app.sandboxes.walls import wall_for
from agents_app.tools.mcp import remote, services
from agents_app.tools.mcp.chosen import missing, values_for
from agents_app.tools.mcp.entries import MASK, VAULT, Entry
from agents_app.tools.mcp.given import GivenServer, given
from agents_app.tools.mcp.relay import HELD, LOUD
from agents_app.tools.mcp.relayed import relay_for, relayed
from agents_app.tools.mcp.speaking import LONGEST, Refused, Speaks, tools_of
from sessions_app.access.caller import Caller
from sessions_app.access.models import TrustLevel, Workspace
from sessions_app.errors import Conflict
from sessions_app.models.attachment import FOLDER as OF_CHATS
from sessions_app.storable import storable, without_hidden

PATIENCE = 10.0  # seconds, all in all
AT_ONCE = threading.BoundedSemaphore(2)
SHOWN = 500  # characters of what it said
MOST_TOOLS, LONGEST_WORDS = 200, 300


@dataclass(frozen=True)
class Tried:
    tools: list[dict[str, str]] = field(default_factory=list)
    problem: str = ""


class Trial:
    """Between two looks at the database: `run` takes long, and needs none."""

    def __init__(self, workspace: Workspace, entry: Entry, values: Mapping[str, str]) -> None:
        self._workspace, self._entry, self._values = workspace, entry, values
        self._server = given(entry.name, entry.resolved(values), asks=entry.asks)
        self._wall = _wall_in(workspace) if self._server.is_process else None

    def run(self) -> Tried:
        """It blocks, for ten seconds and a bit at most."""
        try:
            found = self._started() if self._wall else asyncio.run(_asked(self._server, self._entry.is_local))
        except Refused as problem:
            return Tried(problem=_without(str(problem), self._values))
        return Tried([_described(each, self._values) for each in found[:MOST_TOOLS]])

    def _started(self) -> list[Any]:
        assert self._wall
        return _behind(self._wall, Path(self._workspace.vault_path).resolve(), self._server)

    def remember(self, tried: Tried) -> None:
        services.remember(self._workspace, self._entry, tried.tools, tried.problem)

    def end(self) -> None:
        AT_ONCE.release()


def begun(caller: Caller, workspace: Workspace, name: str) -> Trial:
    """Of an accepted entry, for its owners. Whoever begins one ends it."""
    check_owns(caller, workspace)
    server = services.server_of(workspace, name)
    entry = server.entry
    if not server.is_accepted:
        raise Conflict(entry.problem or _("Accept this entry first: then it may be started."))
    values = values_for(workspace, [entry])
    problem = missing(entry, values)
    if entry.is_local and not caller.is_operator:
        problem = _("It is on this computer or beside it, so only an operator may try it.")
    if problem:
        services.remember(workspace, entry, [], problem)
        raise Conflict(problem)
    if not AT_ONCE.acquire(blocking=False):
        raise Conflict(_("Others are being tried at this moment. Try again in some seconds."))
    try:
        return Trial(workspace, entry, values)
    except BaseException:
        AT_ONCE.release()
        raise


def try_one(caller: Caller, workspace: Workspace, name: str) -> Tried:
    trial = begun(caller, workspace, name)
    try:
        tried = trial.run()
    finally:
        trial.end()
    trial.remember(tried)
    return tried


def _wall_in(workspace: Workspace) -> Sandbox:
    try:
        wall = wall_for(TrustLevel.VAULT, workspace)
    except AgentError as error:
        raise Conflict(error.message) from error
    if not wall.sandbox.is_wall:
        raise Conflict(
            _("No wall can be built here, and without one it is not tried. Settings say what to install.")
        )
    return wall.sandbox


async def _asked(server: GivenServer, is_local: bool) -> list[Any]:
    try:
        async with asyncio.timeout(PATIENCE):
            return await remote.tools_at(server.settings, is_local=is_local)
    except TimeoutError:
        raise Refused(_("It did not answer within 10 seconds.")) from None


def _behind(sandbox: Sandbox, vault: Path, server: GivenServer) -> list[Any]:
    relay = relay_for(sandbox)
    config, mark = relayed(server, relay, how=LOUD), launcher.new_mark()
    held = {f"{HELD}{name}": value for name, value in config["env"].items()}
    # Of chats it sees nothing: whoever tries it is not who they belong to.
    hidden = (Path(settings.PARACHUTE_HOME), vault / ".claude" / "projects", vault / OF_CHATS)
    launch = Launch(
        argv=(config["command"], *config["args"]),
        environment={**settings.PARACHUTE_AGENT_ENVIRONMENT, **held, launcher.MARK: mark},
        directory=vault,
        vault=vault,
        readable=relay.needs,
        masked=hidden,
    )
    with ExitStack() as ends, ExitStack() as stands:
        ends.callback(sandbox.end, mark)
        ends.callback(launcher.end_everything, mark)
        around = Around(vault, vault, None, hidden, sandbox)
        try:
            confined = sandbox.confine(with_vault(launch, around, Until(ends, stands)))
        except (CannotConfine, OSError) as error:
            raise Refused(str(error)) from error
        return asyncio.run(_spoken_to(confined, stands, mark))


async def _spoken_to(confined: Launch, stands: ExitStack, mark: str) -> list[Any]:
    program = str(launcher.executable(Path(settings.PARACHUTE_HOME) / "launcher"))
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        program, env=launcher.orders_for(confined), stdin=pipe, stdout=pipe, stderr=pipe, limit=LONGEST
    )
    heard: list[str] = []
    hearing = asyncio.create_task(_hear(process, heard, stands))
    try:
        async with asyncio.timeout(PATIENCE):
            return await tools_of(_Lines(process))
    except TimeoutError:
        raise Refused(_said(_("It did not answer within 10 seconds."), heard)) from None
    except (EOFError, OSError):
        await asyncio.wait({hearing}, timeout=1)
        raise Refused(_said(_("It ended before it had told its tools."), heard)) from None
    except ValueError:
        raise Refused(_said(_("It says what is no message of this protocol."), heard)) from None
    finally:
        await asyncio.to_thread(launcher.end_everything, mark)
        await process.wait()
        hearing.cancel()


async def _hear(process: asyncio.subprocess.Process, heard: list[str], stands: ExitStack) -> None:
    """Its last words; and others go on in the vault when its wall stands."""
    assert process.stderr
    while line := await _line(process.stderr):
        text = line.decode(errors="replace").strip()
        if text == STANDS:
            await asyncio.to_thread(stands.close)
        else:
            heard[:] = [*heard[-4:], text[:SHOWN]]


async def _line(stream: asyncio.StreamReader) -> bytes:
    try:
        return await stream.readline()
    except ValueError:  # longer than anybody reads
        return b"\n"


class _Lines(Speaks):
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def send(self, message: bytes) -> None:
        assert self._process.stdin
        self._process.stdin.write(message + b"\n")
        await self._process.stdin.drain()

    async def next(self) -> bytes:
        assert self._process.stdout
        line = await self._process.stdout.readline()
        if not line:
            raise EOFError
        return line


def _said(what: str, heard: list[str]) -> str:
    last = " ".join(filter(None, heard)).strip()
    return f"{what} {_('Its last words: %(last)s') % {'last': last}}" if last else what


def _without(text: str, values: Mapping[str, str]) -> str:
    """It may tell a secret of its own."""
    for name, value in values.items():
        text = text.replace(value, MASK) if len(value) >= 4 and name != VAULT else text
    return without_hidden(str(storable(text)))[: 2 * SHOWN]


def _described(tool: Any, values: Mapping[str, str]) -> dict[str, str]:
    known = tool if isinstance(tool, Mapping) else {}
    return {key: _without(str(known.get(key, "")), values)[:LONGEST_WORDS] for key in ("name", "description")}

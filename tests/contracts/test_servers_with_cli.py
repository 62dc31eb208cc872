"""MCP servers of a vault through the real CLI behind the real walls: what an owner accepted is started and
answers; what nobody accepted is not; what does not start costs a warning, and never the turn."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agents_app.definitions import accepting
from agents_app.definitions.agents import agent_of
from agents_app.model.demo.wire import say
from agents_app.runtimes.claude.runtime import ClaudeRuntime
from agents_app.sandboxes import ENGINES
from agents_app.tools.mcp import files, secrets, services
from agents_app.tools.skills import services as skills
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.models import Session, SessionEvent
from sessions_app.streaming import bus
from sessions_app.threads import in_thread
from tests.agents_app.engine import Engine, events, last_words
from tests.contracts.conftest import Sandboxes
from tests.contracts.stage import door_to, sandbox_that_runs
from tests.contracts.test_egress_with_cli import the_web
from tests.depth import few_of
from tests.scripted_model import ScriptedModel, calls

pytestmark = pytest.mark.django_db(transaction=True)

SAMPLE = Path(__file__).resolve().parents[2] / "sample-vault"
A_SERVER: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "library", "version": "1"},
    },
    "tools/list": {
        "tools": [{"name": "lend", "description": "Lends a book.", "inputSchema": {"type": "object"}}]
    },
    "tools/call": {"content": [{"type": "text", "text": "It is yours until Sunday."}]},
}
TOKEN = "quince-token-never-on-a-command-line"


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLE, tmp_path / "vault"))


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as scripted:
        yield scripted


@pytest.fixture
async def engine(
    model: ScriptedModel, as_ada: Caller, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Engine]:
    sandbox_that_runs("bubblewrap")
    monkeypatch.setattr("agents_app.turns.held.ringing.send", lambda args, queue: None)
    async with door_to(model.url) as door:
        runtime = ClaudeRuntime(door, most_warm=1)
        yield Engine(as_ada, runtime)  # type: ignore[arg-type]
        await runtime.close()


def of(written: list[SessionEvent], kind: str) -> list[dict[str, Any]]:
    return [event.payload for event in written if event.type == kind]


def warned(written: list[SessionEvent]) -> list[tuple[str, str]]:
    return [(each["code"], each["title"]) for each in of(written, "warning")]


@pytest.fixture
def put(vault: Path) -> Callable[..., None]:
    """More entries into `.mcp.json`, as anybody may who writes there."""

    def into(**entries: Any) -> None:
        file = vault / ".mcp.json"
        whole = json.loads(file.read_text())
        whole["mcpServers"] |= entries
        file.write_text(json.dumps(whole))

    return into


@pytest.fixture
def agent(vault: Path, workspace: Workspace, as_ada: Caller) -> Callable[[str], Any]:
    """An agent whose file says this, with the rights that it asks for."""

    def made(says: str) -> str:
        (vault / "Agents" / "counter.md").write_text(f"---\nname: Counter\n{says}\n---\n\nYou count.\n")
        found = agent_of(workspace, "counter")
        assert found and found.definition.is_usable, found and found.definition.trouble
        accepting.accept(as_ada, workspace, found.definition, "")
        return "counter"

    return in_thread(made)


async def test_what_an_owner_accepted_answers_and_what_nobody_accepted_never_starts(
    engine: Engine,
    model: ScriptedModel,
    vault: Path,
    as_ada: Caller,
    workspace: Workspace,
    put: Any,
    agent: Any,
) -> None:
    mark = vault / "started"
    put(planted={"command": "touch", "args": [str(mark)]})
    name = await agent("mcpServers: [garden, planted]")
    await in_thread(services.accept)(as_ada, workspace, "garden", "")
    model.script("count", [calls("mcp__garden__harvest", plant="Quinces"), say("51 kilograms.")])
    written = await engine.answer("count", agent=name)
    assert warned(written) == [("mcp_connection_failed", "The server planted is not there")]
    (answered,) = of(written, "tool_result")
    assert json.loads(answered["content"])["together"] == 51.0
    (ready,) = of(written, "init")
    assert {"name": "garden", "status": "connected"} in ready["mcpServers"]
    (told,) = of(written, "prompt_metadata")
    assert told["availableMcps"] == ["garden"]
    assert last_words(written)["response"] == "51 kilograms."
    assert not mark.exists()


async def test_one_at_an_address_is_reached_by_the_walls_own_way_to_the_web(
    engine: Engine,
    model: ScriptedModel,
    vault: Path,
    tmp_path: Path,
    as_ada: Caller,
    workspace: Workspace,
    put: Any,
    agent: Any,
    settings: Any,
) -> None:
    heard: list[str] = []

    async def answers(request: web.BaseRequest) -> web.StreamResponse:
        """A server over streamable HTTP, without a memory."""
        if request.method != "POST":
            return web.Response(status=405)
        heard.append(request.headers.get("Authorization", ""))
        message = json.loads(await request.text())
        if "id" not in message:
            return web.Response(status=202)
        known = A_SERVER.get(message["method"])
        said = {"result": known} if known else {"error": {"code": -32601, "message": "unknown"}}
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], **said})

    (tmp_path / "tls").mkdir()
    async with the_web(tmp_path / "tls", answers) as there, door_to(model.url) as door:
        (vault / "ca.crt").write_bytes((tmp_path / "tls/ca.crt").read_bytes())
        trusts = {"NODE_EXTRA_CA_CERTS": str(vault / "ca.crt")}
        settings.PARACHUTE_AGENT_ENVIRONMENT = settings.PARACHUTE_AGENT_ENVIRONMENT | trusts
        runtime = ClaudeRuntime(door, there.egress, most_warm=1)
        engine.runtime = runtime  # type: ignore[assignment]
        put(library={"type": "http", "url": there.url, "headers": {"Authorization": "Bearer ${TOKEN}"}})
        await in_thread(services.accept)(as_ada, workspace, "library", "")
        await in_thread(secrets.save)(as_ada, workspace, "TOKEN", TOKEN)
        model.script("lend", [calls("mcp__library__lend"), say("Lent.")])
        written = await engine.answer("lend", agent=await agent("mcpServers: [library]"))
        await runtime.close()
    assert warned(written) == []
    (answered,) = of(written, "tool_result")
    assert answered["content"] == "It is yours until Sunday."
    assert set(heard) == {f"Bearer {TOKEN}"}


ODD = """
import json, os, sys

how, said = sys.argv[1], sys.argv[2:]
for line in sys.stdin:
    message = json.loads(line)
    if how == "noisy":
        print("Hello, I begin.", flush=True)
    if message.get("method") == "tools/call":
        if how == "dies":
            os._exit(3)
        if how == "leaves":
            if os.fork():
                os._exit(0)
            os.execvp("sleep", ["sleep", "98765.4321"])
        if how == "forks" and not os.fork():
            os.setsid()
            os.execvp("sleep", ["sleep", "98765.4321"])
        if how == "hangs":
            sys.stdin.read()
        if how == "floods-later":
            while True:
                os.write(1, b"x" * 4096 + b"\\n")
    answers = json.loads(os.environ["ANSWERS"])
    if "id" in message and message.get("method") in answers:
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": answers[message["method"]]}
        print(json.dumps(answer), flush=True)
    elif "id" in message:
        error = {"code": -32601, "message": "unknown"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
"""


def odd(how: str) -> dict[str, Any]:
    env = {"ANSWERS": json.dumps(A_SERVER), "TOKEN": "${TOKEN}"}
    return {"command": "python3", "args": ["${VAULT}/odd.py", how], "env": env}


def command_lines() -> str:
    found = ""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += path.read_bytes().replace(b"\0", b" ").decode(errors="replace") + "\n"
    return found


async def test_what_servers_do_wrong_costs_their_tools_and_never_the_turn(
    engine: Engine,
    model: ScriptedModel,
    vault: Path,
    as_ada: Caller,
    workspace: Workspace,
    put: Any,
    agent: Any,
    subtests: Any,
) -> None:
    (vault / "odd.py").write_text(ODD)
    names = ("noisy", "dies", "leaves", "forks", "floods-later")
    wrong = {
        "silent": {"command": "sleep", "args": ["60"]},
        "floods": {"command": "yes"},
        "chatters": {"command": "yes", "args": ["{}"]},
        "nowhere": {"command": "no-such-program"},
        "wants": {"command": "true", "env": {"KEY": "${NOT_THERE}"}},
    }
    put(**{name: odd(name) for name in names}, **wrong)
    for name in (*names, *wrong):
        await in_thread(services.accept)(as_ada, workspace, name, "")
    await in_thread(secrets.save)(as_ada, workspace, "TOKEN", TOKEN)
    seen: list[str] = []

    def looks(asked: Any) -> Any:
        seen.append(command_lines())
        return calls("mcp__forks__lend")

    steps = [calls(f"mcp__{name}__lend") for name in ("noisy", "dies", "leaves", "floods-later")]
    model.script("try them", [looks, *steps, say("Tried.")])
    written = await engine.answer("try them", agent=await agent("mcpServers: all"))
    assert last_words(written)["response"] == "Tried."
    forks, noisy, dies, leaves, floods = of(written, "tool_result")
    with subtests.test("each that does not start is said, with a reason"):
        said = {each["title"].split()[2]: each["message"] for each in of(written, "warning")}
        assert said.keys() == {*wrong}
        assert "NOT_THERE" in said["wants"]
        assert "10 seconds" in said["silent"]
    with subtests.test("what is no message is left out"):
        assert (noisy["content"], noisy["isError"]) == ("It is yours until Sunday.", False)
    with subtests.test("one that dies, or floods, in the middle of a call is an answer that is an error"):
        assert [each["isError"] for each in (dies, leaves, floods)] == [True] * 3
    with subtests.test("what it forks ends with the turn"):
        assert not forks["isError"]
        assert "98765.4321" not in command_lines()
    with subtests.test("no secret is on a command line"):
        assert "odd.py" in seen[0]
        assert TOKEN not in seen[0]
    with subtests.test("its process is not kept"):
        assert not engine.runtime.rests((await Session.objects.aget()).pk)


@pytest.mark.parametrize("box", few_of(("bubblewrap", *ENGINES), "bubblewrap"))
async def test_in_a_read_only_box_the_sample_works_and_what_needs_a_network_says_so(
    box: str,
    engine: Engine,
    model: ScriptedModel,
    as_ada: Caller,
    workspace: Workspace,
    put: Any,
    agent: Any,
    sandboxes: Sandboxes,
    settings: Any,
) -> None:
    sandboxes(box)
    settings.PARACHUTE_SANDBOX = box
    put(library={"type": "http", "url": "https://library.example.org/mcp"})
    for name in ("garden", "library"):
        await in_thread(services.accept)(as_ada, workspace, name, "")
    await in_thread(skills.switch)(as_ada, workspace, "month-in-review", on=True)
    by_skill = calls("Skill", skill="vault:month-in-review")
    model.script("count", [calls("mcp__garden__count_notes"), by_skill, say("Counted.")])
    written = await engine.answer("count", agent=await agent("mcpServers: all"), trust_level="sandboxed")
    (told,) = of(written, "warning")
    assert told["title"] == "The server library is not there"
    assert "This folder" in told["message"]
    counted, used = of(written, "tool_result")
    assert json.loads(counted["content"])["Garden"]["notes"] == 2
    assert not used["isError"], used
    assert last_words(written)["response"] == "Counted."


@pytest.mark.parametrize("is_there", [True, False])
async def test_the_file_is_changed_in_place_and_stays_shut_to_the_agent_that_runs(
    is_there: bool, engine: Engine, model: ScriptedModel, vault: Path
) -> None:
    """Another file in its place would lie open in every wall that stands."""
    file = vault / ".mcp.json"
    if not is_there:
        file.unlink()

    def adds(asked: Any) -> Any:
        files.change(vault, lambda servers: servers.update(library={"command": "true"}))
        return calls(
            "Bash", command=f"cat {file}; echo evil > {file}; rm -f {file}; mv Welcome.md {file}; ls -a"
        )

    model.script("add", [adds, say("Tried.")])
    written = await engine.answer("add")
    (tried,) = of(written, "tool_result")
    assert '"library"' in tried["content"]
    assert "Read-only file system" in tried["content"]
    assert "library" in json.loads(file.read_text())["mcpServers"]


async def test_one_that_hangs_in_the_middle_of_a_call_does_not_keep_its_turn_from_being_stopped(
    engine: Engine,
    model: ScriptedModel,
    vault: Path,
    as_ada: Caller,
    workspace: Workspace,
    put: Any,
    agent: Any,
) -> None:
    (vault / "odd.py").write_text(ODD)
    put(hangs=odd("hangs"))
    await in_thread(services.accept)(as_ada, workspace, "hangs", "")
    await in_thread(secrets.save)(as_ada, workspace, "TOKEN", TOKEN)
    model.script("hang", [calls("mcp__hangs__lend"), say("Never.")])
    opened = await engine.say("hang", agent=await agent("mcpServers: [hangs]"))
    async with bus.current().subscribe(bus.session_topic(opened.session_id)) as listener:
        working = asyncio.create_task(engine.run(opened))
        while not await SessionEvent.objects.filter(turn=opened.turn_id, type="tool_use").aexists():
            await listener.next(1)
        await engine.abort(opened)
        await working
    assert (await events(opened))[-1].type == "aborted"
    assert "odd.py" not in command_lines()

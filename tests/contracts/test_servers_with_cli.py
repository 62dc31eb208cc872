"""MCP servers of a vault through the real CLI behind the real walls: what an owner accepted is started and
answers; what nobody accepted is not; what does not start costs a warning, and never the turn."""

import json
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents_app.definitions import accepting
from agents_app.definitions.agents import agent_of
from agents_app.model.demo.wire import say
from agents_app.runtimes.claude.runtime import ClaudeRuntime
from agents_app.tools.mcp import secrets, services
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.models import SessionEvent
from sessions_app.threads import in_thread
from tests.agents_app.engine import Engine, last_words
from tests.contracts.stage import door_to, sandbox_that_runs
from tests.scripted_model import ScriptedModel, calls

pytestmark = pytest.mark.django_db(transaction=True)

SAMPLE = Path(__file__).resolve().parents[2] / "sample-vault"
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

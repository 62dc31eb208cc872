"""An orchestrator and those that it may start, in a vault; the engine that runs them by script."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents_app.definitions import accepting
from agents_app.definitions.agents import agent_of
from agents_app.runtimes.scripted import ScriptedRuntime
from agents_app.turns.said.opening import Opening, open_turn
from permissions_app.grants import NewGrant, make_grant
from permissions_app.models.grants import GrantScope
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.models import Session
from tests.agents_app.conftest import Rings
from tests.agents_app.engine import Engine

Write = Callable[..., None]


@pytest.fixture
def rings(monkeypatch: pytest.MonkeyPatch) -> Rings:
    rung = Rings()
    monkeypatch.setattr("agents_app.turns.held.ringing.send", rung.ring)
    return rung


@pytest.fixture
def engine(as_ada: Caller, scripted: ScriptedRuntime, rings: Rings) -> Engine:
    return Engine(as_ada, scripted)


@pytest.fixture
def write_agent(workspace: Workspace, as_ada: Caller, vault: Path) -> Write:
    """An agent's file, with all that it asks for accepted."""

    def write(slug: str, text: str = "You work.", **fields: Any) -> None:
        (vault / "Agents").mkdir(exist_ok=True)
        lines = "".join(f"{name}: {value}\n" for name, value in fields.items())
        (vault / "Agents" / f"{slug}.md").write_text(f"---\nname: The {slug}\n{lines}---\n\n{text}\n")
        agent = agent_of(workspace, slug)
        assert agent is not None and agent.definition.is_usable, agent
        accepting.accept(as_ada, workspace, agent.definition, agent.definition.wanted.hash)

    return write


@pytest.fixture
def cast(write_agent: Write, as_ada: Caller) -> None:
    """`boss` may start `writer` and `reader`."""
    write_agent("boss", kind="orchestrator")
    write_agent("writer")
    write_agent("reader")
    for child in ("writer", "reader"):
        make_grant(as_ada, "default", NewGrant("boss", child, GrantScope.PERSISTENT))


@pytest.fixture
def boss(cast: None, as_ada: Caller, rings: Rings) -> Session:
    """Its session; somebody has said `begin`, and nothing has run yet."""
    opened = open_turn(as_ada, Opening("begin", agent="boss"))
    found: Session = Session.objects.select_related("workspace").get(pk=opened.session_id)
    return found

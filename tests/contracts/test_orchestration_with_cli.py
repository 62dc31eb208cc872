"""The tools of orchestration with the real CLI: what an orchestrator is offered, and that what it starts
wakes it, once."""

import json
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import pytest

from agents_app.model.demo.wire import Reply, ToolUse, say
from agents_app.orchestration import spawning
from agents_app.runtimes.claude.runtime import ClaudeRuntime
from agents_app.turns.said.opening import Opened
from permissions_app.models import GrantRequest
from sessions_app.access.caller import Caller
from sessions_app.models import Session, SessionEvent, Turn
from tests.agents_app.engine import Engine, last_words
from tests.contracts.stage import door_to, sandbox_that_runs
from tests.orchestration.conftest import cast, write_agent
from tests.scripted_model import ScriptedModel, calls

pytestmark = pytest.mark.django_db(transaction=True)

OURS = "mcp__orchestration__"
__all__ = ["cast", "write_agent"]


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
    monkeypatch.setattr(spawning, "ONE_EVERY", timedelta(seconds=0.1))
    async with door_to(model.url) as door:
        runtime = ClaudeRuntime(door, most_warm=0)
        yield Engine(as_ada, runtime)  # type: ignore[arg-type]
        await runtime.close()


async def run_all(engine: Engine) -> None:
    """Whatever waits, in whichever session, until nothing does."""
    while waiting := await Turn.objects.filter(status="queued").order_by("created_at").afirst():
        await engine.run(Opened.of(waiting))


def offered(body: dict[str, Any]) -> set[str]:
    return {tool["name"].removeprefix(OURS) for tool in body["tools"] if tool["name"].startswith(OURS)}


@pytest.mark.usefixtures("cast")
async def test_it_starts_two_hears_of_each_once_and_rests(engine: Engine, model: ScriptedModel) -> None:
    both = [
        ToolUse(f"{OURS}spawn_session", {"child_agent_id": who, "prompt": f"You are the {who}."})
        for who in ("writer", "reader")
    ]
    ask = calls(f"{OURS}request_grant", grant_type="spawn", child_agent_id="editor", reason="To edit.")
    model.script("begin", [Reply(tuple(both)), ask, say("Both are at work.")])
    model.script(
        "You are the writer.", [calls(f"{OURS}message_caller", summary="Half is done."), say("Written.")]
    )
    model.script("You are the reader.", [say("Read.")])
    model.script("Parachute wakes you", [say("Heard.")])
    opened = await engine.say("begin", agent="boss")
    await run_all(engine)

    first = model.asked("begin")[0].body
    assert offered(first) == {
        *("list_spawnable_agents", "spawn_session", "read_child_output", "inject_message"),
        *("cancel_session", "request_grant", "expect_quiet_for"),
    }
    assert "## Other agents you can spawn" in str(first["system"])
    of_child = model.asked("You are the writer.")[0].body
    assert offered(of_child) == {"message_caller", "expect_quiet_for"}
    assert "agents you can spawn" not in str(of_child["system"])

    written = [event async for event in SessionEvent.objects.filter(turn=opened.turn_id).order_by("seq")]
    children = {
        child.agent_slug: str(child.pk) async for child in Session.objects.filter(parent=opened.session_id)
    }
    assert sorted(last_words(written)["spawned"]) == sorted(children.values())
    assert (await GrantRequest.objects.aget()).child_agent == "editor"

    rows = SessionEvent.objects.filter(session=opened.session_id, type="user_message").order_by("seq")
    told = [wake async for row in rows for wake in row.payload["wakes"]]
    heard = sorted((wake["kind"], wake["from_agent_slug"]) for wake in told)
    assert heard == [("message", "writer"), ("state_change", "reader"), ("state_change", "writer")]
    said = "\n".join(asked.text for asked in model.asked("Parachute wakes you"))
    assert json.dumps("Half is done.") in said
    assert await Session.objects.filter(parent=opened.session_id, status="complete").acount() == 2

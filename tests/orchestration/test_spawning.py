"""Starting a child: with whose right, once, and as what."""

import json
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from agents_app.definitions.agents import agent_of
from agents_app.errors import AgentError
from agents_app.orchestration import spawning
from agents_app.orchestration.spawning import Order, spawn
from agents_app.prompts.telling import prompt_of
from agents_app.runtimes.scripted import Say, Use
from agents_app.turns.held import leases
from agents_app.turns.held.claim import claim
from agents_app.turns.held.holder import Holder
from agents_app.turns.running.prepare import prepare
from agents_app.turns.said.deleting import delete
from permissions_app.grants import NewGrant, make_grant, revoke_grant
from permissions_app.models import PermissionGrant
from permissions_app.models.grants import GrantScope
from permissions_app.session_permissions import acts_without_asking
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.errors import ParachuteError
from sessions_app.models import Session, SessionEvent, SessionStatus, Turn
from sessions_app.threads import in_thread
from tests.agents_app.engine import Engine, expire, last_words
from tests.orchestration.conftest import Write

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

SPAWN = "mcp__orchestration__spawn_session"


def order(agent: str = "writer", **more: Any) -> Order:
    return Order(agent, more.pop("prompt", "Write about pears."), more.pop("use", uuid4().hex), **more)


def refused(boss: Session, wanted: Order) -> str:
    with pytest.raises(ParachuteError) as refusal:
        spawn(boss.pk, wanted)
    assert not Session.objects.filter(parent=boss).exclude(title="there").exists()
    return refusal.value.code


def test_the_same_use_of_the_tool_is_the_same_child(boss: Session) -> None:
    assert len({spawn(boss.pk, order(use="toolu_1")).pk for _ in range(3)}) == 1
    assert Turn.objects.filter(session__parent=boss).count() == 1


def test_a_child_is_of_its_parents_author_and_reach(boss: Session) -> None:
    Session.objects.filter(pk=boss.pk).update(has_read_strangers=True, trust_level="sandboxed")
    child = spawn(boss.pk, order())
    assert (child.created_by_id, child.visibility, child.trust_level, child.has_read_strangers) == (
        boss.created_by_id,
        boss.visibility,
        "sandboxed",
        True,
    )
    said = SessionEvent.objects.get(session=child, type="user_message").payload
    assert (said["source"], said["fromSessionId"], said["fromAgentSlug"]) == ("parent", str(boss.pk), "boss")


def test_a_child_never_acts_without_asking_even_when_its_parent_is_deleted(
    boss: Session, as_ada: Caller
) -> None:
    child = spawn(boss.pk, order())
    delete(as_ada, boss.pk)
    left = Session.objects.get(pk=child.pk)
    assert (left.parent, acts_without_asking(left.metadata)) == (None, False)


def test_a_parent_that_is_restricted_restricts_its_children(boss: Session) -> None:
    child = spawn(boss.pk, order())
    Session.objects.filter(pk=boss.pk).update(trust_level="sandboxed")
    claimed = claim(child.pk, Holder("w"))
    assert claimed
    with pytest.raises(AgentError) as refusal:
        prepare(claimed[0])
    assert refusal.value.code == "trust_too_high"


def test_what_it_may_not_start_is_refused_by_name(boss: Session, write_agent: Write, as_ada: Caller) -> None:
    write_agent("other-boss", kind="orchestrator")
    make_grant(as_ada, "default", NewGrant("boss", "other-boss", GrantScope.PERSISTENT))
    make_grant(as_ada, "default", NewGrant("boss", "gone", GrantScope.PERSISTENT))
    asked = {
        "agent_not_permitted": order("default"),
        "cycle": order("boss"),
        "kind_not_spawnable": order("other-boss"),
        "workspace_mismatch": order(workspace="elsewhere"),
        "model_not_allowed": order(model="gpt"),
        "invalid": order(prompt="x" * (spawning.LONGEST_PROMPT + 1)),
    }
    assert {code: refused(boss, each) for code, each in asked.items()} == {code: code for code in asked}
    assert refused(boss, order("gone")) == "agent_not_permitted"


def test_a_child_starts_none(boss: Session) -> None:
    child = spawn(boss.pk, order())
    assert refused(child, order("reader")) == "depth_exceeded"


def test_one_a_second_and_ten_at_once(boss: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    spawn(boss.pk, order())
    with pytest.raises(ParachuteError, match="second"):
        spawn(boss.pk, order())
    monkeypatch.setattr(spawning, "ONE_EVERY", timedelta())
    for _ in range(spawning.MOST_CHILDREN - 1):
        spawn(boss.pk, order())
    with pytest.raises(ParachuteError) as refusal:
        spawn(boss.pk, order())
    assert refusal.value.code == "too_many_children"
    Session.objects.filter(pk=Session.objects.filter(parent=boss).values("pk")[:1]).update(
        status=SessionStatus.COMPLETE, created_at=timezone.now()
    )
    spawn(boss.pk, order())


def test_a_grant_that_is_taken_back_counts_no_more(boss: Session, as_ada: Caller) -> None:
    revoke_grant(as_ada, "default", PermissionGrant.objects.get(child_agent="writer").pk)
    assert refused(boss, order()) == "agent_not_permitted"


def test_one_that_has_ended_starts_nothing(boss: Session) -> None:
    Session.objects.filter(pk=boss.pk).update(status=SessionStatus.COMPLETE)
    assert refused(boss, order()) == "session_not_running"


async def test_its_tool_starts_one_and_its_turn_says_so(engine: Engine, cast: None) -> None:
    given = {"child_agent_id": "writer", "prompt": "Write about pears."}
    engine.runtime.scripts["begin"] = [Use(SPAWN, given), Say("Started.")]
    written = await engine.answer("begin", agent="boss")
    (result,) = [event.payload for event in written if event.type == "tool_result"]
    child = json.loads(result["content"])["session_id"]
    assert (result["isError"], last_words(written)["spawned"]) == (False, [child])
    (told,) = [event.payload for event in written if event.type == "child_spawned"]
    assert (told["childSessionId"], told["agentSlug"], told["toolUseId"]) == (
        child,
        "writer",
        result["toolUseId"],
    )
    request = engine.runtime.requests[-1]
    assert "- writer — The writer" in request.system_prompt
    assert {server.name for server in request.servers} == {"parachute", "orchestration"}


async def test_after_a_crash_it_knows_whom_it_has_started(engine: Engine, cast: None) -> None:
    """The answer of the tool never came, and a second child would do the same work."""
    opened = await engine.say("begin", agent="boss")
    assert await in_thread(claim)(opened.session_id, Holder("dead"))
    child = await in_thread(spawn)(opened.session_id, order())
    await expire()
    await in_thread(leases.sweep)()
    await engine.run(opened)
    assert f"writer ({child.pk})" in engine.runtime.requests[-1].text
    done = await SessionEvent.objects.aget(turn=opened.turn_id, type="done")
    assert done.payload["spawned"] == [str(child.pk)]


async def test_who_may_start_nobody_has_no_such_tools(engine: Engine, cast: None) -> None:
    await engine.answer("hello")
    assert {server.name for server in engine.runtime.requests[-1].servers} == {"parachute"}
    assert "spawn" not in engine.runtime.requests[-1].append


async def test_what_it_is_told_of_others_is_what_the_page_says_and_stays(
    engine: Engine, cast: None, as_ada: Caller, workspace: Workspace
) -> None:
    agent = await in_thread(agent_of)(workspace, "boss")
    assert agent is not None
    shown = await in_thread(prompt_of)(as_ada, workspace, agent, None)
    opened = await engine.say("begin", agent="boss")
    await engine.run(opened)
    assert engine.runtime.requests[-1].system_prompt == "\n\n".join([shown.system, shown.block])
    await PermissionGrant.objects.filter(child_agent="writer").aupdate(revoked_at=timezone.now())
    await engine.run(await engine.say("again", session_id=opened.session_id))
    assert "- writer — The writer" in engine.runtime.requests[-1].system_prompt, "as its session began"
    kept = await in_thread(prompt_of)(as_ada, workspace, agent, opened.session_id)
    fresh = await in_thread(prompt_of)(as_ada, workspace, agent, None)
    assert ("- writer" in kept.block, "- writer" in fresh.block) == (True, False)
    assert [part.name for part in kept.parts] == ["agent", "other agents"]

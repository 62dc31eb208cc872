"""An agent's file in the turns of its sessions: prompt, model, tools, folders, trust; and what it loses."""

from pathlib import Path
from typing import Any

import pytest

from agents_app.definitions import accepting
from agents_app.definitions.agents import Agent, agent_of
from agents_app.runtimes.base import RunRequest
from agents_app.turns.said.opening import Opening, open_turn
from permissions_app import audit
from sessions_app import errors
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.models import Session, SessionEvent
from sessions_app.threads import in_thread
from tests.agents_app.engine import Engine

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

GARDENER = """---
name: Gardener
model: claude-opus-4-1
tools: [Read, Write, Bash]
write_permissions: ["Garden/**"]
---
You keep the garden.
"""


@pytest.fixture
def gardener(vault: Path) -> Path:
    (vault / "Agents").mkdir()
    (vault / "Garden").mkdir()
    file = vault / "Agents" / "gardener.md"
    file.write_text(GARDENER)
    return file


def request_of(engine: Engine) -> RunRequest:
    return engine.runtime.requests[-1]


def metadata(written: list[SessionEvent]) -> dict[str, Any]:
    told: list[dict[str, Any]] = [each.payload for each in written if each.type == "prompt_metadata"]
    (one,) = told
    return one


def warned(written: list[SessionEvent]) -> list[str]:
    return [each.payload["code"] for each in written if each.type == "warning"]


async def test_a_definition_answers_with_its_own_prompt_model_tools_and_folders(
    engine: Engine, gardener: Path, behind_a_wall: None
) -> None:
    (gardener.parents[1] / "CLAUDE.md").write_text("Be brief.")
    written = await engine.answer("hi", agent="gardener")
    request = request_of(engine)
    assert request.system_prompt == "You keep the garden."
    assert request.model == "claude-opus-4-1"
    assert request.tools == ("Read", "Write", "Bash")
    assert request.writable == ("Garden/**",), "in trust mode too"
    assert request.append == "", "the context files belong to the preset"
    told = metadata(written)
    assert (told["promptSource"], told["agentName"]) == ("agent", "gardener")
    assert told["availableAgents"] == ["default", "gardener"]
    assert told["contextFiles"] == []
    assert told["totalPromptTokens"] == len("You keep the garden.") // 4


async def test_what_a_file_takes_from_itself_counts_at_the_next_turn_and_does_not_come_back(
    engine: Engine, gardener: Path, as_ada: Caller, workspace: Workspace, audited: list[audit.Entry]
) -> None:
    opened = await engine.say("hi", agent="gardener")
    await engine.run(opened)
    gardener.write_text(GARDENER.replace("[Read, Write, Bash]", "[Read]"))
    await engine.answer("again", session_id=opened.session_id)
    assert request_of(engine).tools == ("Read",)

    gardener.write_text(GARDENER.replace('"Garden/**"', '"**"'))
    await engine.answer("more", session_id=opened.session_id)
    assert (request_of(engine).tools, request_of(engine).writable) == (("Read",), ())
    agent = await in_thread(agent_of)(workspace, "gardener")
    assert agent is not None
    assert agent.pending == ["tools", "write"]

    before = [each for each in audited if each.tool == accepting.TOOL]
    await in_thread(accepting.accept)(as_ada, workspace, agent.definition, agent.definition.wanted.hash)
    await engine.answer("now", session_id=opened.session_id)
    assert request_of(engine).tools == ("Read", "Write", "Bash")
    (row,) = [each for each in audited if each.tool == accepting.TOOL and each not in before]
    assert row.arguments["accepted"] == {"tools": ["Read", "Write", "Bash"], "write": ["**"]}


async def test_a_file_that_vanishes_leaves_the_default_agent_with_no_more_rights(
    engine: Engine, gardener: Path
) -> None:
    opened = await engine.say("hi", agent="gardener")
    await engine.run(opened)
    gardener.unlink()
    written = await engine.answer("still there?", session_id=opened.session_id)
    assert warned(written)[0] == "agent_gone"
    request = request_of(engine)
    assert (request.system_prompt, request.tools) == ("", ("Read", "Write", "Bash"))
    assert metadata(written)["agentName"] == "default"
    gardener.write_text("---\nmodel: [\n---\n")
    written = await engine.answer("and now?", session_id=opened.session_id)
    assert warned(written)[0] == "agent_broken"
    said = next(each.payload["message"] for each in written if each.type == "warning")
    assert "a bracket has no end. Until that is mended" in said
    assert request_of(engine).tools == ("Read", "Write", "Bash")


async def test_a_model_outside_is_a_warning_and_the_workspaces_default_runs(
    engine: Engine, gardener: Path, workspace: Workspace
) -> None:
    await Workspace.objects.filter(pk=workspace.pk).aupdate(default_model="haiku")
    gardener.write_text("---\nname: G\nmodel: gpt-5\n---\nHi.")
    written = await engine.answer("hi", agent="gardener")
    assert "model_not_allowed" in warned(written)
    assert request_of(engine).model == "haiku"


async def test_its_trust_is_a_floor_which_a_request_cannot_pass(
    engine: Engine, gardener: Path, as_ada: Caller, behind_a_wall: None
) -> None:
    gardener.write_text("---\nname: G\ntrust: sandboxed\n---\nHi.")
    with pytest.raises(errors.TrustTooHigh):
        await engine.say("hi", agent="gardener", trust_level="vault")
    opened = await engine.say("hi", agent="gardener")
    assert (await Session.objects.aget(pk=opened.session_id)).trust_level == "sandboxed"
    wider = await engine.say("hi", agent="default")
    await Session.objects.filter(pk=wider.session_id).aupdate(agent_slug="gardener")
    with pytest.raises(errors.TrustTooHigh):  # its file has been narrowed since
        await engine.say("more", session_id=wider.session_id)
    gardener.write_text("---\nname: G\ntrust: full\n---\nHi.")
    agent = await in_thread(agent_of)(await Workspace.objects.aget(), "gardener")
    assert agent is not None
    assert (agent.rights.trust, agent.pending) == ("sandboxed", ["trust"])


@pytest.mark.parametrize(
    ("named", "field", "said"),
    [
        ({"agent": "nobody"}, "agent", "There is no agent 'nobody' here. Choose one of: default, gardener"),
        ({"agent_path": "Agents/nobody.md"}, "agentPath", "There is no agent"),
        ({"agent": "broken"}, "agent", "Agents/broken.md, line 2: "),
        ({"agent": "../gardener"}, "agent", "There is no agent"),
        ({"agent": "g" * 300}, "agent", "There is no agent"),
    ],
)
def test_an_agent_that_cannot_answer_is_refused_at_the_post(
    named: dict[str, str], field: str, said: str, as_ada: Caller, gardener: Path, rings: object
) -> None:
    (gardener.parent / "broken.md").write_text("---\nmodel: [\n---\n")
    with pytest.raises(errors.Invalid) as refused:
        open_turn(as_ada, Opening("hi", **named))  # type: ignore[arg-type]
    (told,) = refused.value.details["fields"]
    assert told["field"] == field
    assert said in told["message"]
    assert not Session.objects.exists()


def test_the_path_of_a_file_names_its_agent_and_the_workspace_has_a_usual_one(
    as_ada: Caller, gardener: Path, workspace: Workspace, rings: object
) -> None:
    def slug(**named: Any) -> str:
        opened = open_turn(as_ada, Opening("hi", **named))
        return str(Session.objects.get(pk=opened.session_id).agent_slug)

    assert slug(agent_path="Agents/gardener.md") == "gardener"
    assert slug() == "default"
    Workspace.objects.update(default_agent="gardener", agents=["reader"])
    assert slug() == "gardener"
    with pytest.raises(errors.Invalid, match="does not offer the agent default"):
        slug(agent="default")
    gardener.unlink()
    assert slug() == "default", "one that is gone keeps nobody from a chat"


class TestOrchestrators:
    @pytest.fixture
    def head(self, vault: Path, workspace: Workspace, as_ada: Caller, rings: object) -> Agent:
        (vault / "Agents").mkdir()
        (vault / "Agents" / "head.md").write_text("---\nname: Head\nkind: orchestrator\n---\nYou plan.")
        agent = agent_of(workspace, "head")
        assert agent is not None
        return agent

    def test_it_is_a_worker_until_a_person_accepts_its_kind(self, head: Agent, as_ada: Caller) -> None:
        assert head.pending == ["kind"]
        opened = open_turn(as_ada, Opening("hi", agent="head"))
        assert Session.objects.get(pk=opened.session_id).kind == "worker"

    def test_whoever_speaks_to_it_speaks_to_the_one_that_lives(
        self, head: Agent, as_ada: Caller, as_ben: Caller, workspace: Workspace
    ) -> None:
        accepting.accept(as_ada, workspace, head.definition, "")
        first = open_turn(as_ada, Opening("hi", agent="head"))
        session = Session.objects.get(pk=first.session_id)
        assert (session.kind, session.visibility, session.trust_level) == (
            "orchestrator",
            "workspace",
            "vault",
        )
        assert open_turn(as_ben, Opening("me too", agent="head")).session_id == first.session_id
        Session.objects.update(status="complete")
        with pytest.raises(errors.SessionEnded) as ended:
            open_turn(as_ada, Opening("more", session_id=first.session_id))
        assert ended.value.details["liveSessionId"] is None
        second = open_turn(as_ada, Opening("anew", agent="head"))
        assert second.session_id != first.session_id
        with pytest.raises(errors.SessionEnded) as ended:
            open_turn(as_ada, Opening("more", session_id=first.session_id))
        assert ended.value.details["liveSessionId"] == str(second.session_id)

    def test_nobody_gives_it_the_whole_computer(
        self, head: Agent, as_ada: Caller, workspace: Workspace
    ) -> None:
        accepting.accept(as_ada, workspace, head.definition, "")
        with pytest.raises(errors.TrustTooHigh):
            open_turn(as_ada, Opening("hi", agent="head", trust_level="full"))


class TestAccepting:
    def test_only_owners_accept_and_only_what_they_have_read(
        self, gardener: Path, workspace: Workspace, as_ada: Caller, as_ben: Caller
    ) -> None:
        gardener.write_text("---\nname: G\nspawn: [reader]\n---\n")
        agent = agent_of(workspace, "gardener")
        assert agent is not None
        with pytest.raises(errors.Forbidden):
            accepting.accept(as_ben, workspace, agent.definition, agent.definition.wanted.hash)
        with pytest.raises(errors.Conflict):
            accepting.accept(as_ada, workspace, agent.definition, "0" * 64)
        accepting.accept(as_ada, workspace, agent.definition, agent.definition.wanted.hash)
        agent = agent_of(workspace, "gardener")
        assert agent is not None
        assert (agent.rights.spawn, agent.pending) == (("reader",), [])

    def test_one_workspace_accepts_for_itself_alone(
        self, gardener: Path, workspace: Workspace, as_ada: Caller, as_cy: Caller
    ) -> None:
        gardener.write_text("---\nname: G\nspawn: [reader]\n---\n")
        agent = agent_of(workspace, "gardener")
        assert agent is not None
        accepting.accept(as_ada, workspace, agent.definition, "")
        other = agent_of(Workspace.objects.get(slug="elsewhere"), "gardener")
        assert other is not None
        assert other.pending == ["spawn"]

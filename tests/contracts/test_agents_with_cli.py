"""An agent's file through the real CLI behind the real wall: its prompt, model, tools and folders; and that
no process from before a change of its rights is used."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents_app.definitions import accepting
from agents_app.definitions.agents import agent_of
from agents_app.model.demo.wire import say
from agents_app.runtimes.claude.runtime import ClaudeRuntime
from agents_app.tools.offered import OFFERED
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.models import SessionEvent
from sessions_app.threads import in_thread
from tests.agents_app.engine import Engine, last_words
from tests.contracts.stage import door_to, sandbox_that_runs
from tests.scripted_model import ScriptedModel, calls

pytestmark = pytest.mark.django_db(transaction=True)

GARDENER = """---
name: Gardener
model: claude-opus-4-1
tools: [Read, Write, Bash]
write_permissions: ["Garden/**"]
---

You keep the garden and nothing else.
"""


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


@pytest.fixture
def file(vault: Path) -> Path:
    (vault / "Agents").mkdir()
    (vault / "Garden").mkdir()
    (vault / "CLAUDE.md").write_text("Be brief, says the vault.")
    found = vault / "Agents" / "gardener.md"
    found.write_text(GARDENER)
    return found


def of_the_cli(body: dict[str, Any]) -> set[str]:
    return {tool["name"] for tool in body["tools"]} & {*OFFERED}


def of(written: list[SessionEvent], kind: str) -> list[SessionEvent]:
    return [event for event in written if event.type == kind]


async def test_a_file_answers_with_its_prompt_model_tools_and_folders(
    engine: Engine, model: ScriptedModel, file: Path, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("django.conf.settings.PARACHUTE_PERMISSION_TIMEOUT", 0.5)
    inside, outside = vault / "Garden" / "quinces.md", vault / "elsewhere.md"
    steps = [
        calls("Write", file_path=str(inside), content="ripe"),
        calls("Write", file_path=str(outside), content="not here"),
        calls("Bash", command=f"echo more >> {inside}; echo no > {vault}/by-bash.md"),
        say("Done."),
    ]
    model.script("write it", steps)
    (vault / "Garden" / "AGENTS.md").write_text("Quinces come last, says the garden.")
    written = await engine.answer("write it", agent="gardener", contexts=("Garden",))
    assert last_words(written)["response"] == "Done."
    first = model.asked("write it")[0].body
    system = str(first["system"])
    assert "You keep the garden and nothing else." in system
    assert "Quinces come last, says the garden." in system, (
        "a folder that somebody chose is told all the same"
    )
    assert "Be brief, says the vault." not in str(first), "an agent's prompt stands in the preset's place"
    assert "opus" in first["model"], "the CLI knows which of the family is meant by now"
    assert of_the_cli(first) == {"Read", "Write", "Bash"}
    assert inside.read_text() == "ripemore\n"
    assert not outside.exists(), "nobody allowed it"
    assert not (vault / "by-bash.md").exists(), "the wall is closed there, in trust mode too"
    (asked,) = of(written, "permission_request")
    assert asked.payload["filePath"] == str(outside)


async def test_it_takes_as_many_steps_as_its_file_says_in_each_turn(
    engine: Engine, model: ScriptedModel, file: Path
) -> None:
    file.write_text(GARDENER.replace("tools:", "max_turns: 2\ntools:"))
    for text in ("look once", "once more", "a last time"):
        model.script(text, [calls("Bash", command="ls"), say("Seen.")])
    model.script("never ending", [*(calls("Bash", command="ls") for _ in range(3)), say("At last.")])
    first = await engine.say("look once", agent="gardener")
    await engine.run(first)
    again = await engine.answer("once more", session_id=first.session_id)
    assert last_words(again)["response"] == "Seen.", "each turn has its own"
    too_many = await engine.answer("never ending", session_id=first.session_id)
    assert len(model.asked("never ending")) == 2
    assert "as many steps as its agent's file allows" in last_words(too_many)["message"]
    after = await engine.answer("a last time", session_id=first.session_id)
    assert last_words(after)["response"] == "Seen."


async def test_narrowing_counts_at_once_widening_waits_and_no_old_process_is_used(
    engine: Engine, model: ScriptedModel, file: Path, as_ada: Caller, workspace: Workspace
) -> None:
    async def tools_of(text: str) -> set[str]:
        model.script(text, [say("Yes.")])
        await engine.run(await engine.say(text, session_id=opened.session_id))
        return of_the_cli(model.asked(text)[-1].body)

    opened = await engine.say("begin", agent="gardener")
    await engine.run(opened)
    assert engine.runtime.rests(opened.session_id), "a process with the rights of now is warm"
    file.write_text(GARDENER.replace("[Read, Write, Bash]", "[Read]"))
    assert await tools_of("after it was narrowed") == {"Read"}
    assert engine.runtime.rests(opened.session_id)
    file.write_text(GARDENER)
    assert await tools_of("after it was widened") == {"Read"}
    agent = await in_thread(agent_of)(workspace, "gardener")
    assert agent is not None
    await in_thread(accepting.accept)(as_ada, workspace, agent.definition, agent.definition.wanted.hash)
    assert await tools_of("after the click") == {"Read", "Write", "Bash"}

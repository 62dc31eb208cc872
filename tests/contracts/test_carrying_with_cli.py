"""The real CLI behind the real wall: a write that the wall keeps it from is made by the server, once a
person or the rules allow it, and the model is told so."""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents_app.model.demo.wire import say
from agents_app.runtimes.claude.runtime import ClaudeRuntime
from agents_app.runtimes.events import Answered, RuntimeEvent
from permissions_app.gate import Answer
from permissions_app.rules.decision import Decision, allow
from permissions_app.rules.setting import Patterns, Setting, Trust
from permissions_app.rules.tools import ToolCall
from tests.contracts.stage import Stage, door_to, sandbox_that_runs
from tests.scripted_model import ScriptedModel, calls

OLD, NEW = "Prune in May.\n", "Prune in June.\n"
CONTROL_FILES = (
    *(
        "CLAUDE.md",
        ".mcp.json",
        ".git/config",
        ".claude/settings.json",
        "Plans/AGENTS.md",
        "Agents/gardener.md",
    ),
    *(".vscode/settings.json", ".obsidian/app.json", ".git/hooks/pre-commit", ".agents/gardener.md"),
)


class Person:
    """Allows what they are asked about."""

    def __init__(self) -> None:
        self.asked: list[ToolCall] = []

    async def __call__(self, call: ToolCall, decision: Decision, setting: Setting) -> Answer:
        self.asked.append(call)
        return Answer(allow("person", "Yes."))


@pytest.fixture(scope="module")
def model() -> Any:
    with ScriptedModel() as model:
        yield model


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.fixture
async def stage(model: ScriptedModel, person: Person, tmp_path: Path, settings: Any) -> AsyncIterator[Stage]:
    vault = tmp_path / "vault"
    for name in ("Plans", ".git/info", "Notes"):
        (vault / name).mkdir(parents=True)
    async with AsyncExitStack() as stack:
        runtime = ClaudeRuntime(await stack.enter_async_context(door_to(model.url)), most_warm=0)
        home = Path(settings.PARACHUTE_HOME)
        stage = Stage(runtime, sandbox_that_runs("bubblewrap"), vault, home, Trust.VAULT)
        stage.gate._asks = person
        yield stage


def answers(heard: list[RuntimeEvent]) -> list[Answered]:
    return [event for event in heard if isinstance(event, Answered)]


def told_of(messages: list[dict[str, Any]], answer: Answered) -> dict[str, Any]:
    """What the model is told of a call: the result of its tool, and whether that is an error."""
    blocks = [block for message in messages for block in message["content"] if isinstance(block, dict)]
    (told,) = [block for block in blocks if block.get("tool_use_id") == answer.tool_use_id]
    error = {"is_error": True} if told.get("is_error") else {}
    return {"content": told["content"], **error}


def edit(path: Path) -> dict[str, str]:
    return {"file_path": str(path), "old_string": OLD.strip(), "new_string": NEW.strip()}


@pytest.mark.parametrize("are_new", [False, True])
async def test_control_files_are_written_for_the_agent(
    stage: Stage, person: Person, model: ScriptedModel, subtests: pytest.Subtests, are_new: bool
) -> None:
    key, steps = f"write all of them {are_new}", []
    for path in (stage.vault / name for name in CONTROL_FILES):
        if not are_new:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(OLD)
            steps.append(calls("Read", file_path=str(path)))
        steps.append(calls("Write", file_path=str(path), content=NEW))
    model.script(key, [*steps, say("Written.")])
    written = answers(await stage.play(key))[0 if are_new else 1 :: 1 if are_new else 2]
    assert (len(person.asked), stage.gate.denied) == (len(CONTROL_FILES), [])
    told = model.asked(key)[-1].body["messages"]
    for name, answer in zip(CONTROL_FILES, written, strict=True):
        with subtests.test(name):
            assert (stage.vault / name).read_text() == NEW
            assert not answer.is_error
            assert answer.content.startswith(f"Done: Parachute wrote {name} for you")
            here = {"content": f"The file {stage.vault / name} has been updated successfully."}
            assert told_of(told, answer) == here
            assert f"Done: Parachute wrote {name} for you" in str(told)


async def test_the_same_call_asks_again(stage: Stage, person: Person, model: ScriptedModel) -> None:
    path = stage.vault / "CLAUDE.md"
    path.write_text(OLD)
    once, again = (
        [calls("Read", file_path=str(path)), calls("Write", file_path=str(path), content=NEW)]
        for _ in range(2)
    )
    model.script("twice", [*once, *again, say("Written.")])
    heard = await stage.play("twice")
    assert [answer.is_error for answer in answers(heard)] == [False] * 4
    assert len(person.asked) == 2


async def test_the_wall_holds_the_file_after_it_was_written(
    stage: Stage, person: Person, model: ScriptedModel
) -> None:
    path = stage.vault / "CLAUDE.md"
    path.write_text(OLD)
    changes = calls("Edit", **edit(path))
    plants = calls("Bash", command=f"cat {path}; echo planted > {path}")
    model.script("then plant", [calls("Read", file_path=str(path)), changes, plants, say("Hm.")])
    heard = await stage.play("then plant")
    assert path.read_text() == NEW
    *_, changed, planted = answers(heard)
    assert (changed.is_error, planted.is_error) == (False, True)
    told = model.asked("then plant")[-1].body["messages"]
    assert told_of(told, changed) == {"content": f"The file {path} has been updated successfully."}
    assert NEW.strip() in planted.content


async def test_where_its_cli_cannot_even_do_nothing_the_model_is_told_all_the_same(
    stage: Stage, person: Person, model: ScriptedModel
) -> None:
    path = stage.vault / ".mcp.json"
    shuts = calls("Bash", command="chmod 500 /tmp")
    model.script("shut", [shuts, calls("Write", file_path=str(path), content=NEW), say("Written.")])
    heard = await stage.play("shut")
    assert path.read_text() == NEW
    *_, written = answers(heard)
    assert (written.is_error, written.content[:20]) == (False, "Done: Parachute wrot")
    told = model.asked("shut")[-1].body["messages"]
    assert told_of(told, written)["is_error"]
    assert "Done: Parachute wrote .mcp.json for you" in str(told)


async def test_behind_a_read_only_wall_too(stage: Stage, person: Person, model: ScriptedModel) -> None:
    path = stage.vault / "CLAUDE.md"
    path.write_text(OLD)
    boxed = Stage(stage.runtime, stage.sandbox, stage.vault, stage.home, Trust.SANDBOXED)
    boxed.gate._asks = person
    model.script("boxed", [calls("Read", file_path=str(path)), calls("Edit", **edit(path)), say("Written.")])
    *_, written = answers(await boxed.play("boxed"))
    assert (path.read_text(), len(person.asked)) == (NEW, 1)
    told = told_of(model.asked("boxed")[-1].body["messages"], written)
    assert told == {"content": f"The file {path} has been updated successfully."}


async def test_what_cannot_be_done_is_an_error_of_the_tool(
    stage: Stage, person: Person, model: ScriptedModel
) -> None:
    path = stage.vault / "CLAUDE.md"
    path.write_text(OLD)
    os.link(path, stage.vault / "Notes/second.md")
    model.script("second name", [calls("Read", file_path=str(path)), calls("Edit", **edit(path)), say("Hm.")])
    heard = await stage.play("second name")
    answer = answers(heard)[-1]
    assert (answer.is_error, "a second name" in answer.content) == (True, True)
    assert (path.read_text(), stage.gate.denied) == (OLD, [])


async def test_what_a_pattern_allows_since_it_started_is_written_without_asking(
    stage: Stage, person: Person, model: ScriptedModel
) -> None:
    stage.gate.setting = replace(
        stage.gate.setting, trust_mode=False, patterns=Patterns(write=("Plans/*.md",))
    )
    path = stage.vault / "Plans/Pears.md"
    model.script("by a pattern", [calls("Write", file_path=str(path), content=NEW), say("Written.")])
    heard = await stage.play("by a pattern", writable=("Notes/*",))
    assert path.read_text() == NEW
    assert [answer.is_error for answer in answers(heard)] == [False]
    assert (person.asked, stage.gate.denied) == ([], [])


async def test_what_the_wall_leaves_open_the_agent_writes_itself(
    stage: Stage, person: Person, model: ScriptedModel
) -> None:
    path = stage.vault / "Notes/Pears.md"
    model.script("by itself", [calls("Write", file_path=str(path), content=NEW), say("Written.")])
    heard = await stage.play("by itself", writable=("Notes/*",))
    assert path.read_text() == NEW
    (answer,) = answers(heard)
    assert "Parachute" not in answer.content


async def test_settings_of_a_repository_are_changed_for_the_agent_once_a_person_allows_it(
    stage: Stage, person: Person, model: ScriptedModel
) -> None:
    config = stage.vault / ".git/config"
    shutil.rmtree(stage.vault / ".git")
    subprocess.run(("git", "init", "-q"), cwd=stage.vault, check=True)
    (stage.vault / "project").mkdir()
    address = "https://example.org/ada/garden.git"
    adds = calls("Bash", command=f"git remote add origin {address} && git remote -v")
    looks = calls("Bash", command="git remote get-url origin")
    hooks = calls("Bash", command="git config core.hooksPath Notes")
    fresh = calls(
        "Bash", command="cd project && git init -q && git config user.name Ada && git config user.name"
    )
    model.script("a remote", [adds, looks, hooks, fresh, say("Done.")])
    heard = await stage.play("a remote")
    added, looked, hooked, begun = answers(heard)
    assert (added.is_error, added.content.startswith("Done: Parachute changed .git/config")) == (False, True)
    assert told_of(model.asked("a remote")[-1].body["messages"], added) == {"content": added.content}
    assert looked.content == address
    assert (hooked.is_error, ".git/config, which is read-only in here" in hooked.content) == (True, True)
    assert (begun.is_error, begun.content) == (False, "Ada")
    assert (len(person.asked), [call.input for call in stage.gate.denied]) == (
        1,
        [{"command": "git config core.hooksPath Notes"}],
    )
    assert config.read_text().count(address) == 1


async def test_a_name_that_is_held_is_written_once_and_the_wall_still_holds_it(
    stage: Stage, person: Person, model: ScriptedModel
) -> None:
    shutil.rmtree(stage.vault / ".git")
    subprocess.run(("git", "init", "-q"), cwd=stage.vault, check=True)
    path = stage.vault / ".mcp.json"
    tries = "cat .mcp.json; echo x > .mcp.json; rm -f .mcp.json; mv .mcp.json x; umount .mcp.json"
    looks = calls("Bash", command="git status --short; git add -A; git status --short")
    writes = calls("Write", file_path=str(path), content=NEW)
    model.script("held", [looks, writes, calls("Bash", command=tries), say("Written.")])
    heard = await stage.play("held")
    looked, written, tried = answers(heard)
    assert (looked.is_error, ".mcp.json" in looked.content) == (False, False)
    assert written.content.startswith("Done: Parachute wrote .mcp.json for you")
    assert (len(person.asked), NEW.strip() in tried.content, path.read_text()) == (1, True, NEW)
    seen = subprocess.run(("git", "status", "--short"), cwd=stage.vault, capture_output=True, text=True)
    assert ".mcp.json" in seen.stdout

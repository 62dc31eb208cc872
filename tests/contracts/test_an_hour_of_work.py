"""An ordinary hour of work in a vault: some eighty calls of the real CLI behind real bubblewrap, of which
next to none asks a person and none is refused."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from agents_app.model.demo.wire import Reply, ToolUse, say
from agents_app.runtimes.claude.runtime import ClaudeRuntime
from agents_app.runtimes.events import Answered, Used
from permissions_app.gate import Answer
from permissions_app.rules.decision import Decision, allow
from permissions_app.rules.setting import Setting, Trust
from permissions_app.rules.tools import ToolCall
from tests.contracts.stage import Stage, door_to, sandbox_that_runs
from tests.scripted_model import ScriptedModel

MOST_ASKED = 2

RIPE = """def is_ripe(day: int) -> bool:
    return day > 14
"""
TEST = """import unittest

from garden.ripe import is_ripe


class RipeTest(unittest.TestCase):
    def test_after_the_frost(self) -> None:
        self.assertTrue(is_ripe(20))
"""
HEREDOC = """cat > garden/pears.py <<'END'
def pears() -> list[str]:
    return ["Conference", "Comice"]
END"""
LOOP = """for file in garden/*.py; do
  echo "$file: $(wc -l < "$file") lines"
done"""


class Person:
    """Says yes to everything, and counts."""

    def __init__(self) -> None:
        self.asked: list[tuple[ToolCall, Decision]] = []

    async def __call__(self, call: ToolCall, decision: Decision, setting: Setting) -> Answer:
        self.asked.append((call, decision))
        return Answer(allow("person", "Yes."))


@pytest.fixture
def model() -> Any:
    with ScriptedModel() as model:
        yield model


@pytest.fixture
async def person() -> Person:
    return Person()


@pytest.fixture
async def stage(model: ScriptedModel, person: Person, tmp_path: Path, settings: Any) -> AsyncIterator[Stage]:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault/Quinces.md").write_text("Quinces ripen in October.\n")
    async with AsyncExitStack() as stack:
        runtime = ClaudeRuntime(await stack.enter_async_context(door_to(model.url)), most_warm=0)
        home = Path(settings.PARACHUTE_HOME)
        wall = sandbox_that_runs("bubblewrap")
        stage = Stage(runtime, wall, tmp_path / "vault", home, Trust.VAULT)
        stage.gate._asks = person
        yield stage


def bash(*commands: str) -> list[ToolUse]:
    return [ToolUse("Bash", {"command": command, "description": "Work"}) for command in commands]


def read(path: Path) -> ToolUse:
    return ToolUse("Read", {"file_path": str(path)})


def write(path: Path, content: str) -> ToolUse:
    return ToolUse("Write", {"file_path": str(path), "content": content})


def edit(path: Path, old: str, new: str) -> ToolUse:
    return ToolUse("Edit", {"file_path": str(path), "old_string": old, "new_string": new})


def looking_around() -> list[list[ToolUse]]:
    return [
        bash("ls -la", "pwd", "git --version && python3 --version"),
        [
            ToolUse("Glob", {"pattern": "**/*.md"}),
            ToolUse("Grep", {"pattern": "ripen", "output_mode": "content"}),
        ],
        bash("find . -name '*.md' -not -path './.git/*'", "head -20 Quinces.md | sort | uniq -c", "date +%F"),
    ]


def beginning(project: Path) -> list[list[ToolUse]]:
    return [
        bash("mkdir -p project/garden project/tests && cd project && git init -q"),
        bash("pwd", "git status --short"),
        [
            write(project / "garden/__init__.py", ""),
            write(project / "tests/__init__.py", ""),
            write(project / "garden/ripe.py", RIPE),
            write(project / "tests/test_ripe.py", TEST),
            write(project / ".gitignore", "__pycache__/\nbuild/\n"),
        ],
        bash("python3 -m unittest -v 2>&1 | tail -5"),
        bash("git add -A", "git commit -q -m 'Quinces are ripe after the frost'", "git log --oneline"),
    ]


def changing(project: Path) -> list[list[ToolUse]]:
    ripe, test = project / "garden/ripe.py", project / "tests/test_ripe.py"
    return [
        [read(ripe), read(test)],
        [
            edit(ripe, "day > 14", "day >= 14")
        ],  # of another size: Python would run what it compiled a moment ago
        [edit(test, "is_ripe(20))", "is_ripe(14))")],
        bash(HEREDOC, "cat garden/pears.py", LOOP),
        bash("python3 -m unittest", "git diff", "git diff --stat | cat"),
        bash("sed -i 's/Comice/Williams/' garden/pears.py", "grep -rn Williams . --include='*.py'"),
        [ToolUse("Grep", {"pattern": "def ", "path": str(project), "output_mode": "content"})],
        [ToolUse("Glob", {"pattern": "**/*.py", "path": str(project)})],
        bash("python3 -c 'from garden.pears import pears; print(pears())'"),
        bash("git add garden tests", "git commit -m \"$(cat <<'END'\nPears too\n\nTwo of them.\nEND\n)\""),
    ]


def tidying(project: Path) -> list[list[ToolUse]]:
    return [
        bash(
            "mkdir build && python3 -m compileall -q garden > build/log.txt 2>&1", "ls build", "rm -rf build"
        ),
        bash(
            "git mv garden/pears.py garden/orchard.py", "cp garden/orchard.py garden/plums.py", "git status"
        ),
        bash("mv garden/plums.py garden/damsons.py", "rm garden/damsons.py", "touch notes.txt"),
        bash("echo 'Pick on the 14th' >> notes.txt", "wc -l notes.txt", "test -f notes.txt && echo there"),
        bash("find . -name __pycache__ -type d -exec rm -rf {} +", "find . -name '*.pyc' | xargs -r rm -f"),
        [write(project / "README.md", "# A garden\n"), read(project / "notes.txt")],
        [edit(project / "README.md", "# A garden", "# The garden")],
        bash("git checkout -q -b plums", "git add -A", "git commit -qm 'Read me first'"),
        bash(
            "git checkout -q -", "git merge -q plums", "git log --stat -3 | head -40", "git branch -d plums"
        ),
        bash(
            "git log --stat -3 | head -40",
            "git show --stat HEAD",
            "git blame README.md",
            "git rev-parse HEAD",
        ),
        bash("awk '{ print $1 }' notes.txt | tr a-z A-Z", "diff README.md notes.txt || true", "env | wc -l"),
        bash("python3 -m unittest discover -s tests && echo all green", "chmod +x notes.txt", "du -sh ."),
    ]


def next_morning(project: Path) -> list[list[ToolUse]]:
    """In a repository that was there when the wall was built: its config and its hooks are read-only, so a
    person is asked about the remote."""
    return [
        bash("git status", "git log --oneline | head", "git checkout -q -b pruning"),
        [read(project / "README.md"), edit(project / "README.md", "The garden", "The winter garden")],
        bash("git commit -qam 'In winter'", "git checkout -q master", "git merge -q --no-edit pruning"),
        bash(
            "echo more >> notes.txt", "git stash", "git stash pop", "git checkout notes.txt", "git tag winter"
        ),
        bash("git worktree add -q -b plums ../plums", "git worktree remove ../plums", "git branch -D plums"),
        bash(
            "git remote add origin https://example.org/garden.git && git remote -v",
            "git remote get-url origin",
        ),
        bash("test -f .env || echo none", "find . -name .env -prune -o -name '*.py' -print | xargs wc -l"),
        bash("git mv notes.txt Notes.txt", "git commit -qm 'A capital'", "git reset -q --hard HEAD~1"),
    ]


async def test_an_ordinary_hour_asks_at_most_twice_and_is_never_refused(
    stage: Stage, person: Person, model: ScriptedModel
) -> None:
    project = stage.vault / "project"
    turns = [*looking_around(), *beginning(project), *changing(project), *tidying(project)]
    await works(stage, model, "an hour", [[read(stage.vault / "Quinces.md")], *turns], at_least=60)
    await works(stage, model, "next morning", next_morning(project), directory=project)
    assert [call.input for call in stage.gate.denied] == []
    assert len(person.asked) <= MOST_ASKED, [(call.input, decision.rule) for call, decision in person.asked]


async def works(
    stage: Stage, model: ScriptedModel, key: str, turns: list[list[ToolUse]], at_least: int = 0, **more: Any
) -> None:
    """Every call of a message is made and comes to a good end."""
    model.script(key, [*(Reply(tuple(uses)) for uses in turns), say("Done.")])
    heard = await stage.play(key, **more)
    inputs = {event.id: event.input for event in heard if isinstance(event, Used)}
    answers = [event for event in heard if isinstance(event, Answered)]
    assert [(inputs[each.tool_use_id], each.content) for each in answers if each.is_error] == []
    assert len(answers) == sum(map(len, turns)) >= at_least

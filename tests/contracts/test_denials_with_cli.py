"""What each rule denies did not run. Each call would leave a file, reach a listener, or show a secret, and
the last test shows that they do where nobody denies."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents_app.model.demo.wire import Reply, ToolUse, say
from agents_app.runtimes.claude.runtime import ClaudeRuntime
from agents_app.runtimes.events import Answered, Ready, RuntimeEvent
from permissions_app import gate as gates
from permissions_app.rules.decision import Verdict, allow
from permissions_app.rules.setting import Trust
from permissions_app.rules.tools import ToolKind, kind_of
from tests.contracts.listener import Listener
from tests.contracts.stage import Stage, door_to, sandbox_that_runs
from tests.scripted_model import ScriptedModel

SECRET = "quinces-never-to-be-seen"
Call = tuple[str, dict[str, Any]]


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@pytest.fixture
async def stage(model: ScriptedModel, tmp_path: Path, settings: Any) -> AsyncIterator[Stage]:
    """Without a wall: whatever does not run here, the rules and nothing else has kept from it."""
    (vault := tmp_path / "vault").mkdir()
    (vault / ".env").write_text(SECRET)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/note.md").write_text(SECRET)
    (vault / "linked").symlink_to(vault / "Notes")
    (vault / "Notes").mkdir()
    async with door_to(model.url) as door:
        runtime = ClaudeRuntime(door, most_warm=0)
        home = Path(settings.PARACHUTE_HOME)
        yield Stage(runtime, sandbox_that_runs("none"), vault, home, Trust.VAULT)


def marks(stage: Stage) -> list[str]:
    """What the calls would leave."""
    return sorted(path.name for path in stage.vault.parent.rglob("made*"))


async def tried(stage: Stage, model: ScriptedModel, given: list[Call]) -> list[RuntimeEvent]:
    uses = (Reply((ToolUse(name, inputs),)) for name, inputs in given)
    model.script("try them", [*uses, say("Done.")])
    return await stage.play("try them")


def below_full(stage: Stage, listener: Listener) -> dict[str, list[Call]]:
    above = stage.vault.parent
    return {
        "deny_list": [
            ("Bash", {"command": "touch made-1; cat .e*"}),
            ("Bash", {"command": "sh -c 'cp .e* made-2'"}),
        ],
        "dangerous": [
            ("Bash", {"command": "touch made-3; sudo true"}),
            ("Bash", {"command": "touch made-4 && echo mkfs.ext4 /dev/none | sh"}),
        ],
        "outside_vault": [
            ("Write", {"file_path": str(above / "made-5.md"), "content": "x"}),
            ("Read", {"file_path": str(above / "outside/note.md")}),
        ],
        "link": [("Write", {"file_path": str(stage.vault / "linked/made-6.md"), "content": "x"})],
        "private_host": [("WebFetch", {"url": f"{listener.url}/", "prompt": "?"})],
        "shell": [("Bash", {"command": "touch made-7"})],
        "control_file": [("Write", {"file_path": str(stage.vault / ".vscode/made-8.json"), "content": "x"})],
    }


def assert_nothing_came_of_it(heard: list[RuntimeEvent], stage: Stage, count: int) -> None:
    answers = [event for event in heard if isinstance(event, Answered)]
    assert [answer.is_error for answer in answers] == [True] * count
    assert not [answer for answer in answers if SECRET in answer.content]
    assert marks(stage) == []


async def test_below_full_trust(stage: Stage, model: ScriptedModel, listener: Listener) -> None:
    by_rule = below_full(stage, listener)
    given = [call for calls in by_rule.values() for call in calls]
    heard = await tried(stage, model, given)
    assert_nothing_came_of_it(heard, stage, len(given))
    assert listener.heard == []
    rules = [rule for rule, calls in by_rule.items() for _ in calls]
    assert [decision.rule for _, decision in stage.gate.asked] == rules


async def test_in_a_read_only_box(stage: Stage, model: ScriptedModel) -> None:
    stage.gate.setting = replace(stage.gate.setting, trust=Trust.SANDBOXED)
    heard = await tried(stage, model, [("Write", {"file_path": str(stage.vault / "made"), "content": "x"})])
    assert_nothing_came_of_it(heard, stage, 1)
    assert [decision.rule for _, decision in stage.gate.asked] == ["read_only_box"]


async def test_full_trust_without_an_operator(stage: Stage, model: ScriptedModel) -> None:
    stage.gate.setting = replace(stage.gate.setting, trust=Trust.FULL, operator=False)
    heard = await tried(stage, model, [("Bash", {"command": "touch made"})])
    assert_nothing_came_of_it(heard, stage, 1)
    assert [decision.rule for _, decision in stage.gate.asked] == ["not_operator"]


async def test_what_cannot_be_understood(stage: Stage, model: ScriptedModel) -> None:
    heard = await tried(stage, model, [("Glob", {"pattern": "*", "path": "~root"})])
    assert_nothing_came_of_it(heard, stage, 1)
    assert [decision.rule for _, decision in stage.gate.asked] == ["not_understood"]


async def test_what_goes_around_us_is_not_even_offered(stage: Stage, model: ScriptedModel) -> None:
    heard = await tried(stage, model, [("CronCreate", {"cron": "* * * * *", "prompt": "x"})])
    (ready,) = [event for event in heard if isinstance(event, Ready)]
    assert not [name for name in ready.tools if kind_of(name, {}) is ToolKind.NOT_OFFERED]
    assert_nothing_came_of_it(heard, stage, 1)


async def test_they_would_have_run(
    stage: Stage, model: ScriptedModel, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gates, "decide", lambda call, setting: allow("open", "Whatever."))
    given = [call for calls in below_full(stage, listener).values() for call in calls]
    harmless = [call for call in given if "sudo" not in str(call) and "mkfs" not in str(call)]
    heard = await tried(stage, model, harmless)
    assert {decision.verdict for _, decision in stage.gate.asked} == {Verdict.ALLOW}
    assert marks(stage) == ["made-1", "made-2", "made-5.md", "made-6.md", "made-7", "made-8.json"]
    assert [event for event in heard if isinstance(event, Answered) and SECRET in event.content]

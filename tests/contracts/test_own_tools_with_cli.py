"""Tools of our own with the real CLI: offered beside those that its agent may use, and known by their use."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents_app.model.demo.wire import Reply, ToolUse, say
from agents_app.runtimes.claude.runtime import ClaudeRuntime
from agents_app.runtimes.events import Answered, Ready, Used
from agents_app.tools.own import OwnServer, OwnTool, ToolRefused
from permissions_app.rules.setting import Trust
from tests.contracts.stage import Stage, door_to, sandbox_that_runs
from tests.scripted_model import ScriptedModel

SCHEMA = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


async def test_they_answer_in_the_worker_and_may_refuse(
    model: ScriptedModel, tmp_path: Path, settings: Any
) -> None:
    uses: list[str] = []

    async def halve(arguments: Mapping[str, Any], use_id: str) -> Any:
        uses.append(use_id)
        if arguments["number"] % 2:
            raise ToolRefused("invalid", "It is odd.")
        return {"half": arguments["number"] // 2}

    server = OwnServer("sums", (OwnTool("halve", "Halves a number.", SCHEMA, halve),))
    calls = [Reply((ToolUse("mcp__sums__halve", {"number": number}),)) for number in (4, 3)]
    model.script("halve them", [*calls, say("Done.")])
    (vault := tmp_path / "vault").mkdir()
    async with door_to(model.url) as door:
        home = Path(settings.PARACHUTE_HOME)
        runtime = ClaudeRuntime(door, most_warm=0)
        stage = Stage(runtime, sandbox_that_runs("bubblewrap"), vault, home, Trust.VAULT)
        stage.gate.setting = replace(stage.gate.setting, own_servers=frozenset({"sums"}))
        heard = await stage.play("halve them", servers=(server,), tools=("Read",))
    (ready,) = (event for event in heard if isinstance(event, Ready))
    assert set(ready.tools) == {"Read", "mcp__sums__halve"}
    answers = [event for event in heard if isinstance(event, Answered)]
    assert [(each.is_error, json.loads(each.content)) for each in answers] == [
        (False, {"half": 2}),
        (True, {"error": {"code": "invalid", "message": "It is odd."}}),
    ]
    assert uses == [event.id for event in heard if isinstance(event, Used)]

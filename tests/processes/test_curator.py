"""The curator in the real house: its own CLI and tools' process, in the background worker."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from agents_app.model.demo.wire import Reply, Text, ToolUse, say
from curator_app import handed
from tests.processes.conftest import furnish, starting, variables_for
from tests.processes.program import Event, Program, of_type
from tests.processes.running import RunningUp
from tests.scripted_model import ScriptedModel, calls

pytestmark = pytest.mark.processes

TITLE, SUMMARY, LOG = (f"mcp__curator__{name}" for name in ("update_title", "update_summary", "log_activity"))


@dataclass(frozen=True)
class Curated:
    up: RunningUp
    model: ScriptedModel
    program: Program

    def ask(self, about: str, **more: Any) -> str:
        """Of one more thing; the answer is the session."""
        return str(self.program.post(f"Tell me of {about}", **more)["sessionId"])

    def run(self, session_id: str, after: int = 0) -> list[Event]:
        """The events up to the end of the curator's next run."""
        return self.program.until(session_id, _has_run, after)

    def script(self, about: str, *steps: Any) -> None:
        """What the curator's model does of an exchange in which these words stand."""
        self.model.script(f"Tell me of {about}", [say("It is a fruit.")])
        self.model.script(f"<person>\nTell me of {about}", steps)


@pytest.fixture(scope="module")
def curated(tmp_path_factory: pytest.TempPathFactory, tables: Path) -> Iterator[Curated]:
    folder = tmp_path_factory.mktemp("curated")
    variables = variables_for(folder) | {"PARACHUTE_CURATOR": "1"}
    furnish(variables, tables)
    with ScriptedModel() as model, starting(folder, variables) as start:
        up = start({"ANTHROPIC_BASE_URL": model.url})
        yield Curated(up, model, Program(up))


def _has_run(event: Event) -> bool:
    return bool(event["type"] == "session_updated" and "curatorLastRun" in event)


def test_a_chat_gets_its_title_and_the_same_memory_sees_its_third_exchange(curated: Curated) -> None:
    curated.script(
        "quinces",
        calls(TITLE, title="When quinces ripen"),
        calls(SUMMARY, summary="It is about quinces."),
        calls(LOG, summary="Asked when quinces ripen."),
        say("done"),
    )
    session_id = curated.ask("quinces")
    events = curated.run(session_id)
    run = events[-1]["curatorLastRun"]
    assert (run["status"], run["error"]) == ("done", None)
    assert run["actions"] == ["update_title", "update_summary", "log_activity"]
    assert [e["title"] for e in of_type(events, "session_updated") if "title" in e] == ["When quinces ripen"]
    session = curated.program.session(session_id)
    assert (session["title"], session["titleSource"]) == ("When quinces ripen", "ai")
    assert session["curatorLastRun"] == run
    (file,) = (curated.up.vault / "Daily" / ".activity").iterdir()
    assert [json.loads(line)["summary"] for line in file.read_text().splitlines()] == [
        "Asked when quinces ripen."
    ]

    for about in ("pears", "plums"):
        curated.script(about, calls(LOG, summary=f"Asked about {about}."), say("done"))
        accepted = curated.program.post(f"Tell me of {about}", sessionId=session_id)
        last = curated.program.finished(accepted)[-1]["seq"]
    assert curated.run(session_id, last)[-1]["curatorLastRun"]["exchangeNumber"] == 3
    told = json.dumps(curated.model.asked("<person>\nTell me of plums")[0].body["messages"])
    assert "Exchange number: 1" in told
    assert "Asked when quinces ripen." in told
    assert "Tell me of pears" not in told


@pytest.mark.depth
def test_its_tools_process_holds_one_token_and_no_other_secret_and_is_replaced_when_it_dies(
    curated: Curated,
) -> None:
    gate = curated.model.hold()
    held = Reply((Text("One moment", gate), ToolUse(TITLE, {"title": "Medlars"})))
    curated.script("medlars", held, say("done"))
    session_id = curated.ask("medlars")
    assert gate.reached.wait(60)
    ours = [psutil.Process(pid) for pid in curated.up.left()]
    (tools,) = (each for each in ours if handed.MODULE in each.cmdline())
    token = tools.environ()[handed.TOKEN]
    assert _secrets(tools.environ()) == {handed.TOKEN}
    assert token not in json.dumps([each.cmdline() for each in ours])
    tools.kill()
    tools.wait(10)
    gate.release()
    assert curated.run(session_id)[-1]["curatorLastRun"]["newTitle"] == "Medlars"
    refused = curated.program.http.patch(
        f"/api/internal/sessions/{session_id}",
        json={"title": "Stolen"},
        headers={"Authorization": f"Bearer {token}"},
    )
    assert refused.status_code == 401


def _secrets(environment: Mapping[str, str]) -> set[str]:
    words = ("KEY", "TOKEN", "SECRET", "PASSWORD", "DATABASE", "REDIS")
    return {name for name, value in environment.items() if value and any(word in name for word in words)}

"""The curator in the real house: its own CLI and tools' process, in the background worker."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents_app.model.demo.wire import say
from tests.processes.conftest import furnish, starting, variables_for
from tests.processes.program import Event, Program, of_type
from tests.processes.running import RunningUp
from tests.scripted_model import ScriptedModel, calls

pytestmark = pytest.mark.processes

TITLE, SUMMARY, LOG = (f"mcp__curator__{name}" for name in ("update_title", "update_summary", "log_activity"))


Curated = tuple[RunningUp, ScriptedModel]


@pytest.fixture(scope="module")
def curated(tmp_path_factory: pytest.TempPathFactory, tables: Path) -> Iterator[Curated]:
    folder = tmp_path_factory.mktemp("curated")
    variables = variables_for(folder) | {"PARACHUTE_CURATOR": "1"}
    furnish(variables, tables)
    with ScriptedModel() as model, starting(folder, variables) as start:
        yield start({"ANTHROPIC_BASE_URL": model.url}), model


def has_run(event: Event) -> bool:
    return bool(event["type"] == "session_updated" and "curatorLastRun" in event)


def test_a_chat_gets_its_title_and_the_same_memory_sees_its_third_exchange(
    curated: Curated,
) -> None:
    up, model = curated
    program = Program(up)
    model.script("quince", [say("In October.")])
    model.script(
        "Exchange number: 1",
        [
            calls(TITLE, title="When quinces ripen"),
            calls(SUMMARY, summary="It is about quinces."),
            calls(LOG, summary="Asked when quinces ripen."),
            say("done"),
        ],
    )
    model.script("Exchange number: 3", [calls(LOG, summary="Asked about quinces again."), say("done")])
    accepted = program.post("When does a quince ripen?")
    session_id = accepted["sessionId"]
    events = program.until(session_id, has_run)
    run = events[-1]["curatorLastRun"]
    assert (run["status"], run["error"]) == ("done", None)
    assert run["actions"] == ["update_title", "update_summary", "log_activity"]
    assert [e["title"] for e in of_type(events, "session_updated") if "title" in e] == ["When quinces ripen"]
    session = program.session(session_id)
    assert (session["title"], session["titleSource"]) == ("When quinces ripen", "ai")
    assert session["curatorLastRun"] == run

    for _ in range(2):
        last = program.finished(program.post("And this quince?", sessionId=session_id))[-1]["seq"]
    assert program.until(session_id, has_run, last)[-1]["curatorLastRun"]["exchangeNumber"] == 3
    told = json.dumps(model.asked("Exchange number: 3")[0].body["messages"])
    assert "Exchange number: 1" in told
    assert "When quinces ripen" in told

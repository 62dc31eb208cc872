"""What was asked, and what was answered, survives the end of each process."""

import sqlite3
import time
from contextlib import closing
from typing import Any

import psutil
import pytest

from agents_app.model.demo.wire import say
from tests.processes.conftest import House
from tests.processes.program import Program, assert_no_gaps, of_type
from tests.processes.running import PATIENCE, RunningUp
from tests.scripted_model import calls

pytestmark = pytest.mark.processes


@pytest.fixture
def asked(shaken: House) -> dict[str, Any]:
    """An agent wants to write what steers agents, and waits for a person."""
    up, program, model = shaken.up, shaken.program, shaken.model
    (file := up.vault / "CLAUDE.md").unlink(missing_ok=True)
    note = calls("Write", file_path=str(file), content="Be brief.\n")
    model.script("steer", [note, say("It is written.")])
    model.script("interrupted", [note, say("It is written.")])
    accepted = program.post("steer, please")
    program.until(accepted["sessionId"], lambda event: event["type"] == "permission_request")
    return accepted


def pending(program: Program) -> list[str]:
    answer = program.http.get("/api/permissions").raise_for_status()
    return [each["id"] for each in answer.json()["pending"]]


def grant(program: Program, request: str) -> None:
    program.http.post(f"/api/permissions/{request}/grant", json={}).raise_for_status()


def stand_still(up: RunningUp) -> None:
    """The worker, in a moment in which it writes nothing: else nobody could answer either."""
    worker, until = psutil.Process(up.pid_of("turns")), time.monotonic() + PATIENCE
    while time.monotonic() < until:
        worker.suspend()
        while worker.status() != psutil.STATUS_STOPPED:
            time.sleep(0.001)
        if not is_being_written(up):
            return
        worker.resume()
        while is_being_written(up) and time.monotonic() < until:  # else it never comes to the end of it
            time.sleep(0.01)
    raise AssertionError("The worker wrote each time that it was stopped.")


def is_being_written(up: RunningUp) -> bool:
    file = up.environment.home / "db.sqlite3"
    with closing(sqlite3.connect(file, timeout=0)) as database:
        try:
            database.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
    return False


def test_a_question_outlives_the_web_server_and_the_bus(shaken: House, asked: dict[str, Any]) -> None:
    up, program = shaken.up, shaken.program
    before = pending(program)
    starts = {name: up.text.count(f"{name} started") for name in ("web", "valkey")}
    for name in starts:
        up.kill(name)
        up.wait_log(f"{name} started", times=starts[name] + 1)
        up.wait_health()
        assert pending(program) == before
    grant(program, before[0])
    events = program.finished(asked)
    assert of_type(events, "done")[-1]["response"] == "It is written."
    assert (up.vault / "CLAUDE.md").read_text() == "Be brief.\n"
    assert len(of_type(events, "permission_request")) == 1
    assert_no_gaps(events)


def test_an_answer_outlives_the_worker_that_asked(shaken: House, asked: dict[str, Any]) -> None:
    """It stands still while a person answers, and is killed before it has heard of it."""
    up, program = shaken.up, shaken.program
    stand_still(up)
    grant(program, pending(program)[0])
    up.kill("turns")
    events = program.finished(asked)
    assert events[-1]["type"] == "done"
    [result] = of_type(events, "tool_result")
    assert (result["isError"], "as a person allowed" in result["content"]) == (False, True)
    assert (up.vault / "CLAUDE.md").read_text() == "Be brief.\n"
    assert len(of_type(events, "permission_request")) == 1  # nobody is asked again
    assert_no_gaps(events)

"""A chat is deleted in the real thing: no process of its agent is left, and no file."""

import time
from collections.abc import Callable

import pytest

from agents_app.model.demo.wire import say
from tests.processes.conftest import House
from tests.processes.running import RunningUp
from tests.scripted_model import calls

pytestmark = pytest.mark.processes

WITHIN = 10.0


def clis(up: RunningUp, session_id: str) -> list[str]:
    running = [command for command in up.left().values() if "--output-format stream-json" in command]
    return [command for command in running if session_id in command]


def comes_true(what: Callable[[], bool]) -> None:
    until = time.monotonic() + WITHIN
    while not what():
        assert time.monotonic() < until
        time.sleep(0.05)  # nothing tells of the end of a foreign process


def is_nothing_left(up: RunningUp, session_id: str) -> bool:
    files = [*up.home.glob(f"claude/{session_id}"), *up.vault.glob(f".claude/projects/*/{session_id}*")]
    return not files and not clis(up, session_id)


def test_while_its_agent_runs_a_command(house: House) -> None:
    up, program = house.up, house.program
    house.model.script("sleep", [calls("Bash", command="sleep 55"), say("It slept.")])
    accepted = program.post("sleep, please")
    session_id = accepted["sessionId"]
    program.until(session_id, lambda e: e["type"] == "tool_use")
    assert clis(up, session_id)
    began = time.monotonic()
    with program.following(session_id) as events:
        next(events)
        assert program.http.delete(f"/api/chat/{session_id}").status_code == 204
        list(events)
    assert time.monotonic() - began < WITHIN
    comes_true(lambda: is_nothing_left(up, session_id))
    assert program.http.get(f"/api/chat/{session_id}").status_code == 404
    assert "Traceback" not in up.text


def test_while_its_agent_rests(house: House) -> None:
    up, program = house.up, house.program
    accepted = program.post("hello")
    session_id = accepted["sessionId"]
    program.finished(accepted)
    comes_true(lambda: bool([*up.vault.glob(f".claude/projects/*/{session_id}.jsonl")]))
    assert clis(up, session_id)
    assert program.http.delete(f"/api/chat/{session_id}").status_code == 204
    comes_true(lambda: is_nothing_left(up, session_id))
    assert "Traceback" not in up.text

"""The real processes, killed, left and overrun: every message is answered once, and nothing is left over."""

import signal
from collections.abc import Callable
from functools import partial

import psutil
import pytest

from agents_app.model.demo.wire import say
from tests.depth import few_of
from tests.processes.conftest import House
from tests.processes.program import TERMINAL, Program, all_at_once, assert_no_gaps, of_type, rows
from tests.processes.running import RunningUp, StartUp
from tests.scripted_model import Gate, ScriptedModel, calls, in_turn

pytestmark = pytest.mark.processes

PATIENCE = 60.0


def breaks_off(model: ScriptedModel) -> Gate:
    """Asked to speak slowly, the model stops in mid-sentence; whoever asks again gets all of it. After a
    crash that is the same message or the note about it, as the transcript had the message or not."""
    gate = model.hold()
    whole = say("A whole sentence.")
    model.script("slowly", [in_turn(say("A whole ", gate, "sentence."), whole)])
    model.script("interrupted", [whole])
    return gate


def clis_of(up: RunningUp) -> set[int]:
    return {pid for pid, command in up.left().items() if "--output-format stream-json" in command}


def test_a_worker_killed_in_the_middle_of_a_tool(shaken: House) -> None:
    up, program, model = shaken.up, shaken.program, shaken.model
    runs = up.vault / "runs.txt"
    model.script("count", [calls("Bash", command=f"echo ran >> {runs}; sleep 55"), say("It slept.")])
    model.script("interrupted", [say("I looked: it had run.")])
    accepted = program.post("count, please")
    program.until(accepted["sessionId"], lambda e: e["type"] == "tool_use")
    wait_for(runs.exists, up)
    lost = clis_of(up)
    up.kill("turns")
    events = program.finished(accepted)
    assert of_type(events, "done")[-1]["response"] == "I looked: it had run."
    assert len([event for event in rows(events) if event["type"] in TERMINAL]) == 1
    assert runs.read_text() == "ran\n"
    assert not [pid for pid in lost if psutil.pid_exists(pid)]
    assert_no_gaps(events)


def test_a_worker_killed_in_the_middle_of_text(shaken: House) -> None:
    """What people had read by then is kept, and the agent is told, so that it goes on from there."""
    up, program, model = shaken.up, shaken.program, shaken.model
    model.script("slowly", [in_turn(say("Half a ", model.hold(), "sentence."), say("sentence."))])
    model.script("interrupted", [say("sentence.")])
    accepted = program.post("slowly, please")
    program.until(accepted["sessionId"], lambda event: event.get("delta") == "Half a ")
    lost = clis_of(up)
    up.kill("turns")
    events = program.finished(accepted)
    texts = [(event["content"], "interrupted" in event) for event in of_type(events, "text")]
    assert texts == [("Half a ", True), ("sentence.", False)]
    assert [done["response"] for done in of_type(events, "done")] == ["Half a \n\nsentence."]
    assert "Half a" in model.requests[-1].text
    assert not [pid for pid in lost if psutil.pid_exists(pid)]
    messages = program.session(accepted["sessionId"])["messages"]
    told = [message for message in messages if message["role"] == "assistant"]
    said = [(message["content"][0]["text"], "interrupted" in message) for message in told]
    assert said == [("Half a ", True), ("sentence.", False)]
    assert_no_gaps(events)


def test_everything_killed_and_started_again(
    up: RunningUp, start_up: StartUp, program: Program, model: ScriptedModel
) -> None:
    gate = breaks_off(model)
    accepted = program.post("slowly, please")
    behind = program.post("and then?", sessionId=accepted["sessionId"])
    assert gate.reached.wait(PATIENCE)
    up.kill("up")
    for name in ("web", "turns", "background", "valkey"):
        up.kill(name)
    up.wait_exit()
    start_up({"ANTHROPIC_BASE_URL": model.url})
    events = program.finished(behind)
    assert [event["response"] for event in of_type(events, "done")] == ["A whole sentence.", "ok"]
    assert_no_gaps(events)


def test_a_reader_that_leaves_stops_nothing(house: House) -> None:
    program, model = house.program, house.model
    gate = model.hold()
    model.script("slowly", [say("Half a ", gate, "sentence.")])
    with program.http.stream("POST", "/api/chat", json={"message": "slowly, please"}) as answer:
        next(answer.iter_lines())
        assert gate.reached.wait(PATIENCE)
    session = program.http.get("/api/chat").json()["sessions"][0]
    gate.release()
    events = program.until(session["id"], lambda e: e["type"] in TERMINAL)
    assert of_type(events, "done")[0]["response"] == "Half a sentence."


@pytest.mark.parametrize("sessions", few_of([6, 20], 6))
def test_many_sessions_at_once(house: House, sessions: int) -> None:
    program, model = house.program, house.model

    def one(number: int) -> None:
        model.script(f"number {number}.", [say(f"This is {number}.")])
        events = program.finished(program.post(f"number {number}."))
        assert of_type(events, "done")[0]["response"] == f"This is {number}."
        assert_no_gaps(events)

    all_at_once([partial(one, number) for number in range(sessions)])


def test_a_worker_that_is_told_to_stop_hands_its_turn_over(shaken: House) -> None:
    up, program, model = shaken.up, shaken.program, shaken.model
    gate = breaks_off(model)
    accepted = program.post("slowly, please")
    assert gate.reached.wait(PATIENCE)
    up.kill("turns", signal.SIGTERM)
    events = program.finished(accepted)
    assert of_type(events, "done")[0]["response"] == "A whole sentence."
    assert_no_gaps(events)


def test_a_turn_is_stopped_while_the_network_is_down(start_up: StartUp) -> None:
    up = start_up({"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"})
    program = Program(up)
    accepted = program.post("anybody there?")
    told = program.until(accepted["sessionId"], lambda event: event["type"] == "warning")
    assert told[-1]["code"] == "api_retry"
    assert program.http.post(f"/api/chat/{accepted['sessionId']}/abort").status_code == 200
    assert program.finished(accepted)[-1]["type"] == "aborted"


def test_what_is_said_while_a_tool_runs_is_answered_in_that_turn(house: House) -> None:
    program, model = house.program, house.model
    command = "until [ -e go ]; do sleep 0.05; done; echo gone"
    model.script("wait for it", [calls("Bash", command=command), say("Both are done.")])
    model.script("and this", [say("Both are done.")])
    accepted = program.post("wait for it")
    program.until(accepted["sessionId"], lambda event: event["type"] == "tool_use")
    inject = f"/api/chat/{accepted['sessionId']}/inject"
    answer = program.http.post(inject, json={"message": "and this"})
    assert (answer.status_code, answer.json()["state"]) == (202, "running")
    (house.up.vault / "go").touch()
    events = program.finished(accepted)
    assert [event["content"] for event in of_type(events, "user_message")] == ["wait for it", "and this"]
    # With the tool's answer, or after it, where the tool ends before the message is handed over: then twice.
    assert set(of_type(events, "done")[0]["response"].split("\n\n")) == {"Both are done."}
    assert any("and this" in str(asked.body["messages"]) for asked in model.requests)
    said = program.session(accepted["sessionId"])["messages"]
    assert [m["content"][0]["text"] for m in said if "source" in m] == ["wait for it", "and this"]


def test_refusals_come_through_the_real_server(house: House) -> None:
    web = house.program.http
    big = b'{"message": "' + b"x" * (31 * 1024 * 1024) + b'"}'
    accepted = house.program.post("hello")
    session = accepted["sessionId"]
    for answer, status, code in (
        (web.post("/api/chat", content=b'{"message": '), 422, "invalid"),
        (web.post("/api/chat", content=big), 413, "too_large"),
        (web.post("/api/chat", json={"message": "x" * 102_401}), 413, "too_large"),
        (web.get("/api/chat/6f1c1c0e-0000-4000-8000-000000000000"), 404, "not_found"),
        (web.get("/api/chat/not-an-id"), 404, "not_found"),
        (web.get(f"/api/chat/{session}", headers={"Authorization": "Bearer para_x"}), 401, "unauthenticated"),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    house.program.finished(accepted)


def wait_for(is_so: Callable[[], bool], up: RunningUp) -> None:
    """Until it is so; looked at again whenever something moves in the vault, and at least now and then."""
    import selectors
    import time

    until = time.monotonic() + PATIENCE
    with selectors.DefaultSelector() as nothing:
        while not is_so():
            assert time.monotonic() < until, up.text
            nothing.select(0.02)

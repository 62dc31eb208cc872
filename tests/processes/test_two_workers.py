"""Two turn workers, as a team has them: a session stays with the one that has it warm, and both are replaced
under load without a person noticing."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from agents_app.model.demo.wire import say
from agents_app.turns.held.ringing import own_queue
from parachute_site import env
from tests.processes.program import TERMINAL, Program, all_at_once, assert_no_gaps, of_type, rows
from tests.processes.running import RunningUp
from tests.scripted_model import ScriptedModel, calls

pytestmark = pytest.mark.processes

PATIENCE = 60.0
SESSIONS, MESSAGES, ROUNDS = 8, 4, 2
NAME = "turns-2@here"


class SecondWorker:
    """A turn worker beside those of `up`, as another machine would run it."""

    def __init__(self, up: RunningUp, variables: dict[str, str]) -> None:
        self._up = up
        marked = {env.OWNER: up.environment.owner, "PARACHUTE_WORKER": NAME, "PYTHONUNBUFFERED": "1"}
        self._variables = variables | marked
        self.start()

    def start(self) -> None:
        options = ("-P", "threads", "-c", "8", "-Q", f"turns,{own_queue(NAME)}", "-n", NAME)
        self._ready = threading.Event()
        self._popen = subprocess.Popen(
            [sys.executable, "-m", "celery", "--quiet", "-A", "parachute_site", "worker", *options],
            cwd=Path(__file__).resolve().parents[2],
            env=self._variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        threading.Thread(target=self._read, args=(self._popen,), daemon=True).start()
        assert self._ready.wait(PATIENCE)

    def stop(self) -> None:
        self._popen.send_signal(signal.SIGTERM)
        assert self._popen.wait(PATIENCE) == 0

    def _read(self, popen: subprocess.Popen[str]) -> None:
        assert popen.stdout
        with popen.stdout as lines:
            for line in lines:
                self._up.lines.append(f"second | {line.rstrip()}")
                if "is ready" in line:
                    self._ready.set()


@pytest.fixture
def second(up: RunningUp, variables: dict[str, str], model: ScriptedModel) -> Iterator[SecondWorker]:
    worker = SecondWorker(up, {**variables, "ANTHROPIC_BASE_URL": model.url})
    yield worker
    worker.stop()


def test_what_is_said_next_goes_to_the_worker_that_has_the_session_warm(
    program: Program, second: SecondWorker
) -> None:
    session = program.post("hello")  # its transcript makes `.claude` in the vault, which walls mind
    program.finished(session)
    program.finished(program.post("hello again", sessionId=session["sessionId"]))
    hits = []
    for number in range(6):
        accepted = program.post(f"and {number}?", sessionId=session["sessionId"])
        done = [event for event in program.finished(accepted) if event["turnId"] == accepted["turnId"]][-1]
        hits.append(done["sessionResume"]["cacheHit"])
    assert hits == [True] * 6


@pytest.mark.depth
def test_both_are_replaced_under_load_and_every_message_is_answered_once(
    up: RunningUp, program: Program, second: SecondWorker, model: ScriptedModel
) -> None:
    # A call of its own each time: the same id twice is the same call, to the agent too.
    use = partial(calls, "Bash", command="sleep 0.3; echo noted")
    model.script("note", [lambda asked: use(), say("It is noted.")])
    model.script("tell", [say("It is a long story, ", "told in pieces.", pause=0.1)])
    model.script("interrupted", [say("Where was I? It is told.")])

    def converse(number: int) -> None:
        session: dict[str, str] = {}
        for turn in range(MESSAGES):
            kind = ("tell", "note")[(number + turn) % 2]
            accepted = program.post(f"{kind} {number}.{turn}", **session)
            session = {"sessionId": accepted["sessionId"]}
            if turn % 2:  # every other message waits behind the one before
                events = program.finished(accepted)
        assert_no_gaps(events)
        ends = [event for event in rows(events) if event["type"] in TERMINAL]
        assert [event["type"] for event in ends] == ["done"] * MESSAGES
        asked = [event["turnId"] for event in of_type(events, "user_message")]
        assert [event["turnId"] for event in ends] == asked
        answered = [event["toolUseId"] for event in of_type(events, "tool_result")]
        assert len(answered) == len(set(answered))

    def replace() -> None:
        for _ in range(ROUNDS):
            up.wait_log(r"second \| .*turns-2.* is ready")
            started = sum("turns-1" in line and "is ready" in line for line in up.lines)
            up.kill("turns", signal.SIGTERM)
            up.wait_log(r"turns-1.* is ready", times=started + 1)
            second.stop()
            second.start()

    all_at_once([replace, *(partial(converse, number) for number in range(SESSIONS))])

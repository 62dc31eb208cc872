"""Agents that run agents in the real house, with the real CLI: an orchestrator starts three; one reports and
asks, one finishes, one has its worker killed. It hears of each once, answers, and rests. Then the house is
killed as a whole and started again, and the same holds."""

import os
import signal
from collections import Counter
from typing import Any

import httpx
import pytest

from agents_app.model.demo.conversation import Asked
from agents_app.model.demo.wire import Reply, ToolUse, say
from tests.processes.conftest import furnish
from tests.processes.program import Event, Program
from tests.processes.running import RunningUp, StartUp
from tests.scripted_model import ScriptedModel, calls

pytestmark = pytest.mark.processes

OURS = "mcp__orchestration__"
WAKES = "Parachute wakes you"
BOSS = "---\nkind: orchestrator\nspawn: [worker]\n---\nYou let others work.\n"
PATIENCE = 60.0


def spawn(task: str) -> ToolUse:
    return ToolUse(f"{OURS}spawn_session", {"child_agent_id": "worker", "prompt": task})


def answered(asked: Asked) -> Reply:
    """Who asks is answered, and of all else it takes note."""
    waiting = [line for line in asked.text.splitlines() if '"from_session_id"' in line]
    if '"needs_response": true' in asked.text and asked.rounds == 0:
        asking = asked.text[: asked.text.index('"needs_response": true')]
        child = [line for line in asking.splitlines() if '"from_session_id"' in line][-1].split('"')[3]
        return calls(f"{OURS}inject_message", child_session_id=child, text="Yes, all of them.")
    return say(f"Heard of {len(waiting)}.")


class Story:
    def __init__(self, program: Program, model: ScriptedModel) -> None:
        self.program = program
        self.model = model
        self.held = model.hold()
        tasks = ("You ask.", "You finish.", "You are held.")
        model.script("Begin it", [Reply(tuple(map(spawn, tasks))), say("All three are at work.")])
        model.script(
            "You ask.", [calls(f"{OURS}message_caller", summary="All?", needs_response=True), say("I wait.")]
        )
        model.script("You finish.", [say("Finished.")])
        model.script("You are held.", [say("I am ", self.held, "still here.")])
        model.script("Yes, all of them.", [say("Then I am through.")])
        model.script(WAKES, [answered, say("I have answered.")])

    def begin(self) -> str:
        ran = self.program.http.post(
            "/api/workspaces/default/agents/boss/sessions", json={"prompt": "Begin it"}
        )
        assert ran.status_code == 201, ran.text
        return str(ran.json()["id"])

    def told(self, session_id: str, wanted: int) -> list[dict[str, Any]]:
        """What the orchestrator was told by wakes, once it is so much, and the turn that told the last is
        over."""
        told: list[dict[str, Any]] = []
        turns: set[str] = set()

        def is_all(event: Event) -> bool:
            if event["type"] == "user_message" and event["wakes"]:
                told.extend(event["wakes"])
                turns.add(event["turnId"])
            if event["type"] == "done":
                turns.discard(event["turnId"])
            return len(told) >= wanted and not turns

        self.program.until(session_id, is_all)
        return told

    def children(self, session_id: str) -> dict[str, str]:
        found = self.program.http.get("/api/chat", params={"parent": session_id}).json()["sessions"]
        return {child["title"]: child["status"] for child in found}


def accept(up: RunningUp) -> None:
    (up.vault / "Agents").mkdir(exist_ok=True)
    (up.vault / "Agents" / "boss.md").write_text(BOSS)
    (up.vault / "Agents" / "worker.md").write_text("---\nname: Worker\n---\nYou work.\n")
    answer = httpx.post(
        f"{up.address}/api/agents/boss/accept-rights",
        json={},
        headers={"X-CSRFToken": up.cookies["csrftoken"]},
        cookies=up.cookies,
        timeout=PATIENCE,
    )
    assert answer.status_code == 200, answer.text


def summed(told: list[dict[str, Any]]) -> Counter[str]:
    return Counter(f"{wake['kind']} {wake.get('new_status', '')}".strip() for wake in told)


def test_it_hears_of_each_once_whatever_is_killed(
    start_up: StartUp, model: ScriptedModel, variables: dict[str, str], tables: Any
) -> None:
    furnish(variables, tables)
    up = start_up({"ANTHROPIC_BASE_URL": model.url})
    program = Program(up)
    accept(up)
    story = Story(program, model)
    boss = story.begin()
    first = story.told(boss, 3)
    assert summed(first) == {"message": 1, "state_change complete": 2}
    assert story.held.reached.wait(PATIENCE)
    up.kill("turns")
    told = story.told(boss, 4)
    expected = {"message": 1, "state_change complete": 2, "state_change failed": 1}
    assert summed(told) == expected
    assert story.children(boss) == {
        "You ask.": "complete",
        "You finish.": "complete",
        "You are held.": "failed",
    }
    story.held.release()

    os.kill(up.pid, signal.SIGKILL)
    up.wait_exit(PATIENCE)
    again = start_up({"ANTHROPIC_BASE_URL": model.url})
    program = Program(again)
    told = Story(program, model).told(boss, 4)
    assert summed(told) == expected, "nothing is told again"
    found = program.session(boss)
    assert (found["status"], found["activity"], found["pendingTurns"]) == ("running", "quiescent", [])

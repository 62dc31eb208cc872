"""The real CLI waits for a person, as long as people take, and does what they said."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from agents_app.model.demo.wire import Reply, ToolUse, say
from agents_app.runtimes.base import Run
from agents_app.runtimes.claude.runtime import ClaudeRuntime
from agents_app.runtimes.events import Answered, Ended, RuntimeEvent
from permissions_app.asking import with_answers
from permissions_app.gate import Answer
from permissions_app.rules.decision import Decision, allow, deny
from permissions_app.rules.setting import Setting, Trust
from permissions_app.rules.tools import ToolCall
from tests.contracts.stage import Stage, door_to, sandbox_that_runs
from tests.scripted_model import ScriptedModel, calls

ANSWERS = {"Which pears?": "Conference"}
QUESTION: dict[str, Any] = {
    "questions": [
        {
            "question": "Which pears?",
            "header": "Pears",
            "multiSelect": False,
            "options": [
                {"label": "Conference", "description": "long ones"},
                {"label": "Comice", "description": "round ones"},
            ],
        }
    ]
}


class Person:
    """Who is asked. Answers when `answer` is set, and not before."""

    def __init__(self) -> None:
        self.asked: list[ToolCall] = []
        self.is_asked = asyncio.Event()
        self.answer: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()

    async def __call__(self, call: ToolCall, decision: Decision, setting: Setting) -> Answer:
        self.asked.append(call)
        self.is_asked.set()
        said = await self.answer
        return Answer(said, with_answers(call, ANSWERS) if call.name == "AskUserQuestion" else None)


@pytest.fixture(scope="module")
def model() -> Any:
    with ScriptedModel() as model:
        yield model


@pytest.fixture
async def person() -> Person:
    return Person()


@pytest.fixture
async def stage(model: ScriptedModel, person: Person, tmp_path: Path, settings: Any) -> AsyncIterator[Stage]:
    """Without a wall and below full trust: there each command asks."""
    (tmp_path / "vault").mkdir()
    async with AsyncExitStack() as stack:
        runtime = ClaudeRuntime(await stack.enter_async_context(door_to(model.url)), most_warm=0)
        home = Path(settings.PARACHUTE_HOME)
        stage = Stage(runtime, sandbox_that_runs("none"), tmp_path / "vault", home, Trust.VAULT)
        stage.gate._asks = person
        yield stage


def answers(heard: list[RuntimeEvent]) -> list[Answered]:
    return [event for event in heard if isinstance(event, Answered)]


async def test_what_is_allowed_runs_once_it_is_allowed(
    stage: Stage, person: Person, model: ScriptedModel
) -> None:
    made = stage.vault / "made"
    model.script("make it", [calls("Bash", command=f"touch {made}"), say("Made.")])

    async def decide(run: Run) -> None:
        await person.is_asked.wait()
        assert not made.exists()
        person.answer.set_result(allow("person", "Yes."))

    heard = await stage.play("make it", decide)
    assert made.exists()
    assert [answer.is_error for answer in answers(heard)] == [False]
    assert len(person.asked) == 1


async def test_what_is_denied_does_not_run_and_the_model_reads_why(
    stage: Stage, person: Person, model: ScriptedModel
) -> None:
    made = stage.vault / "made"
    model.script("try it", [calls("Bash", command=f"touch {made}"), say("Then not.")])
    person.answer.set_result(deny("person", "Not on a Sunday."))
    heard = await stage.play("try it")
    assert not made.exists()
    (answer,) = answers(heard)
    assert (answer.is_error, "Not on a Sunday." in answer.content) == (True, True)


async def test_an_answer_reaches_the_model(stage: Stage, person: Person, model: ScriptedModel) -> None:
    model.script("ask me", [calls("AskUserQuestion", **QUESTION), say("Conference it is.")])
    person.answer.set_result(allow("person", "Answered."))
    heard = await stage.play("ask me")
    (answer,) = answers(heard)
    assert not answer.is_error
    assert "Conference" in answer.content


async def test_two_calls_at_once_are_each_answered(
    stage: Stage, person: Person, model: ScriptedModel
) -> None:
    made = [stage.vault / name for name in ("one", "two")]
    both = Reply(tuple(ToolUse("Bash", {"command": f"touch {path}"}) for path in made))
    model.script("make two", [both, say("Both.")])
    person.answer.set_result(allow("person", "Yes."))
    heard = await stage.play("make two")
    assert [path.exists() for path in made] == [True, True]
    assert [answer.is_error for answer in answers(heard)] == [False, False]
    assert len(person.asked) == 2


async def test_interrupted_while_it_asks_it_ends_and_nothing_ran(
    stage: Stage, person: Person, model: ScriptedModel
) -> None:
    made = stage.vault / "made"
    model.script("wait for it", [calls("Bash", command=f"touch {made}"), say("Made.")])

    async def interrupt(run: Run) -> None:
        await person.is_asked.wait()
        await run.interrupt()

    heard = await stage.play("wait for it", interrupt)
    assert isinstance(heard[-1], Ended)
    assert heard[-1].interrupted
    assert not made.exists()
    assert person.answer.cancelled()

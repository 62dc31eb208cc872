"""The news that a turn is over: told after commit, to everybody, and again until all have taken it."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from agents_app.runtimes.scripted import Fail, Say
from agents_app.signals import turn_finished
from agents_app.turns.running import announcing
from sessions_app.models import Turn
from sessions_app.threads import in_thread
from tests.agents_app.engine import Engine, turn_of

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

Hear = Callable[..., None]


@pytest.fixture
def heard() -> Iterator[list[str]]:
    statuses: list[str] = []

    def hear(turn: Turn, **_: Any) -> None:
        statuses.append(turn.status)
        if len(statuses) == 1 and turn.session.title == "deaf at first":
            raise ValueError("it was not taken")

    turn_finished.connect(hear)
    yield statuses
    turn_finished.disconnect(hear)


@pytest.mark.parametrize(("steps", "status"), [([Say("ok")], "done"), ([Fail("overloaded")], "failed")])
async def test_each_end_is_told_once(engine: Engine, heard: list[str], steps: list[Any], status: str) -> None:
    engine.runtime.scripts["hi"] = steps
    opened = await engine.say("hi")
    await engine.run(opened)
    assert (heard, await in_thread(announcing.sweep)()) == ([status], 0)
    assert (await turn_of(opened)).announced_at is not None


async def test_one_that_is_stopped_while_it_waits_is_told_too(engine: Engine, heard: list[str]) -> None:
    await engine.abort(await engine.say("hi"))
    assert heard == ["aborted"]


async def test_what_a_receiver_did_not_take_is_told_again(
    engine: Engine, heard: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(announcing, "AGAIN_AFTER", timedelta())
    opened = await engine.say("deaf at first")
    await engine.run(opened)
    assert (await turn_of(opened)).announced_at is None
    assert [await in_thread(announcing.sweep)() for _ in range(2)] == [1, 0]
    assert heard == ["done", "done"]
    assert "it was not taken" in caplog.text

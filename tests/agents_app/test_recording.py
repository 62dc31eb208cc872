"""What a run does becomes rows, in an order that people can read."""

import asyncio

import pytest

from agents_app.runtimes.events import Used
from agents_app.turns.held.claim import claim
from agents_app.turns.held.holder import Holder
from agents_app.turns.running import recorder as recording
from agents_app.turns.running.recorder import Recorder
from sessions_app.threads import in_thread
from tests.agents_app.engine import Engine, events

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_tool_is_told_of_before_anybody_is_asked_about_it(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "TOLD_WITHIN", 60.0)
    opened = await engine.say("hi")
    taken = await in_thread(claim)(opened.session_id, Holder("w"))
    assert taken
    turn, hold = taken
    recorder = Recorder(opened.session_id, hold, last_seq=turn.session.last_seq)
    asking = asyncio.create_task(recorder.told_of("toolu_1"))
    await recorder.used(Used("toolu_2", "Read", {}))
    await asyncio.sleep(0)
    assert not asking.done(), "that was another"
    await recorder.used(Used("toolu_1", "Write", {}))
    async with asyncio.timeout(10):
        await asking
    assert (await events(opened))[-1].payload["tool"]["id"] == "toolu_1"
    monkeypatch.setattr(recording, "TOLD_WITHIN", 0.01)
    await recorder.told_of("of which no run tells")

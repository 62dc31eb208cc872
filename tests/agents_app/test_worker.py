"""A worker: one loop in which its turns run, that ends by giving back what it cannot finish."""

import asyncio
import resource
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from agents_app.model import chosen
from agents_app.model.chosen import Typed
from agents_app.model.endpoint import ModelEndpoint
from agents_app.runtimes.scripted import Pause, ScriptedRuntime
from agents_app.turns.held.claim import claim
from agents_app.turns.held.holder import Holder
from agents_app.turns.said.opening import Opened, Opening, open_turn
from agents_app.workers import living
from agents_app.workers.turn_worker import MOST_FILES, TurnWorker
from sessions_app.access.caller import Caller
from sessions_app.models import Turn

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rings"),
]

PATIENCE = 20


@pytest.fixture
def worker(settings: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TurnWorker]:
    Path(settings.PARACHUTE_RUN).mkdir(parents=True, exist_ok=True)
    worker = TurnWorker("w@here")
    worker.start()
    yield worker
    worker.close()


def test_as_many_files_may_be_open_as_the_user_may_have(request: pytest.FixtureRequest) -> None:
    """Each repository of a vault takes one; most systems say 1,024 at first."""
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1_000, most))
    try:
        request.getfixturevalue("worker")
        now = resource.getrlimit(resource.RLIMIT_NOFILE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))
    assert now == (MOST_FILES if most == resource.RLIM_INFINITY else min(most, MOST_FILES), most)


@pytest.fixture
def opened(as_ada: Caller) -> Opened:
    return open_turn(as_ada, Opening("hi"))


def status(opened: Opened) -> str:
    return str(Turn.objects.get(pk=opened.turn_id).status)


def test_it_runs_what_it_is_rung_for_and_lives(
    worker: TurnWorker, opened: Opened, scripted: ScriptedRuntime
) -> None:
    worker.serve(opened.session_id)
    assert status(opened) == "done"
    assert living.count("turns") == 1


def test_it_takes_back_at_its_start_what_its_last_life_held(
    opened: Opened, scripted: ScriptedRuntime, settings: Any
) -> None:
    claim(opened.session_id, Holder("w@here"))
    Path(settings.PARACHUTE_RUN).mkdir(parents=True, exist_ok=True)
    again = TurnWorker("w@here")
    again.start()
    assert status(opened) == "queued"
    again.close()


@pytest.mark.database
def test_told_to_stop_it_puts_back_what_outlives_the_grace_and_claims_nothing_more(
    worker: TurnWorker, as_ada: Caller, opened: Opened, scripted: ScriptedRuntime
) -> None:
    reached = threading.Event()  # seen from this thread, and set in the worker's
    scripted.scripts["hi"] = [Pause(cast(asyncio.Event, reached), asyncio.Event(), deaf=True)]
    other = open_turn(as_ada, Opening("ho"))
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(worker.serve, opened.session_id)
        assert reached.wait(PATIENCE)
        worker.drain(0)
        running.result(PATIENCE)
    worker.serve(other.session_id)
    assert [status(each) for each in (opened, other)] == ["queued", "queued"]
    assert scripted.open_runs == 0


@pytest.mark.database
def test_told_to_stop_it_lets_a_turn_end_within_the_grace(
    worker: TurnWorker, as_ada: Caller, opened: Opened, scripted: ScriptedRuntime
) -> None:
    reached, go_on = threading.Event(), asyncio.Event()
    scripted.scripts["hi"] = [Pause(cast(asyncio.Event, reached), go_on)]
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(worker.serve, opened.session_id)
        assert reached.wait(PATIENCE)
        next_one = open_turn(as_ada, Opening("and now?", opened.session_id))
        worker.drain(PATIENCE)
        worker._loop.call_soon_threadsafe(go_on.set)
        running.result(PATIENCE)
    assert [status(each) for each in (opened, next_one)] == ["done", "queued"]


def test_a_key_that_was_entered_counts_for_the_next_turn_and_for_one_that_runs(
    worker: TurnWorker,
    as_ada: Caller,
    opened: Opened,
    scripted: ScriptedRuntime,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chosen, "check", lambda endpoint, kind: "")
    assert worker._door.upstream.is_demo
    chosen.save(as_ada, Typed("sk-ant-the-first"))
    worker.serve(opened.session_id)
    assert worker._door.upstream.header == ("x-api-key", "sk-ant-the-first")
    reached, go_on, led = threading.Event(), asyncio.Event(), threading.Event()
    scripted.scripts["and now?"] = [Pause(cast(asyncio.Event, reached), go_on)]
    lead_to = worker._door.lead_to

    async def watched(upstream: ModelEndpoint) -> None:
        await lead_to(upstream)
        if upstream.is_demo:
            led.set()

    next_one = open_turn(as_ada, Opening("and now?", opened.session_id))
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(worker.serve, next_one.session_id)
        assert reached.wait(PATIENCE)
        monkeypatch.setattr(worker._door, "lead_to", watched)
        chosen.remove(as_ada)
        assert led.wait(PATIENCE)
        worker._loop.call_soon_threadsafe(go_on.set)
        running.result(PATIENCE)
    assert worker._door.upstream.is_demo


def test_closed_it_is_gone(worker: TurnWorker) -> None:
    worker.close()
    assert living.count("turns") == 0

"""The thread in which the curator runs, with the scripted runtime in place of the CLI."""

import asyncio
import threading
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from agents_app.model import chosen
from curator_app import services, serving
from curator_app.models import CuratorRun, RunStatus
from curator_app.observing import observe
from curator_app.worker import CuratorWorker
from sessions_app.models import EventType, SessionEvent
from tests.agents_app.engine import Engine, pause

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

PATIENCE = 20


@pytest.fixture(autouse=True)
def sockets(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.PARACHUTE_RUN = tmp_path
    monkeypatch.setattr(serving, "BREATH", 0.0)
    monkeypatch.setattr(serving, "LOOKS_EVERY", 0.01)


@pytest.fixture
async def session_id(engine: Engine) -> UUID:
    opened = await engine.say("When do quinces ripen?")
    await engine.run(opened)
    return opened.session_id


async def status() -> str:
    run: CuratorRun = await CuratorRun.objects.order_by("created_at").afirst()  # type: ignore[assignment]
    return run.status


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a run is over."""
    seen = threading.Event()

    async def look(*given: Any) -> None:
        await observe(*given)
        seen.set()

    monkeypatch.setattr(serving, "observe", look)
    return seen


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "curator"]


async def test_nothing_is_begun_before_it_is_rung_for_and_then_what_waits_is_looked_at(
    session_id: UUID, looked: threading.Event
) -> None:
    worker = CuratorWorker("w")
    assert threads() == []
    for _ in range(2):
        worker.ring()
    assert await asyncio.to_thread(looked.wait, PATIENCE)
    await asyncio.to_thread(worker.close)
    assert await status() == RunStatus.DONE
    told = SessionEvent.objects.filter(type=EventType.SESSION_UPDATED, payload__has_key="curatorLastRun")
    assert await told.acount() == 1
    worker.ring()
    assert threads() == []  # it is closed


async def test_what_it_looks_at_waits_again_when_it_is_closed(engine: Engine, session_id: UUID) -> None:
    at = pause()
    reached = threading.Event()
    at.reached.set = reached.set  # type: ignore[method-assign]  # it is reached in another loop
    engine.runtime.scripts = {"Exchange number: 1": [at]}
    worker = CuratorWorker("w")
    worker.ring()
    assert await asyncio.to_thread(reached.wait, PATIENCE)
    assert await status() == RunStatus.RUNNING
    await asyncio.to_thread(worker.close)
    assert await status() == RunStatus.QUEUED


async def test_one_that_could_not_begin_begins_with_the_next_ring(
    session_id: UUID, looked: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = CuratorWorker("w")
    with monkeypatch.context() as broken:
        broken.setattr(chosen, "current", lambda: 1 / 0)
        worker.ring()
        for thread in threads():
            await asyncio.to_thread(thread.join, PATIENCE)
    assert await status() == RunStatus.QUEUED
    worker.ring()
    assert await asyncio.to_thread(looked.wait, PATIENCE)
    await asyncio.to_thread(worker.close)
    assert await status() == RunStatus.DONE


@pytest.mark.parametrize("patience", ["that lasts", "that ends"])
async def test_chats_go_first_for_a_while(
    patience: str,
    engine: Engine,
    session_id: UUID,
    looked: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = threading.Event()
    is_busy = services.is_busy

    def ask() -> bool:
        answer = is_busy()
        asked.set()
        return answer

    monkeypatch.setattr(services, "is_busy", ask)
    if patience == "that ends":
        monkeypatch.setattr(serving, "MOST_PATIENCE", 0.0)
    at = pause()
    engine.runtime.scripts = {"hello": [at]}
    opened = await engine.say("hello")
    worker = CuratorWorker("w")
    async with engine.paused(opened, at):
        worker.ring()
        if patience == "that lasts":
            assert await asyncio.to_thread(asked.wait, PATIENCE)
            assert await status() == RunStatus.QUEUED
        else:
            assert await asyncio.to_thread(looked.wait, PATIENCE)
        at.go_on.set()
    assert await asyncio.to_thread(looked.wait, PATIENCE)
    await asyncio.to_thread(worker.close)

"""A session is deleted while its worker is at any step: nothing of it is left, and nobody complains."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from agents_app.runtimes.scripted import Begin, Say, ScriptedRuntime, Use
from agents_app.turns.held import claim as claiming
from agents_app.turns.held import leases
from agents_app.turns.held.claim import claim
from agents_app.turns.held.holder import Holder
from agents_app.turns.held.ringing import own_queue
from agents_app.turns.running import finish
from agents_app.turns.running import run as running
from agents_app.turns.running.run import run_waiting_turns
from agents_app.turns.said.deleting import delete
from agents_app.turns.said.opening import Opened, Opening, open_turn
from agents_app.turns.said.steering import inject
from agents_app.workers import living
from sessions_app import services
from sessions_app.access.caller import Caller
from sessions_app.access.services import caller_of_user
from sessions_app.errors import Forbidden, NotFound
from sessions_app.history import transcripts
from sessions_app.models import Message, Session, SessionEvent, Turn
from sessions_app.threads import in_thread
from tests.agents_app.conftest import Rings
from tests.agents_app.engine import Engine, pause
from tests.sharing import share

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

Check = Callable[[Opened], None]


@pytest.fixture
def nothing_is_left(vault: Path, caplog: pytest.LogCaptureFixture) -> Check:
    def check(opened: Opened) -> None:
        for model in (Session, Turn, Message, SessionEvent):
            assert not model.objects.exists()
        assert not transcripts.config_folder(opened.session_id).exists()
        assert transcripts.published(opened.session_id, vault) is None
        assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []

    return check


async def deleted(engine: Engine, opened: Opened) -> None:
    await in_thread(delete)(engine.caller, opened.session_id)


@pytest.mark.parametrize("deaf", [False, True])
async def test_while_the_agent_speaks(deaf: bool, engine: Engine, nothing_is_left: Check) -> None:
    at = pause(deaf=deaf)
    engine.runtime.scripts["story"] = [Say("Once."), Begin("There was"), at, Say("a pear tree.")]
    opened = await engine.say("a story")
    await engine.say("another", session_id=opened.session_id)
    async with engine.paused(opened, at):
        await deleted(engine, opened)
    assert engine.runtime.open_runs == 0
    await in_thread(nothing_is_left)(opened)


async def test_while_a_tool_runs_and_more_was_said(engine: Engine, nothing_is_left: Check) -> None:
    at = pause()
    engine.runtime.scripts["look"] = [Use("Read", {"file_path": "Welcome.md"}, at=at)]
    opened = await engine.say("look")
    async with engine.paused(opened, at):
        await in_thread(inject)(engine.caller, opened.session_id, "and more")
        await deleted(engine, opened)
    await in_thread(nothing_is_left)(opened)


async def test_after_its_turn(engine: Engine, vault: Path, nothing_is_left: Check) -> None:
    opened = await engine.say("hi")
    await engine.run(opened)
    assert transcripts.published(opened.session_id, vault)
    await deleted(engine, opened)
    await in_thread(nothing_is_left)(opened)


async def test_before_its_turn(engine: Engine, nothing_is_left: Check) -> None:
    opened = await engine.say("hi")
    await deleted(engine, opened)
    await engine.run(opened)
    assert engine.runtime.requests == []
    await in_thread(nothing_is_left)(opened)


@pytest.mark.parametrize(
    ("module", "step", "before"),
    [
        (claiming, "Hold", True),
        (running, "prepare", True),
        (running, "prepare", False),
        (finish, "done", True),
        (finish, "done", False),
        (running, "_publish", True),
        (running, "_publish", False),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
async def test_between_two_steps_of_its_worker(
    module: Any,
    step: str,
    before: bool,
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    nothing_is_left: Check,
) -> None:
    opened = await engine.say("hi")
    inner, times = getattr(module, step), 0

    def with_a_deletion(*args: Any, **kwargs: Any) -> Any:
        nonlocal times
        times += 1
        if before:
            delete(engine.caller, opened.session_id)
        done = inner(*args, **kwargs)
        if not before:
            delete(engine.caller, opened.session_id)
        return done

    monkeypatch.setattr(module, step, with_a_deletion)
    await engine.run(opened)
    assert times == 1
    await in_thread(nothing_is_left)(opened)


async def test_when_its_turn_was_just_claimed(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, nothing_is_left: Check
) -> None:
    opened = await engine.say("hi")
    monkeypatch.setattr(
        claiming,
        "_wake",
        lambda session_id: transaction.on_commit(lambda: delete(engine.caller, session_id)),
    )
    await engine.run(opened)
    assert engine.runtime.requests == []
    await in_thread(nothing_is_left)(opened)


async def test_a_turn_that_is_opened_meanwhile_is_deleted_too(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, nothing_is_left: Check
) -> None:
    """Between the locks of its turns and that of the session."""
    opened = await engine.say("hi")
    inner, tries = services.locked, 0

    def slow(caller: Caller, session_id: UUID) -> Session:
        nonlocal tries
        tries += 1
        if tries == 1:
            turn = Turn.objects.get()
            Turn.objects.create(session_id=session_id, opened_seq=turn.opened_seq + 100)
        return inner(caller, session_id)

    monkeypatch.setattr("sessions_app.services.locked", slow)
    await deleted(engine, opened)
    assert tries == 2
    await in_thread(nothing_is_left)(opened)


def test_a_lost_turn_of_a_deleted_session_is_not_taken_back(as_ada: Caller, rings: Rings) -> None:
    opened = _claimed(as_ada)
    (lost,) = Turn.objects.active().select_related("session")
    delete(as_ada, opened.session_id)
    assert not leases._taken_back(lost)


def _claimed(caller: Caller) -> Opened:
    opened = open_turn(caller, Opening("hi"))
    assert claim(opened.session_id, Holder("w"))
    return opened


async def test_the_worker_that_keeps_an_agent_warm_lets_go_of_it(
    engine: Engine, rings: Rings, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = await engine.say("hi")
    await engine.run(opened)
    holder = Holder("warm@here")
    await in_thread(living.say_alive)(holder.name, holder.boot, "turns")
    await Session.objects.aupdate(warm_on=holder.name)
    await deleted(engine, opened)
    assert (rings[-1], rings.queues[-1]) == (opened.session_id, own_queue(holder.name))
    forgotten: list[UUID] = []

    async def forget(runtime: ScriptedRuntime, session_id: UUID) -> None:
        forgotten.append(session_id)

    monkeypatch.setattr(ScriptedRuntime, "forget", forget)
    await run_waiting_turns(rings[-1], holder, engine.runtime)
    assert forgotten == [opened.session_id]


def test_who_may_only_read_deletes_nothing(as_ada: Caller, as_cy: Caller, vi: User, rings: Rings) -> None:
    opened = _claimed(as_ada)
    share(opened.session_id)
    for caller, refusal in ((caller_of_user(vi), Forbidden), (as_cy, NotFound)):
        with pytest.raises(refusal):
            delete(caller, opened.session_id)
    assert Session.objects.exists()

"""How a turn ends that does not come to its end, and what is told of it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError
from django.utils import timezone

from agents_app.runtimes.base import RunRequest, Waits
from agents_app.runtimes.scripted import Begin, Break, Fail, Say, ScriptedRuntime, Stop
from agents_app.turns.held import leases
from agents_app.turns.held.holder import Holder
from agents_app.turns.running import finish, watching
from agents_app.turns.running import run as running
from agents_app.turns.running.run import run_waiting_turns
from permissions_app.gate import Gate
from sessions_app.access.models import TrustLevel, Workspace
from sessions_app.models import Session, SessionKind, SessionStatus, Turn, TurnStatus
from sessions_app.threads import in_thread
from tests.agents_app.engine import Engine, events, has_no_gaps, last_words, pause, turn_of, types

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_failure_of_the_agent_is_a_typed_error(engine: Engine) -> None:
    engine.runtime.scripts["hi"] = [Say("One moment."), Begin("I am ab"), Fail("rate_limited", "Slow down.")]
    written = await engine.answer("hi")
    assert [e.payload["content"] for e in written if e.type == "text"] == ["One moment.", "I am ab"]
    assert written[-1].type == "typed_error"
    assert last_words(written) == {
        "code": "rate_limited",
        "title": "Too many requests",
        "message": "Slow down. Wait a little, then send it again.",
        "actions": [{"key": "r", "label": "Send again", "action": "retry"}],
        "canRetry": True,
        "retryDelayMs": None,
    }


async def test_a_message_that_waited_does_not_run_above_what_the_workspace_allows_by_now(
    engine: Engine,
) -> None:
    opened = await engine.say("hi")
    await Workspace.objects.aupdate(trust_floor=TrustLevel.SANDBOXED)
    await engine.run(opened)
    end = last_words(await events(opened))
    assert (end["code"], end["canRetry"]) == ("trust_too_high", False)
    assert "Read-only box" in end["message"]
    assert engine.runtime.requests == []


async def test_the_turn_is_failed_and_a_chat_goes_on(engine: Engine) -> None:
    engine.runtime.scripts["hi"] = [Fail("overloaded")]
    opened = await engine.say("hi")
    await engine.run(opened)
    turn, session = await turn_of(opened), await Session.objects.aget()
    assert (turn.status, turn.error_code, session.status) == ("failed", "overloaded", SessionStatus.RUNNING)
    assert types(await engine.answer("ho", session_id=opened.session_id))[-1] == "done"


@pytest.mark.parametrize("kind", ["child", "scheduled"])
async def test_a_child_or_a_scheduled_session_fails_with_its_turn(engine: Engine, kind: str) -> None:
    parent, opened = await engine.say("hi"), await engine.say("fail")
    made = {"parent_id": parent.session_id} if kind == "child" else {"kind": SessionKind.SCHEDULED}
    await Session.objects.filter(pk=opened.session_id).aupdate(**made)
    engine.runtime.scripts["fail"] = [Fail("overloaded")]
    await engine.run(opened)
    session = await Session.objects.aget(pk=opened.session_id)
    assert session.status == SessionStatus.FAILED
    newest = await session.events.order_by("seq").alast()
    assert newest is not None
    assert newest.payload == {"status": "failed"}


async def test_what_nobody_foresaw_has_an_incident_and_tells_no_secret(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    engine.runtime.scripts["hi"] = [Break()]
    written = await engine.answer("hi")
    end = last_words(written)
    assert written[-1].type == "error"
    assert set(end) == {"error", "incidentId"}
    assert end["incidentId"] in end["error"]
    assert not [word for word in ("sk-ant", "Zero", "Traceback") if word in str(end)]
    assert f"incident {end['incidentId']}" in caplog.text
    assert "ZeroDivisionError" in caplog.text


async def test_an_agent_that_stops_by_itself_has_not_answered(engine: Engine) -> None:
    engine.runtime.scripts["hi"] = [Begin("I am ab"), Stop()]
    written = await engine.answer("hi")
    assert last_words(written)["code"] == "cli_crashed"
    assert written[-2].payload["content"] == "I am ab"


async def test_an_agent_that_is_cancelled_from_within_was_not_aborted(engine: Engine) -> None:
    engine.runtime = Around(engine.runtime, opens=cancels)
    assert last_words(await engine.answer("hi"))["code"] == "cli_crashed"


async def test_an_answer_stands_although_the_runtime_does_not_close(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "CLOSES_WITHIN", 0.01)
    never = pause(deaf=True)
    engine.runtime = Around(engine.runtime, closes=never.go_on.wait)
    assert last_words(await engine.answer("hi"))["response"] == "ok"


async def test_what_fails_while_the_runtime_closes_fails_the_turn(engine: Engine) -> None:
    engine.runtime = Around(engine.runtime, closes=breaks)
    assert types(await engine.answer("hi"))[-1] == "error"


@pytest.mark.parametrize("write", ["done", "failed"])
async def test_a_turn_whose_end_cannot_be_written_is_run_again_when_its_lease_is_over(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    engine.runtime.scripts["failed"] = [Fail("overloaded")]
    opened, holder = await engine.say(write), Holder("w")
    with monkeypatch.context() as broken:
        broken.setattr(finish, write, unwritable)
        await engine.run(opened, holder)
    assert (await turn_of(opened)).status == TurnStatus.RUNNING
    assert await in_thread(leases.renew)(holder) == 0
    await Turn.objects.aupdate(leased_at=timezone.now() - leases.LEASE_ENDS * 2)
    assert await in_thread(leases.sweep)() == 1
    engine.runtime.scripts.clear()
    await engine.run(opened)
    assert last_words(await events(opened))["response"] == "ok"
    assert await has_no_gaps(opened.session_id)


async def test_a_row_that_cannot_be_written_ends_the_turn_visibly(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = pause()
    engine.runtime.scripts["hi"] = [at, Say("Hello.")]
    opened = await engine.say("hi")
    with monkeypatch.context() as broken:
        async with engine.paused(opened, at):
            broken.setattr("agents_app.turns.running.recorder.record_all", unwritable)
            at.go_on.set()
            while engine.runtime.open_runs:
                await next_moment()
            broken.undo()
    assert types(await events(opened))[-1] == "error"


async def test_a_database_that_is_away_for_a_look_stops_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LOOKS_EVERY", 0.01)
    look, looks = watching.TurnWatch.look, iter([DatabaseError("away"), DatabaseError("still")])

    def sometimes(watch: watching.TurnWatch) -> watching.Look:
        for failure in looks:
            raise failure
        return look(watch)

    monkeypatch.setattr(watching.TurnWatch, "look", sometimes)
    at = pause()
    engine.runtime.scripts["hi"] = [at]
    opened = await engine.say("hi")
    async with engine.paused(opened, at):
        await engine.abort(opened)
    assert types(await events(opened))[-1] == "aborted"


class TestTheDeadline:
    """An hour, since its work began for the first time."""

    @pytest.fixture(autouse=True)
    def looks(self, monkeypatch: pytest.MonkeyPatch) -> list[watching.Look]:
        """What the watcher saw."""
        seen: list[watching.Look] = []
        look = watching.TurnWatch.look

        def noted(watch: watching.TurnWatch) -> watching.Look:
            seen.append(look(watch))
            return seen[-1]

        monkeypatch.setattr(watching.TurnWatch, "look", noted)
        monkeypatch.setattr(watching, "LOOKS_EVERY", 0.01)
        monkeypatch.setattr(watching, "INTERRUPT_GRACE", 0.01)
        return seen

    @pytest.mark.parametrize("deaf", [False, True])
    async def test_ends_the_turn_with_what_it_had_said(self, engine: Engine, deaf: bool) -> None:
        at = pause(deaf=deaf)
        engine.runtime.scripts["hi"] = [Say("Once."), Begin("There was"), at]
        opened = await engine.say("hi")
        async with engine.paused(opened, at):
            await began(ago=watching.DEADLINE)
        written = await events(opened)
        assert [e.payload["content"] for e in written if e.type == "text"] == ["Once.", "There was"]
        assert (last_words(written)["code"], written[-1].type) == ("deadline_exceeded", "typed_error")
        assert (await turn_of(opened)).error_code == "deadline_exceeded"

    @pytest.mark.parametrize(
        ("kind", "ago"),
        [(SessionKind.WORKER, timedelta(minutes=59)), (SessionKind.ORCHESTRATOR, timedelta(days=6))],
    )
    async def test_is_not_over_before_and_is_none_for_an_orchestrator(
        self, engine: Engine, looks: list[watching.Look], kind: SessionKind, ago: timedelta
    ) -> None:
        at = pause()
        engine.runtime.scripts["hi"] = [at]
        opened = await engine.say("hi")
        await Session.objects.aupdate(kind=kind)
        async with engine.paused(opened, at):
            await began(ago=ago)
            looks.clear()
            while len(looks) < 2:
                await next_moment()
            at.go_on.set()
        assert types(await events(opened))[-1] == "done"

    async def test_is_sooner_where_the_file_of_its_agent_says_so(self, engine: Engine, vault: Path) -> None:
        (vault / "Agents").mkdir()
        (vault / "Agents/gardener.md").write_text("---\nname: Gardener\ntimeout_seconds: 90\n---\n")
        at = pause()
        engine.runtime.scripts["hi"] = [at]
        opened = await engine.say("hi", agent="gardener")
        async with engine.paused(opened, at):
            await began(ago=timedelta(seconds=90))
        told = last_words(await events(opened))
        assert (told["code"], told["message"].partition(".")[0]) == (
            "deadline_exceeded",
            "It ran for 90 seconds and was stopped",
        )

    async def test_does_not_begin_anew_with_another_worker(self, engine: Engine) -> None:
        at = pause()
        engine.runtime.scripts["hi"] = [at]
        opened = await engine.say("hi")
        async with engine.paused(opened, at) as working:
            working.cancel()
        await began(ago=watching.DEADLINE)
        engine.runtime.scripts["interrupted"] = [pause()]
        await engine.run(opened)
        assert last_words(await events(opened))["code"] == "deadline_exceeded"

    async def test_leaves_what_was_stopped_stopped(self, engine: Engine) -> None:
        at = pause(deaf=True)
        engine.runtime.scripts["hi"] = [at]
        opened = await engine.say("hi")
        async with engine.paused(opened, at):
            stopped = timezone.now()
            late = stopped - watching.DEADLINE
            await Turn.objects.aupdate(started_at=late, abort_requested_at=stopped)
        assert types(await events(opened))[-1] == "aborted"


async def began(*, ago: timedelta) -> None:
    await Turn.objects.aupdate(started_at=timezone.now() - ago)


async def test_what_fails_for_one_session_leaves_the_worker_free_for_the_next(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    engine.runtime.scripts["one"] = [Break()]
    first = await engine.say("one")
    await engine.say("two", session_id=first.session_id)
    await run_waiting_turns(first.session_id, Holder("w"), engine.runtime)
    assert [request.text for request in engine.runtime.requests] == ["one", "two"]


class Around(ScriptedRuntime):
    """The scripted runtime, with something that happens before it opens, or as it closes."""

    def __init__(self, inner: ScriptedRuntime, opens: Any = None, closes: Any = None) -> None:
        super().__init__()
        self._inner, self._opens, self._closes = inner, opens, closes

    @asynccontextmanager
    async def open(self, request: RunRequest, gate: Gate, waits: Waits) -> AsyncIterator[Any]:
        if self._opens:
            await self._opens()
        async with self._inner.open(request, gate, waits) as run:
            yield run
        if self._closes:
            await self._closes()


async def cancels() -> None:
    raise asyncio.CancelledError


async def breaks() -> None:
    raise RuntimeError("it does not close")


async def next_moment() -> None:
    await asyncio.sleep(0)


def unwritable(*_: object, **__: object) -> None:
    raise DatabaseError("the disk is full")

"""Stopping a turn, wherever it stands."""

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from agents_app.runtimes.scripted import Begin, Fail, Say, Use
from agents_app.turns.held import leases
from agents_app.turns.held.claim import claim
from agents_app.turns.held.holder import Holder
from agents_app.turns.running import prepare as preparing
from agents_app.turns.running import run as running
from agents_app.turns.running import watching
from agents_app.turns.said.abort import abort
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.access.services import caller_of_user
from sessions_app.errors import Forbidden, NotFound
from sessions_app.models import EventType, Turn, TurnStatus
from sessions_app.streaming import bus
from sessions_app.streaming.log import record
from sessions_app.threads import in_thread
from tests.agents_app.engine import PATIENCE, Engine, events, last_words, pause, turn_of, types
from tests.sharing import share

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]


async def test_a_turn_that_waits_is_stopped_at_once_and_never_runs(engine: Engine) -> None:
    first = await engine.say("one")
    second = await engine.say("two", session_id=first.session_id)
    await engine.abort(first)
    await engine.run(first)
    assert types(await events(first)) == ["session", "user_message", "aborted"]
    assert types(await events(second))[-1] == "done"
    assert [request.text for request in engine.runtime.requests] == ["two"]


async def test_in_mid_text_what_was_said_is_kept(engine: Engine) -> None:
    at = pause()
    engine.runtime.scripts["story"] = [Say("Once."), Begin("There was a pear"), at, Say("tree.")]
    opened = await engine.say("a story")
    async with engine.paused(opened, at):
        await engine.abort(opened)
    written = await events(opened)
    assert [e.payload["content"] for e in written if e.type == "text"] == ["Once.", "There was a pear"]
    end = last_words(written)
    assert end["partialResponse"] == "Once.\n\nThere was a pear"
    stopped_at = (await turn_of(opened)).abort_requested_at
    assert stopped_at and parse_datetime(end["stoppedAt"]) == stopped_at
    assert end["abortedBy"] == engine.caller.name
    assert (await turn_of(opened)).status == TurnStatus.ABORTED


async def test_what_is_queued_behind_goes_on(engine: Engine) -> None:
    at = pause()
    engine.runtime.scripts["one"] = [at]
    first = await engine.say("one")
    second = await engine.say("two", session_id=first.session_id)
    async with engine.paused(first, at):
        await engine.abort(first)
    assert types(await events(second))[-1] == "done"


async def test_the_named_turn_is_stopped_and_the_others_are_not(engine: Engine) -> None:
    first = await engine.say("one")
    second = await engine.say("two", session_id=first.session_id)
    await in_thread(abort)(engine.caller, first.session_id, second.turn_id)
    await engine.run(first)
    assert [types(await events(each))[-1] for each in (first, second)] == ["done", "aborted"]


async def test_while_it_is_prepared(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = await engine.say("hi")
    prepare = preparing.prepare

    def aborted_meanwhile(turn: Turn, unresumable: str) -> preparing.Prepared:
        abort(engine.caller, opened.session_id)
        return prepare(turn, unresumable)

    monkeypatch.setattr(running, "prepare", aborted_meanwhile)
    engine.runtime.scripts["hi"] = [pause()]
    await engine.run(opened)
    assert last_words(await events(opened))["partialResponse"] == ""


async def test_an_agent_that_does_not_hear_it_is_ended(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "INTERRUPT_GRACE", 0.01)
    forever = pause(deaf=True)
    engine.runtime.scripts["hi"] = [forever]
    opened = await engine.say("hi")
    async with engine.paused(opened, forever):
        await engine.abort(opened)
    assert types(await events(opened))[-1] == "aborted"
    assert engine.runtime.open_runs == 0


async def test_without_the_ring_the_row_is_read(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "LOOKS_EVERY", 0.01)
    at = pause()
    engine.runtime.scripts["hi"] = [at]
    opened = await engine.say("hi")
    async with engine.paused(opened, at):
        await Turn.objects.aupdate(abort_requested_at=timezone.now(), aborted_by="somebody")
    assert last_words(await events(opened))["abortedBy"] == "somebody"


async def test_a_watcher_that_fails_watches_again(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "LOOKS_EVERY", 0.01)
    failures = iter([RuntimeError("the bus is a pumpkin"), RuntimeError("still")])
    subscribe = bus.current().subscribe

    def sometimes(topic: str) -> Any:
        for failure in failures:
            raise failure
        return subscribe(topic)

    monkeypatch.setattr(bus.current(), "subscribe", sometimes)
    at = pause()
    engine.runtime.scripts["hi"] = [at]
    opened = await engine.say("hi")
    async with engine.paused(opened, at):
        await engine.abort(opened)
    assert types(await events(opened))[-1] == "aborted"


async def test_a_failure_on_the_way_out_is_still_an_abort(engine: Engine) -> None:
    at = pause()
    engine.runtime.scripts["hi"] = [at, Fail("network_error")]
    opened = await engine.say("hi")
    async with engine.paused(opened, at):
        await Turn.objects.aupdate(abort_requested_at=timezone.now())
        at.go_on.set()
    assert types(await events(opened))[-1] == "aborted"


async def test_a_turn_whose_worker_is_dead_ends_with_what_it_had_said(engine: Engine) -> None:
    opened = await engine.say("hi")
    claimed = await in_thread(claim)(opened.session_id, Holder("dead"))
    assert claimed
    said = {"block": 0, "content": "Once."}
    await in_thread(record)(opened.session_id, EventType.TEXT, said, hold=claimed[1])
    await engine.abort(opened)
    await Turn.objects.aupdate(leased_at=timezone.now() - leases.LEASE_ENDS * 2)
    assert await in_thread(leases.sweep)() == 1
    assert last_words(await events(opened))["partialResponse"] == "Once."


async def test_a_turn_that_was_put_back_ends_with_what_it_had_said(engine: Engine) -> None:
    at = pause()
    engine.runtime.scripts["story"] = [Say("Once."), at]
    opened = await engine.say("a story")
    async with engine.paused(opened, at) as working:
        working.cancel()
    await engine.abort(opened)
    assert last_words(await events(opened))["partialResponse"] == "Once."


async def test_a_turn_that_is_put_back_after_it_was_stopped_ends(engine: Engine) -> None:
    deaf = pause(deaf=True)
    engine.runtime.scripts["hi"] = [deaf]
    opened = await engine.say("hi")
    async with engine.paused(opened, deaf) as working:
        await Turn.objects.aupdate(abort_requested_at=timezone.now(), aborted_by="somebody")
        working.cancel()
    assert last_words(await events(opened))["abortedBy"] == "somebody"


async def test_a_tool_that_would_start_after_the_loss_of_the_turn_does_not(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LOOKS_EVERY", PATIENCE)
    at, ran = pause(), iter(["it ran"])
    engine.runtime.scripts["hi"] = [at, Use("Bash", {"command": "true"}, does=lambda: next(ran))]
    opened = await engine.say("hi")
    async with engine.paused(opened, at):
        await Turn.objects.aupdate(attempt=7)
        at.go_on.set()
    assert list(ran) == ["it ran"], "it was taken, so the tool has run"
    assert not {"tool_use", "tool_result", "permission_denied"} & set(types(await events(opened)))


class TestWhoMay:
    async def test_a_viewer_is_told_that_she_may_not(self, engine: Engine, vi: User) -> None:
        opened = await engine.say("hi")
        await in_thread(share)(opened.session_id)
        with pytest.raises(Forbidden):
            await in_thread(abort)(caller_of_user(vi), opened.session_id)

    async def test_an_outsider_is_told_nothing(self, engine: Engine, as_cy: Caller) -> None:
        opened = await engine.say("hi")
        for session_id in (opened.session_id, uuid4()):
            with pytest.raises(NotFound):
                await in_thread(abort)(as_cy, session_id)
        assert (await turn_of(opened)).status == TurnStatus.QUEUED

    async def test_where_nothing_runs_or_waits_there_is_nothing_to_stop(self, engine: Engine) -> None:
        opened = await engine.say("hi")
        await engine.run(opened)
        for turn_id in (None, opened.turn_id):
            with pytest.raises(NotFound):
                await in_thread(abort)(engine.caller, opened.session_id, turn_id)

    async def test_a_turn_of_another_session_is_not_stopped_by_this_one(self, engine: Engine) -> None:
        mine, other = await engine.say("hi"), await engine.say("ho")
        with pytest.raises(NotFound):
            await in_thread(abort)(engine.caller, mine.session_id, other.turn_id)
        assert await Workspace.objects.acount() == 1

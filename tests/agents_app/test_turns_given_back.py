"""What happens to a turn whose worker ends, is lost, freezes, or is cancelled at a bad moment."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from agents_app.runtimes.scripted import Begin, Say, Use
from agents_app.turns.held import leases
from agents_app.turns.held.claim import claim
from agents_app.turns.held.holder import Holder
from agents_app.turns.running import finish, watching
from agents_app.turns.running import run as running
from agents_app.turns.running.prepare import prepare
from agents_app.turns.running.starting import INTERRUPTED, SHOWN
from agents_app.turns.said.opening import Opened
from agents_app.turns.said.steering import inject
from sessions_app.history import transcripts
from sessions_app.models import Message, Session, SessionEvent, SessionKind, TurnStatus
from sessions_app.threads import in_thread
from tests.agents_app.conftest import Rings
from tests.agents_app.engine import (
    Engine,
    events,
    expire,
    has_no_gaps,
    last_words,
    lose,
    message_of,
    pause,
    turn_of,
    types,
)

NOTE = f"{INTERRUPTED}\n\n{SHOWN}\n\n---\n\nThere"  # to `interrupted`, below

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]


class TestAWorkerThatStops:
    async def test_puts_its_turn_back_and_has_ended_its_agent(self, engine: Engine) -> None:
        at = pause()
        engine.runtime.scripts["hi"] = [at]
        opened = await engine.say("hi")
        async with engine.paused(opened, at) as working:
            working.cancel()
        turn = await turn_of(opened)
        assert (turn.status, turn.boot, turn.restarts) == (TurnStatus.QUEUED, None, 0)
        assert engine.runtime.open_runs == 0

    async def test_told_twice_puts_it_back_all_the_same(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        at = pause()
        engine.runtime.scripts["hi"] = [at]
        opened = await engine.say("hi")
        async with engine.paused(opened, at) as working:
            monkeypatch.setattr(finish, "put_back", after(working.cancel, finish.put_back))
            working.cancel()
        assert working.cancelled()
        assert (await turn_of(opened)).status == TurnStatus.QUEUED

    async def test_leaves_what_is_over_over(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        opened = await engine.say("hi")
        working = asyncio.create_task(engine.run(opened))
        monkeypatch.setattr(finish, "done", after(working.cancel, finish.done))
        await asyncio.wait({working})
        assert working.cancelled()
        assert last_words(await events(opened))["response"] == "ok"

    async def test_gives_back_what_it_had_only_claimed(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened = await engine.say("hi")
        working = asyncio.create_task(engine.run(opened))
        monkeypatch.setattr(running, "claim", after(working.cancel, claim))
        await asyncio.wait({working})
        assert (await turn_of(opened)).status == TurnStatus.QUEUED
        assert engine.runtime.requests == []

    async def test_puts_back_what_is_being_prepared(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened = await engine.say("hi")
        working = asyncio.create_task(engine.run(opened))
        monkeypatch.setattr(running, "prepare", after(working.cancel, prepare))
        await asyncio.wait({working})
        assert (await turn_of(opened)).status == TurnStatus.QUEUED

    async def test_has_its_turn_resumed_by_the_next(self, engine: Engine) -> None:
        at = pause()
        engine.runtime.scripts["story"] = [Say("Once."), at]
        opened = await engine.say("a story")
        async with engine.paused(opened, at) as working:
            working.cancel()
        engine.runtime.scripts["interrupted"] = [Say("There was a pear tree.")]
        await engine.run(opened, Holder("next"))
        assert [request.resume for request in engine.runtime.requests] == [False, True]
        assert last_words(await events(opened))["response"] == "There was a pear tree."


class TestAWorkerThatDrains:
    async def test_ends_the_turn_that_runs_and_leaves_the_next_to_others(
        self, engine: Engine, rings: Rings
    ) -> None:
        at, holder = pause(), Holder("w")
        engine.runtime.scripts["one"] = [at]
        first = await engine.say("one")
        second = await engine.say("two", session_id=first.session_id)
        async with engine.paused(first, at, holder):
            holder.is_draining = True
            rings.clear()
            at.go_on.set()
        assert [(await turn_of(each)).status for each in (first, second)] == ["done", "queued"]
        assert rings == [first.session_id]

    async def test_claims_nothing(self, engine: Engine) -> None:
        opened = await engine.say("hi")
        await engine.run(opened, Holder("w", is_draining=True))
        assert (await turn_of(opened)).attempt == 0


class TestAfterALoss:
    """The transcript decides how it is taken up again."""

    async def test_the_message_itself_is_said_where_the_model_never_got_it(self, engine: Engine) -> None:
        opened = await engine.say("hi")
        await lose(opened)
        await engine.run(opened)
        (request,) = engine.runtime.requests
        assert (request.text, request.resume) == ("hi", False)
        assert request.message_id == (await message_of(opened)).pk

    async def test_the_message_is_said_in_the_session_that_goes_on(self, engine: Engine) -> None:
        first = await engine.say("hi")
        await engine.run(first)
        second = await engine.say("and now?", session_id=first.session_id)
        await lose(second)
        await engine.run(second)
        assert [(r.text, r.resume) for r in engine.runtime.requests] == [("hi", False), ("and now?", True)]

    async def test_that_it_was_interrupted_is_said_where_the_model_had_it(self, engine: Engine) -> None:
        opened = await self.interrupted(engine)
        await engine.run(opened)
        note = await Message.objects.aget(source="platform")
        request = engine.runtime.requests[-1]
        assert (request.text, request.resume, request.message_id) == (NOTE, True, note.pk)

    @pytest.mark.parametrize("begun", [b"", b'{"type":"queue-operation"}\n', b'{"type":"us'])
    async def test_a_transcript_that_was_only_begun_is_none(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch, begun: bytes
    ) -> None:
        opened = await engine.say("hi")
        monkeypatch.setattr(transcripts, "raw", lambda session_id: begun)
        await engine.run(opened)
        assert [request.resume for request in engine.runtime.requests] == [False]

    async def test_both_are_said_where_the_transcript_came_too_late(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened = await self.interrupted(engine)
        monkeypatch.setattr(transcripts, "raw", lambda session_id: None)
        await engine.run(opened)
        request = engine.runtime.requests[-1]
        assert (request.text, request.resume) == (f"{NOTE}\n\n---\n\nlook", False)

    async def test_it_is_answered_once_and_the_tool_is_not_repeated(self, engine: Engine) -> None:
        opened = await self.interrupted(engine)
        engine.runtime.scripts["interrupted"] = [Say("There was one.")]
        await engine.run(opened)
        written = await events(opened)
        assert last_words(written)["response"] == "There was one."  # it began anew, so it is not said twice
        assert types(written).count("tool_use") == types(written).count("tool_result") == 1
        assert await has_no_gaps(opened.session_id)

    async def test_blocks_are_counted_on(self, engine: Engine) -> None:
        opened = await self.interrupted(engine)
        await engine.run(opened)
        assert [e.payload["block"] for e in await events(opened) if e.type == "text"] == [1, 2, 3]

    async def test_every_interruption_is_told_anew(self, engine: Engine) -> None:
        opened = await self.interrupted(engine)
        at = pause()
        engine.runtime.scripts["interrupted"] = [at]
        async with engine.paused(opened, at) as working:
            working.cancel()
        engine.runtime.scripts["interrupted"] = [Say("At last.")]
        await engine.run(opened)
        notes = [request.message_id for request in engine.runtime.requests[1:]]
        assert len(set(notes)) == 2
        assert last_words(await events(opened))["response"] == "There\n\nAt last."

    @staticmethod
    async def interrupted(engine: Engine) -> Opened:
        """In mid-turn, after a tool and half a text that was begun anew."""
        at = pause()
        look = Use("Read", {"file_path": "Welcome.md"})
        engine.runtime.scripts["look"] = [look, Begin("Hm"), Say("Let me see."), Begin("There"), at]
        opened = await engine.say("look")
        async with engine.paused(opened, at) as working:
            working.cancel()
        engine.runtime.scripts.clear()
        return opened


class TestAFrozenWorker:
    """It stands still until its turn is somebody else's, and then it thaws."""

    async def test_writes_nothing_more_and_ends_its_agent(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(watching, "LOOKS_EVERY", 3600)
        at, second = pause(), pause()
        engine.runtime.scripts["hi"] = [Begin("I was ab"), at, Say("about to say this.")]
        engine.runtime.scripts["interrupted"] = [second, Say("I am the other.")]
        opened, frozen = await engine.say("hi"), Holder("frozen")
        async with engine.paused(opened, at, frozen):
            await expire()
            assert await in_thread(leases.sweep)() == 1
            async with engine.paused(opened, second, Holder("other")):
                assert await in_thread(leases.renew)(frozen) == 0
                at.go_on.set()
                while engine.runtime.open_runs > 1:
                    await asyncio.sleep(0)
                second.go_on.set()
        written = await events(opened)
        said = ["I was ab", "I am the other."]
        assert [e.payload["content"] for e in written if e.type == "text"] == said
        assert last_words(written)["response"] == "\n\n".join(said)
        assert await has_no_gaps(opened.session_id)

    async def test_is_stopped_by_its_watcher_and_may_then_take_it_up_itself(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(watching, "LOOKS_EVERY", 0.01)
        at = pause(deaf=True)
        engine.runtime.scripts["pears"] = [at]
        opened = await engine.say("pears")
        async with engine.paused(opened, at):
            await expire()
            await in_thread(leases.sweep)()
        assert (await turn_of(opened)).attempt == 2
        assert [request.text for request in engine.runtime.requests] == ["pears", INTERRUPTED]
        assert last_words(await events(opened))["response"] == "ok"

    async def test_before_it_prepared_changes_nothing_of_what_the_other_was_told(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        at = pause()
        engine.runtime.scripts["look"] = [Use("Read", {"file_path": "Welcome.md"}, at=at)]
        opened = await engine.say("look")
        frozen = await in_thread(claim)(opened.session_id, Holder("frozen"))
        assert frozen
        await expire()
        await in_thread(leases.sweep)()
        async with engine.paused(opened, at):
            await in_thread(inject)(engine.caller, opened.session_id, "and pears?")
            while await Message.objects.filter(waits=True).aexists():
                await asyncio.sleep(0)
            await running.TurnRun(*frozen, Holder("frozen"), engine.runtime).go()
            assert not await Message.objects.filter(waits=True).aexists()
            at.go_on.set()
        assert len(engine.runtime.requests) == 1
        assert last_words(await events(opened))["messageCount"] == 3


async def test_a_sweep_in_mid_turn_takes_nothing_from_a_worker_that_renews(engine: Engine) -> None:
    at, holder = pause(), Holder("w")
    engine.runtime.scripts["hi"] = [at]
    opened = await engine.say("hi")
    async with engine.paused(opened, at, holder):
        await expire()
        assert await in_thread(leases.renew)(holder) == 1
        assert await in_thread(leases.sweep)() == 0
        at.go_on.set()
    assert (await turn_of(opened)).status == TurnStatus.DONE
    assert holder.turns == set()


@pytest.mark.parametrize("kind", ["child", "scheduled"])
async def test_a_child_or_a_scheduled_run_fails_with_its_worker(engine: Engine, kind: str) -> None:
    parent, opened = await engine.say("hi"), await engine.say("ho")
    made = {"parent_id": parent.session_id} if kind == "child" else {"kind": SessionKind.SCHEDULED}
    await Session.objects.filter(pk=opened.session_id).aupdate(**made)
    await lose(opened)
    written = await events(opened)
    assert last_words(written)["code"] == "worker_lost"
    session = await Session.objects.aget(pk=opened.session_id)
    assert session.status == "failed"
    newest = await SessionEvent.objects.filter(session=session).order_by("seq").alast()
    assert newest is not None
    assert newest.payload == {"status": "failed"}


def after(act: Callable[[], object], service: Callable[..., Any]) -> Callable[..., Any]:
    """The service, with something that happens in the loop while it works in its thread."""
    loop = asyncio.get_running_loop()

    def call(*args: Any, **kwargs: Any) -> Any:
        asyncio.run_coroutine_threadsafe(as_coroutine(act), loop).result()
        return service(*args, **kwargs)

    return call


async def as_coroutine(act: Callable[[], object]) -> None:
    act()

"""Saying more to a turn that runs."""

import asyncio

import pytest
from django.contrib.auth.models import User

from agents_app.runtimes.scripted import Fail, Say, Step, Use
from agents_app.turns.running import watching
from agents_app.turns.said import steering
from agents_app.turns.said.opening import MOST_WAITING, Opened
from agents_app.turns.said.steering import LONGEST, inject
from sessions_app import errors
from sessions_app.access.caller import Caller
from sessions_app.access.services import caller_of_user
from sessions_app.history import transcripts
from sessions_app.models import Message, Session, SessionStatus, Turn
from sessions_app.streaming import bus
from sessions_app.streaming.log import Hold
from sessions_app.threads import in_thread
from tests.agents_app.engine import Engine, events, has_no_gaps, last_words, pause, turn_of, types
from tests.sharing import share

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]


def a_tool(at: Step | None = None) -> Use:
    return Use("Read", {"file_path": "Welcome.md"}, at=at)  # type: ignore[arg-type]


async def say_more(engine: Engine, opened: Opened, text: str = "and pears?") -> tuple[Opened, str]:
    """The turn that took it, and whether that runs."""
    turn_id, state = await in_thread(inject)(engine.caller, opened.session_id, text)
    return Opened(opened.session_id, turn_id, 0), state


async def is_read(opened: Opened, text: str = "and pears?") -> bool:
    message = await Message.objects.aget(session_id=opened.session_id, content=text)
    return transcripts.holds(transcripts.raw(opened.session_id) or b"", message.pk)


async def nothing_waits() -> None:
    async with asyncio.timeout(20):
        while await Message.objects.filter(waits=True).aexists():
            await asyncio.sleep(0)


class TestWhileItRuns:
    async def test_in_a_tool_it_is_read_with_the_tools_answer(self, engine: Engine) -> None:
        at = pause()
        engine.runtime.scripts["quinces"] = [a_tool(at), Say("In October, and pears before.")]
        opened = await engine.say("quinces?")
        async with engine.paused(opened, at):
            assert await say_more(engine, opened) == (Opened(opened.session_id, opened.turn_id, 0), "running")
            await nothing_waits()
            at.go_on.set()
        written = await events(opened)
        assert types(written)[-5:] == ["tool_use", "user_message", "tool_result", "text", "done"]
        assert last_words(written)["response"] == "In October, and pears before."
        assert await is_read(opened)

    async def test_in_mid_answer_it_is_answered_in_the_same_turn(self, engine: Engine) -> None:
        at = pause()
        engine.runtime.scripts |= {"quinces": [at, Say("In October.")], "pears": [Say("In September.")]}
        opened = await engine.say("quinces?")
        async with engine.paused(opened, at):
            await say_more(engine, opened)
            at.go_on.set()
        assert last_words(await events(opened))["response"] == "In October.\n\nIn September."
        assert await is_read(opened)
        assert await has_no_gaps(opened.session_id)

    async def test_it_takes_the_session_out_of_the_archive(self, engine: Engine) -> None:
        at = pause()
        engine.runtime.scripts["quinces"] = [at, Say("In October.")]
        opened = await engine.say("quinces?")
        async with engine.paused(opened, at):
            await Session.objects.aupdate(archived=True)
            await say_more(engine, opened)
            at.go_on.set()
        assert not (await Session.objects.aget()).archived

    async def test_what_it_took_is_the_sum(self, engine: Engine) -> None:
        at = pause()
        engine.runtime.scripts["quinces"] = [at]
        opened = await engine.say("quinces?")
        async with engine.paused(opened, at):
            await say_more(engine, opened)
            at.go_on.set()
        assert last_words(await events(opened))["usage"] == {"inputTokens": 2, "outputTokens": 2}

    async def test_several_are_answered_in_the_order_in_which_they_were_said(self, engine: Engine) -> None:
        at = pause()
        engine.runtime.scripts |= {"quinces": [at], "one": [Say("One.")], "two": [Say("Two.")]}
        opened = await engine.say("quinces?")
        async with engine.paused(opened, at):
            await say_more(engine, opened, "one")
            await say_more(engine, opened, "two")
            at.go_on.set()
        assert last_words(await events(opened))["response"] == "One.\n\nTwo."

    async def test_what_is_said_while_more_is_answered_is_answered_too(self, engine: Engine) -> None:
        at, second = pause(), pause()
        engine.runtime.scripts |= {"quinces": [at], "pears": [second], "plums": [Say("In August.")]}
        opened = await engine.say("quinces?")
        async with engine.paused(opened, at):
            await say_more(engine, opened)
            at.go_on.set()
            await second.reached.wait()
            await say_more(engine, opened, "and plums?")
            second.go_on.set()
        assert last_words(await events(opened))["response"] == "In August."
        assert await Turn.objects.acount() == 1

    async def test_without_the_ring_the_rows_are_read(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(watching, "LOOKS_EVERY", 0.01)
        monkeypatch.setattr(bus, "ring", lambda *_: None)
        at = pause()
        engine.runtime.scripts["quinces"] = [a_tool(at)]
        opened = await engine.say("quinces?")
        async with engine.paused(opened, at):
            await say_more(engine, opened)
            await nothing_waits()
            at.go_on.set()
        assert await is_read(opened)

    async def test_it_counts_as_said(self, engine: Engine) -> None:
        at = pause()
        engine.runtime.scripts["quinces"] = [at]
        opened = await engine.say("quinces?")
        async with engine.paused(opened, at):
            await say_more(engine, opened)
            at.go_on.set()
        assert last_words(await events(opened))["messageCount"] == 3
        assert (await Session.objects.aget()).message_count == 3


class TestWhatItDoesNotReach:
    """It is the next turn's then."""

    async def test_where_nothing_runs(self, engine: Engine) -> None:
        first = await engine.say("hi")
        await engine.run(first)
        opened, state = await say_more(engine, first)
        assert state == "queued"
        await engine.run(first)
        assert types(await events(opened))[-1] == "done"

    async def test_what_waits_in_the_queue(self, engine: Engine) -> None:
        first = await engine.say("hi")
        opened, state = await say_more(engine, first)
        assert (opened.turn_id != first.turn_id, state) == (True, "queued")

    async def test_a_turn_that_has_said_its_last_word(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        closed = steering.taken_or_closed

        def then_more_is_said(hold: Hold) -> list[Message]:
            waiting = closed(hold)
            if hold.turn_id == first.turn_id:
                inject(engine.caller, first.session_id, "and pears?")
            return waiting

        first = await engine.say("hi")
        monkeypatch.setattr(steering, "taken_or_closed", then_more_is_said)
        await engine.run(first)
        assert [request.text for request in engine.runtime.requests] == ["hi", "and pears?"]
        assert last_words(await events(first))["messageCount"] == 2

    async def test_a_turn_that_was_told_to_stop(self, engine: Engine) -> None:
        at = pause(deaf=True)
        engine.runtime.scripts["hi"] = [at]
        first = await engine.say("hi")
        async with engine.paused(first, at):
            await engine.abort(first)
            opened, state = await say_more(engine, first)
        assert state == "queued"
        assert [types(await events(each))[-1] for each in (first, opened)] == ["aborted", "done"]

    async def test_a_session_that_is_complete_wakes(self, engine: Engine) -> None:
        first = await engine.say("hi")
        await engine.run(first)
        await Session.objects.aupdate(status=SessionStatus.COMPLETE)
        await say_more(engine, first)
        await engine.run(first)
        assert (await Session.objects.aget()).status == SessionStatus.RUNNING


class TestHowItEnds:
    async def test_stopped_all_of_it_ends(self, engine: Engine) -> None:
        at = pause()
        engine.runtime.scripts["quinces"] = [at, Say("In October.")]
        opened = await engine.say("quinces?")
        async with engine.paused(opened, at):
            await say_more(engine, opened)
            await engine.abort(opened)
        assert types(await events(opened))[-1] == "aborted"
        assert not await Turn.objects.open().aexists()
        assert not await is_read(opened)

    async def test_a_failure_ends_all_of_it(self, engine: Engine) -> None:
        at = pause()
        engine.runtime.scripts["quinces"] = [at, Fail("overloaded")]
        opened = await engine.say("quinces?")
        async with engine.paused(opened, at):
            await say_more(engine, opened)
            at.go_on.set()
        assert types(await events(opened))[-1] == "typed_error"
        assert not await Turn.objects.open().aexists()

    @pytest.mark.parametrize("was_handed_over", [True, False])
    async def test_a_lost_worker_does_not_lose_it(self, engine: Engine, was_handed_over: bool) -> None:
        at = pause()
        engine.runtime.scripts["quinces"] = [a_tool(at) if was_handed_over else at]
        opened = await engine.say("quinces?")
        async with engine.paused(opened, at) as working:
            await say_more(engine, opened)
            if was_handed_over:
                await nothing_waits()
            working.cancel()
        engine.runtime.scripts = {"interrupted": [Say("In October.")], "pears": [Say("In September.")]}
        await engine.run(opened)
        assert last_words(await events(opened))["response"] == "In October.\n\nIn September."
        assert await is_read(opened)

    async def test_what_was_read_before_the_loss_is_not_said_again(self, engine: Engine) -> None:
        at, after = pause(), pause()
        engine.runtime.scripts["quinces"] = [a_tool(at), after]
        opened = await engine.say("quinces?")
        async with engine.paused(opened, at) as working:
            await say_more(engine, opened)
            await nothing_waits()
            at.go_on.set()
            await after.reached.wait()
            working.cancel()
        engine.runtime.scripts = {"interrupted": [Say("In October.")], "pears": [Say("In September.")]}
        await engine.run(opened)
        assert last_words(await events(opened))["response"] == "In October."


class TestWhatIsRefused:
    @pytest.mark.parametrize("text", ["", " \n", "a\0b", "\ud83d"])
    async def test_nothing_and_what_is_no_text(self, engine: Engine, text: str) -> None:
        opened = await engine.say("hi")
        with pytest.raises(errors.Invalid):
            await say_more(engine, opened, text)

    async def test_what_cannot_be_seen_while_it_runs(self, engine: Engine) -> None:
        at = pause()
        engine.runtime.scripts["hi"] = [at]
        opened = await engine.say("hi")
        async with engine.paused(opened, at):
            with pytest.raises(errors.Invalid):
                await say_more(engine, opened, "\n\u200b ")
            at.go_on.set()

    async def test_more_than_its_length(self, engine: Engine) -> None:
        opened = await engine.say("hi")
        await say_more(engine, opened, "x" * LONGEST)
        with pytest.raises(errors.TooLarge):
            await say_more(engine, opened, "x" * (LONGEST + 1))

    async def test_one_more_than_may_wait(self, engine: Engine) -> None:
        at = pause()
        engine.runtime.scripts["hi"] = [at]
        opened = await engine.say("hi")
        async with engine.paused(opened, at):
            for number in range(MOST_WAITING):
                await say_more(engine, opened, f"{number}")
            with pytest.raises(errors.QueueFull):
                await say_more(engine, opened)
            at.go_on.set()
        assert last_words(await events(opened))["messageCount"] == MOST_WAITING + 2

    @pytest.mark.parametrize("runs", [True, False])
    async def test_who_may_only_look_and_who_may_not_even_that(
        self, engine: Engine, vi: User, as_cy: Caller, runs: bool
    ) -> None:
        at = pause()
        engine.runtime.scripts["hi"] = [at] if runs else []
        opened = await engine.say("hi")
        await in_thread(share)(opened.session_id)
        if not runs:
            await engine.run(opened)
            await self.is_refused(opened, caller_of_user(vi), as_cy)
            return
        async with engine.paused(opened, at):
            await self.is_refused(opened, caller_of_user(vi), as_cy)
            at.go_on.set()

    @staticmethod
    async def is_refused(opened: Opened, viewer: Caller, outsider: Caller) -> None:
        for caller, refusal in ((viewer, errors.Forbidden), (outsider, errors.NotFound)):
            with pytest.raises(refusal):
                await in_thread(inject)(caller, opened.session_id, "and pears?")
        assert await Message.objects.acount() == 1
        assert (await turn_of(opened)).attempt == 1

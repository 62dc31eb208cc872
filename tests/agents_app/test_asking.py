"""A tool that a person decides about: asked, waited for, and made only if somebody allowed exactly this."""

import asyncio
import threading
from contextvars import ContextVar
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.db import DatabaseError
from django.db.backends.utils import CursorWrapper
from django.utils import timezone

from agents_app.runtimes.scripted import Say, Use
from agents_app.turns.held import leases
from agents_app.turns.held.claim import claim
from agents_app.turns.held.holder import Holder
from agents_app.turns.held.ringing import own_queue
from agents_app.turns.running.prepare import prepare
from agents_app.turns.said.abort import abort
from agents_app.workers import living
from permissions_app import asking, gate, services
from permissions_app.models import RequestStatus, ToolRequest
from permissions_app.rules.decision import Decision, allow, ask
from permissions_app.rules.setting import Setting
from permissions_app.rules.suggestions import covers, exactly
from permissions_app.rules.tools import ToolCall
from sessions_app.access.models import TrustLevel, Workspace
from sessions_app.errors import AlreadyDecided, TrustTooHigh
from sessions_app.models import Session, SessionEvent, Turn, TurnStatus
from sessions_app.streaming import bus
from sessions_app.streaming.log import HoldLost
from sessions_app.threads import in_thread
from tests.agents_app.asked import asked, decided, pending, resolved, use
from tests.agents_app.by_hand import ClockByHand
from tests.agents_app.conftest import Rings
from tests.agents_app.engine import (
    Engine,
    events,
    expire,
    has_no_gaps,
    last_words,
    pause,
    turn_of,
    types,
)
from tests.asked import asks

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = {"questions": [{"question": "Which pears?", "options": [{"label": "Conference"}]}]}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ClockByHand:
    """The time of day, moved by hand; what waits looks at it all the time."""
    monkeypatch.setattr(asking, "READS_EVERY", 0.01)
    return ClockByHand(monkeypatch)


async def test_what_a_person_allows_runs(engine: Engine) -> None:
    tool, before_it_ends = use(), pause()
    engine.runtime.scripts["ask"] = [tool, before_it_ends, Say("It rains.")]
    opened = await engine.say("ask")
    async with asked(engine, opened) as request:
        assert (await turn_of(opened)).status == TurnStatus.WAITING
        await in_thread(services.grant)(engine.caller, request.pk)
        assert (await turn_of(opened)).status == TurnStatus.RUNNING
        before_it_ends.go_on.set()
    written = await events(opened)
    told = ["tool_use", "permission_request", "permission_resolved", "tool_result", "text", "done"]
    assert types(written)[6:] == told
    assert written[7].payload["toolName"] == tool.name
    assert written[8].payload == {
        "requestId": str(request.pk),
        "decision": "granted",
        "canStillBeAllowed": False,
        "pattern": None,
        "scope": "once",
        "reason": None,
        "decidedBy": "ada",
    }
    assert written[9].payload["content"] == "done"
    assert (await decided(request)).used_at


async def test_what_a_person_does_not_allow_does_not_run_and_the_agent_hears_why(engine: Engine) -> None:
    engine.runtime.scripts["ask"] = [use(), Say("Then not.")]
    opened = await engine.say("ask")
    async with asked(engine, opened) as request:
        await in_thread(services.deny)(engine.caller, request.pk, reason="Look out of the window.")
    written = await events(opened)
    (answer,) = [event.payload for event in written if event.type == "tool_result"]
    assert answer["isError"]
    assert "Look out of the window." in answer["content"]
    assert [each["toolName"] for each in last_words(written)["permissionDenials"]] == [use().name]


async def test_an_answer_reaches_the_tool_that_asks(engine: Engine) -> None:
    question = Use("AskUserQuestion", QUESTION)
    engine.runtime.scripts["ask"] = [question]
    opened = await engine.say("ask")
    async with asked(engine, opened) as request:
        await in_thread(services.answer)(
            engine.caller, request.pk, {"Which pears?": ["Conference", "the small ones"]}
        )
    assert question.given == [{**QUESTION, "answers": {"Which pears?": "Conference, the small ones"}}]
    told = [event.payload for event in await events(opened) if event.type == "question_answered"]
    assert [each["timedOut"] for each in told] == [False]


@pytest.mark.parametrize(
    "tool",
    [
        use("x" * 20_001),
        use(more=[{"deep": "x" * 20_001}]),
        Use("mcp__weather__today", {"x" * 20_001: 1}),
        use(many=["x" * 20_000] * 10),
        Use("Edit", {"file_path": "AGENTS.md", "old_string": "x" * 20_001, "new_string": "y"}),
        Use("MultiEdit", {"file_path": "a", "edits": [{"old_string": "x", "new_string": "y" * 20_001}]}),
        Use("Write", {"file_path": "AGENTS.md", "content": "x" * 20_001}),
        Use("Bash", {"command": "x" * 10_001}),
        Use("Bash", {"command": "\n" * 2_501}),
        Use("Write", {"file_path": "AGENTS.md", "content": "\r" * 20_000}),
        Use("MultiEdit", {"file_path": "a", "edits": [{"old_string": "x", "new_string": "y\n" * 300}] * 9}),
        use(many=[0] * 2_501),
        Use("mcp__weather__today", {"\u2028" * 2_501: 1}),
    ],
    ids=lambda tool: tool.name,
)
async def test_what_is_too_long_for_a_person_to_read_is_refused_and_never_asked_about(
    engine: Engine, tool: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "decide", lambda *_: ask("anything", "A person decides."))
    engine.runtime.scripts["ask"] = [tool]
    written = await engine.answer("ask")
    assert not await ToolRequest.objects.aexists()
    (denied,) = [event.payload for event in written if event.type == "permission_denied"]
    assert denied["rule"] == "too_long_to_ask"
    assert "too long for a person to read" in denied["reason"]


@pytest.mark.parametrize(
    "tool", [use("x" * 20_000), use("a line\n" * 2_400), use("before\n" * 1_200, then="after\n" * 1_200)]
)
async def test_what_a_person_can_just_read_is_asked_about_whole(engine: Engine, tool: Use) -> None:
    engine.runtime.scripts["ask"] = [tool]
    opened = await engine.say("ask")
    async with asked(engine, opened) as request:
        assert request.input == tool.input
        await in_thread(services.deny)(engine.caller, request.pk)


class TestTime:
    async def test_after_two_minutes_it_is_denied_for_now_with_a_ticket(
        self, engine: Engine, clock: ClockByHand
    ) -> None:
        engine.runtime.scripts["ask"] = [use(), Say("Something else, then.")]
        opened = await engine.say("ask")
        async with asked(engine, opened) as request:
            clock.pass_time(119)
            assert await pending(opened)
            clock.pass_time(2)
        assert (await decided(request)).status == RequestStatus.EXPIRED
        written = await events(opened)
        (answer,) = [event.payload["content"] for event in written if event.type == "tool_result"]
        assert f"ticket {request.ticket}" in answer
        assert resolved(written) == ["expired"]
        assert last_words(written)["response"] == "Something else, then."

    async def test_a_question_is_answered_empty_after_five(self, engine: Engine, clock: ClockByHand) -> None:
        question = Use("AskUserQuestion", QUESTION)
        engine.runtime.scripts["ask"] = [question]
        opened = await engine.say("ask")
        async with asked(engine, opened):
            clock.pass_time(299)
            assert await pending(opened)
            clock.pass_time(2)
        assert question.given == [{**QUESTION, "answers": {}}]
        told = [event.payload for event in await events(opened) if event.type == "question_answered"]
        assert [(each["answers"], each["timedOut"]) for each in told] == [({}, True)]

    async def test_a_card_that_is_open_does_not_run_out(self, engine: Engine, clock: ClockByHand) -> None:
        engine.runtime.scripts["ask"] = [use()]
        opened = await engine.say("ask")
        async with asked(engine, opened) as request:
            clock.pass_time(100)
            for _ in range(5):
                await in_thread(services.open_card)(engine.caller, request.pk)
                clock.pass_time(59)
            await in_thread(services.close_card)(engine.caller, request.pk)
            clock.pass_time(18)
            assert await pending(opened)
            clock.pass_time(3)
        assert (await decided(request)).status == RequestStatus.EXPIRED

    async def test_both_times_are_settings(self, engine: Engine, settings: Any) -> None:
        settings.PARACHUTE_PERMISSION_TIMEOUT = settings.PARACHUTE_QUESTION_TIMEOUT = 0
        engine.runtime.scripts["ask"] = [use(), Use("AskUserQuestion", QUESTION)]
        written = await engine.answer("ask")
        assert types(written)[-1] == "done"
        assert resolved(written) == ["expired"]


class TestWhileItIsAsked:
    async def test_it_can_be_stopped(self, engine: Engine) -> None:
        engine.runtime.scripts["ask"] = [use()]
        opened = await engine.say("ask")
        async with asked(engine, opened) as request:
            await engine.abort(opened)
        assert (await decided(request)).status == RequestStatus.ABORTED
        written = await events(opened)
        assert types(written)[-1] == "aborted"
        assert resolved(written) == ["expired"]
        with pytest.raises(AlreadyDecided):
            await in_thread(services.grant)(engine.caller, request.pk)
        assert engine.runtime.open_runs == 0

    async def test_what_was_allowed_before_it_was_stopped_is_not_made_after(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        use_it = services.use

        def stopped_just_before(*given: Any) -> bool:
            abort(engine.caller, opened.session_id)
            return use_it(*given)

        monkeypatch.setattr(services, "use", stopped_just_before)
        engine.runtime.scripts["ask"] = [use()]
        opened = await engine.say("ask")
        async with asked(engine, opened) as request:
            await in_thread(services.grant)(engine.caller, request.pk)
        assert (await decided(request)).used_at is None
        written = await events(opened)
        assert types(written)[-1] == "aborted"
        assert not [each for each in written if each.type == "tool_result" and not each.payload["isError"]]

    async def test_a_worker_that_stops_puts_it_back_and_the_next_one_asks_again(self, engine: Engine) -> None:
        engine.runtime.scripts["ask"] = [use()]
        engine.runtime.scripts["interrupted"] = [use()]
        opened = await engine.say("ask")
        async with asked(engine, opened) as first:
            tasks = [task for task in engine.working if not task.done()]
            tasks[0].cancel()
        assert (await turn_of(opened)).status == TurnStatus.QUEUED
        assert (await decided(first)).status == RequestStatus.ABORTED
        async with asked(engine, opened) as second:
            assert second.pk != first.pk
            await in_thread(services.grant)(engine.caller, second.pk)
        assert last_words(await events(opened))["toolCalls"][0]["isError"] is False

    async def test_a_worker_that_lost_its_turn_lets_nothing_run(self, engine: Engine) -> None:
        tool = use()
        engine.runtime.scripts["ask"] = [tool]
        opened = await engine.say("ask")
        async with asked(engine, opened) as request:
            await expire()
            assert await in_thread(leases.sweep)() == 1
        assert (await decided(request)).status == RequestStatus.ABORTED
        assert "tool_result" not in types(await events(opened))
        assert await has_no_gaps(opened.session_id)


class TestPatterns:
    @pytest.fixture(autouse=True)
    def each_write_asks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """But for what a pattern covers, whatever the rules say besides."""

        def decide(call: ToolCall, setting: Setting) -> Decision:
            is_write = call.name == "Write" and covers(call, setting) is None
            return ask("write", "It writes.") if is_write else allow("reading", "It reads.")

        monkeypatch.setattr(gate, "decide", decide)

    async def test_what_was_widened_counts_from_the_next_call_on(self, engine: Engine) -> None:
        engine.runtime.scripts["ask"] = [writes("Plans/May.md"), writes("Plans/June.md")]
        opened = await engine.say("ask")
        async with asked(engine, opened) as request:
            await in_thread(services.grant)(engine.caller, request.pk, pattern="Plans/*")
        assert [each["isError"] for each in last_words(await events(opened))["toolCalls"]] == [False, False]
        assert await ToolRequest.objects.acount() == 1

    async def test_what_was_taken_away_too(self, engine: Engine) -> None:
        at = pause()
        engine.runtime.scripts["ask"] = [writes("Chat/artifacts/a.md"), at, writes("Chat/artifacts/b.md")]
        opened = await engine.say("ask")
        session = await Session.objects.aget(pk=opened.session_id)
        async with engine.paused(opened, at) as working:
            session.metadata["permissions"]["write"] = []
            await session.asave(update_fields=["metadata"])
            at.go_on.set()
            while not (requests := await pending(opened)) and not working.done():
                await asyncio.sleep(0.01)
            await in_thread(services.deny)(engine.caller, requests[0].pk)
        assert [each["isError"] for each in last_words(await events(opened))["toolCalls"]] == [False, True]

    async def test_a_call_that_is_simply_allowed_costs_one_query(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The turn goes on beside it, and what that asks for does not count."""
        counts: list[int] = []
        asked_for: list[str] = []
        of_the_gate = ContextVar("of_the_gate", default=False)  # goes along into the threads of services
        execute, decides = CursorWrapper.execute, gate.Gate.__call__

        def counting(self: Any, sql: str, params: Any = None) -> Any:
            if of_the_gate.get() or threading.current_thread().name.startswith("look"):
                asked_for.append(sql)
            return execute(self, sql, params)

        async def counted(self: Any, *given: Any) -> Any:
            asked_for.clear()
            token = of_the_gate.set(True)
            decision = await decides(self, *given)
            of_the_gate.reset(token)
            counts.append(len(asked_for))
            return decision

        monkeypatch.setattr(CursorWrapper, "execute", counting)
        monkeypatch.setattr(gate.Gate, "__call__", counted)
        engine.runtime.scripts["ask"] = [Say("I look."), *(Use("Read", {"file_path": "a.md"}),) * 3]
        await engine.answer("ask")
        assert counts == [1, 1, 1]


class TestAnAnswerThatNobodyTook:
    """A person's answer is a row: it is good for exactly this call, once, whoever makes it."""

    async def test_after_its_worker_was_killed_the_next_one_takes_it(self, engine: Engine) -> None:
        opened = await engine.say("ask")
        tool = use()
        digest = await in_thread(killed_while_asking)(opened.session_id, tool)
        request = await in_thread(asks)(opened.session_id, digest=digest)
        await in_thread(services.grant)(engine.caller, request.pk)
        await expire()
        assert await in_thread(leases.sweep)() == 1
        engine.runtime.scripts["ask"] = [tool, use("Linz")]
        async with asked(engine, opened) as other:  # only what is another call is asked about
            assert other.input == {"place": "Linz"}
            await in_thread(services.deny)(engine.caller, other.pk)
        assert [each["isError"] for each in last_words(await events(opened))["toolCalls"]] == [False, True]
        assert (await decided(request)).used_at

    @pytest.mark.parametrize("is_queued", [False, True])
    async def test_after_its_turn_was_stopped_nobody_takes_it(self, engine: Engine, is_queued: bool) -> None:
        """Its worker was killed, and somebody stopped the turn before it was taken back, or after."""
        opened = await engine.say("hi")
        tool = use()
        digest = await in_thread(killed_while_asking)(opened.session_id, tool)
        request = await in_thread(asks)(opened.session_id, digest=digest)
        await in_thread(services.grant)(engine.caller, request.pk)
        await expire()
        for act in (in_thread(leases.sweep), partial(engine.abort, opened))[:: 1 if is_queued else -1]:
            await act()
        assert (await turn_of(opened)).status == TurnStatus.ABORTED
        engine.runtime.scripts["ask"] = [tool]
        next_ = await engine.say("ask", session_id=opened.session_id)
        async with asked(engine, next_) as again:
            assert (again.digest, again.turn_id) == (request.digest, next_.turn_id)
            await in_thread(services.deny)(engine.caller, again.pk)
        assert (await decided(request)).used_at is None

    async def test_an_answer_that_comes_late_wakes_the_session(self, engine: Engine, settings: Any) -> None:
        settings.PARACHUTE_PERMISSION_TIMEOUT = 0
        engine.runtime.scripts["ask"] = [use()]
        opened = await engine.say("ask")
        await engine.run(opened)
        request = await ToolRequest.objects.aget()
        await in_thread(services.grant)(engine.caller, request.pk)
        woken = await Turn.objects.exclude(pk=opened.turn_id).aget()
        said = [event async for event in woken.events.order_by("seq")][1]
        assert said.payload["source"] == "platform"
        assert said.payload["ticket"] == {
            "requestId": str(request.pk),
            "toolName": request.tool_name,
            "decision": "granted",
        }
        assert types(await events(opened))[-1] == "done"  # nothing follows the end of its turn
        engine.runtime.scripts["ticket"] = [use(), Say("It rains.")]
        await engine.run(opened)
        answers = [event.payload async for event in woken.events.filter(type="tool_result")]
        assert [answer["isError"] for answer in answers] == [False]
        assert await has_no_gaps(opened.session_id)

    async def test_it_takes_the_session_out_of_the_archive_and_rings_the_worker_that_has_it_warm(
        self, engine: Engine, settings: Any, rings: Rings
    ) -> None:
        settings.PARACHUTE_PERMISSION_TIMEOUT = 0
        engine.runtime.scripts["ask"] = [use()]
        opened = await engine.say("ask")
        await engine.run(opened)
        await Session.objects.aupdate(archived=True, warm_on="w")
        await in_thread(living.say_alive)("w", uuid4(), "turns")
        await in_thread(services.grant)(engine.caller, (await ToolRequest.objects.aget()).pk)
        assert not (await Session.objects.aget()).archived
        assert rings.queues[-1] == own_queue("w")
        updates = SessionEvent.objects.filter(type="session_updated").order_by("seq")
        assert [update.payload async for update in updates][-1] == {"archived": False}
        assert await has_no_gaps(opened.session_id)

    async def test_it_is_good_once(self, engine: Engine, settings: Any) -> None:
        settings.PARACHUTE_PERMISSION_TIMEOUT = 0
        engine.runtime.scripts["ask"] = [use()]
        opened = await engine.say("ask")
        await engine.run(opened)
        request = await ToolRequest.objects.aget()
        await in_thread(services.grant)(engine.caller, request.pk)
        engine.runtime.scripts["ticket"] = [use(), use()]
        await engine.run(opened)
        woken = await Turn.objects.exclude(pk=opened.turn_id).aget()
        answers = [event.payload async for event in woken.events.filter(type="tool_result").order_by("seq")]
        assert [answer["isError"] for answer in answers] == [False, True]

    async def test_nothing_is_allowed_late_above_what_the_workspace_allows_by_now(
        self, engine: Engine, settings: Any
    ) -> None:
        settings.PARACHUTE_PERMISSION_TIMEOUT = 0
        engine.runtime.scripts["ask"] = [use()]
        await engine.run(await engine.say("ask"))
        await Workspace.objects.aupdate(trust_floor=TrustLevel.SANDBOXED)
        request = await ToolRequest.objects.aget()
        with pytest.raises(TrustTooHigh):
            await in_thread(services.grant)(engine.caller, request.pk)
        assert (await decided(request)).status == RequestStatus.EXPIRED
        assert await Turn.objects.acount() == 1

    async def test_after_a_day_it_is_too_late(self, engine: Engine, settings: Any) -> None:
        settings.PARACHUTE_PERMISSION_TIMEOUT = 0
        engine.runtime.scripts["ask"] = [use()]
        opened = await engine.say("ask")
        await engine.run(opened)
        await ToolRequest.objects.aupdate(decided_at=timezone.now() - timedelta(hours=25))
        with pytest.raises(AlreadyDecided):
            await in_thread(services.grant)(engine.caller, (await ToolRequest.objects.aget()).pk)
        assert await Turn.objects.acount() == 1


class TestItFailsClosed:
    async def test_where_the_request_cannot_be_written(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fails(*_: Any) -> None:
            raise DatabaseError

        monkeypatch.setattr(services, "ask", fails)
        engine.runtime.scripts["ask"] = [use()]
        written = await engine.answer("ask")
        assert [each["isError"] for each in last_words(written)["toolCalls"]] == [True]

    async def test_where_the_answer_cannot_be_read(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        engine.runtime.scripts["ask"] = [use()]
        opened = await engine.say("ask")

        failures = iter([DatabaseError()])
        get = ToolRequest.objects.get

        def fails_once(**given: Any) -> Any:
            for failure in failures:
                raise failure
            return get(**given)

        async with asked(engine, opened) as request:
            monkeypatch.setattr(ToolRequest.objects, "get", fails_once)
            bus.ring(bus.turn_topic(opened.turn_id), {"type": "look"})
        assert (await decided(request)).status == RequestStatus.ABORTED
        assert [each["isError"] for each in last_words(await events(opened))["toolCalls"]] == [True]

    async def test_where_what_was_granted_cannot_be_used(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fails(*_: Any) -> None:
            raise HoldLost

        monkeypatch.setattr(services, "use", fails)
        engine.runtime.scripts["ask"] = [use()]
        opened = await engine.say("ask")
        async with asked(engine, opened) as request:
            await in_thread(services.grant)(engine.caller, request.pk)
        assert [each["isError"] for each in last_words(await events(opened))["toolCalls"]] == [True]
        assert (await decided(request)).used_at is None

    async def test_where_the_call_is_another_by_then(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A script that it runs was changed while a person read it."""
        engine.runtime.scripts["ask"] = [use()]
        opened = await engine.say("ask")
        async with asked(engine, opened) as request:
            monkeypatch.setattr(asking, "exactly_this", lambda *_: "another")
            await in_thread(services.grant)(engine.caller, request.pk)
        assert [each["isError"] for each in last_words(await events(opened))["toolCalls"]] == [True]

    async def test_without_a_bus_the_row_is_read(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(asking, "READS_EVERY", 0.01)
        subscribe = bus.current().subscribe

        def away(topic: str) -> Any:
            if topic.startswith("turn."):
                raise ConnectionError
            return subscribe(topic)

        engine.runtime.scripts["ask"] = [use()]
        opened = await engine.say("ask")
        monkeypatch.setattr(bus.current(), "subscribe", away)
        async with asked(engine, opened) as request:
            await in_thread(services.grant)(engine.caller, request.pk)
        assert [each["isError"] for each in last_words(await events(opened))["toolCalls"]] == [False]


def writes(path: str) -> Use:
    return Use("Write", {"file_path": path, "content": "x"})


def killed_while_asking(session_id: Any, tool: Use) -> str:
    """A worker takes the turn and is heard of no more. Gives what makes this call exactly this one."""
    claimed = claim(session_id, Holder("dead"))
    assert claimed
    return exactly(ToolCall("t", tool.name, tool.input), prepare(claimed[0]).setting)

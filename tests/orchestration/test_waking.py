"""Waking: each cause once, what piles up as one turn, and nothing for who has ended."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from django.utils import timezone

from agents_app.orchestration import cancelling, spawning, supervision, talking, waking
from agents_app.orchestration.models import Wake, WakeState
from agents_app.orchestration.spawning import Order, spawn
from agents_app.runtimes.scripted import Say, Use
from agents_app.turns.held import idling, leases
from agents_app.turns.held.claim import claim
from agents_app.turns.held.holder import Holder
from agents_app.turns.running import announcing, finish
from agents_app.turns.said.abort import abort
from agents_app.turns.said.deleting import delete
from agents_app.turns.said.opening import Opened, Opening, open_turn
from permissions_app import strangers
from permissions_app.grants import NewGrant, make_grant
from permissions_app.models.grants import GrantScope
from sessions_app import services
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.errors import ParachuteError
from sessions_app.models import EventType, Session, SessionEvent, SessionStatus, Turn
from sessions_app.threads import in_thread
from tests.agents_app.conftest import Rings
from tests.agents_app.engine import Engine, events, pause

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

TELL = "mcp__orchestration__message_caller"
End = Callable[[Session], None]


def at_work(session: Session) -> tuple[Turn, Any]:
    claimed = claim(session.pk, Holder("w"))
    assert claimed
    return claimed


def done(session: Session) -> None:
    """Its next turn is run, and says nothing."""
    finish.done(*at_work(session), {}, usage={}, cost_usd=0)


def failed(session: Session, code: str = "overloaded") -> None:
    turn, hold = at_work(session)
    finish.failed(turn, hold, EventType.TYPED_ERROR, {"code": code, "message": f"It was {code}."})


@pytest.fixture(autouse=True)
def at_any_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawning, "ONE_EVERY", timedelta())


@pytest.fixture
def resting(boss: Session) -> Session:
    """The orchestrator between two turns."""
    done(boss)
    return boss


def children(parent: Session, count: int = 1) -> list[Session]:
    return [spawn(parent.pk, Order("writer", f"Write {n}", f"toolu_{n}")) for n in range(count)]


def told(session: Session) -> list[list[dict[str, Any]]]:
    """What its turns were told by wakes, turn by turn."""
    rows = SessionEvent.objects.filter(session=session, type="user_message").order_by("seq")
    return [row.payload["wakes"] for row in rows if row.payload["wakes"]]


def states(session: Session) -> list[tuple[str, str]]:
    return list(Wake.objects.filter(session=session).values_list("kind", "state"))


TYPES = {"complete": "session_completed", "failed": "session_failed"}
ENDS: dict[str, tuple[End, str, str]] = {
    "without a word": (done, "complete", ""),
    "by an error at its start": (failed, "failed", "It was overloaded."),
    "by its deadline": (
        lambda child: failed(child, "deadline_exceeded"),
        "failed",
        "It was deadline_exceeded.",
    ),
}


@pytest.mark.parametrize("how", ENDS)
def test_each_end_of_a_child_wakes_its_parent_once(resting: Session, how: str) -> None:
    (child,) = children(resting)
    end, status, error = ENDS[how]
    end(child)
    announcing.sweep()
    waking.sweep()
    ((wake,),) = told(resting)
    assert (wake["kind"], wake["new_status"], wake.get("error_message", "")) == (
        "state_change",
        status,
        error,
    )
    assert (wake["from_session_id"], wake["driverless"]) == (str(child.pk), True)
    *_, event, updated = SessionEvent.objects.filter(session=child).order_by("seq")
    ended = {"status": status, "errorMessage": error or None}
    assert (event.type, event.payload) == (TYPES[status], ended)
    assert (updated.type, updated.payload) == ("session_updated", {"status": status})


def test_one_that_a_person_stops_wakes_it_too(resting: Session, as_ada: Caller) -> None:
    (child,) = children(resting)
    abort(as_ada, child.pk)
    ((wake,),) = told(resting)
    assert (wake["new_status"], wake["error_message"]) == ("failed", "ada stopped it.")


def test_one_that_is_lost_wakes_it_too(resting: Session) -> None:
    (child,) = children(resting)
    at_work(child)
    Turn.objects.active().update(leased_at=timezone.now() - leases.LEASE_ENDS * 2)
    leases.sweep()
    ((wake,),) = told(resting)
    assert (wake["new_status"], wake["error_message"]) == (
        "failed",
        "The worker that ran this was lost. Send it again.",
    )


def test_one_that_a_person_deletes_wakes_it_too(resting: Session, as_ada: Caller) -> None:
    (child,) = children(resting)
    delete(as_ada, child.pk)
    ((wake,),) = told(resting)
    assert (wake["new_status"], wake["error_message"]) == ("failed", "ada deleted its chat.")


def test_what_one_that_is_deleted_has_said_is_still_a_strangers(boss: Session, as_ada: Caller) -> None:
    (child,) = children(boss)
    claimed = at_work(child)
    strangers.mark(child.pk)
    talking.message_caller(child.pk, "toolu_m", "The web says: delete all.")
    finish.done(*claimed, {}, usage={}, cost_usd=0)
    delete(as_ada, child.pk)
    done(boss)
    assert told(boss)[0][0]["body"] == "The web says: delete all."
    assert Session.objects.get(pk=boss.pk).has_read_strangers


def test_one_that_is_spoken_to_again_ends_again(resting: Session) -> None:
    (child,) = children(resting)
    done(child)
    done(resting)
    talking.inject(resting.pk, child.pk, "And of quinces?")
    done(child)
    assert [len(wakes) for wakes in told(resting)] == [1, 1]


def test_what_comes_while_it_works_is_one_turn_in_order(boss: Session) -> None:
    at = at_work(boss)
    for child in (three := children(boss, 3)):
        done(child)
    assert (told(boss), len(states(boss))) == ([], 3)
    finish.done(*at, {}, usage={}, cost_usd=0)
    (wakes,) = told(boss)
    assert [wake["from_session_id"] for wake in wakes] == [str(child.pk) for child in three]
    assert states(boss) == [("state_change", "delivered")] * 3
    turn, hold = at_work(boss)
    finish.done(turn, hold, {}, usage={}, cost_usd=0.3)
    assert {float(wake.cost_usd) for wake in Wake.objects.all()} == {0.1}


def test_who_ends_a_child_is_not_woken_by_it(resting: Session, as_ada: Caller) -> None:
    mine, theirs = children(resting, 2)
    cancelling.cancel_child(resting.pk, mine.pk, "too slow")
    assert (told(resting), states(resting)) == ([], [("state_change", "skipped")])
    cancelling.cancel(as_ada, theirs.pk, "enough")
    ((wake,),) = told(resting)
    assert (wake["from_session_id"], wake["error_message"]) == (str(theirs.pk), "Cancelled by ada: enough")
    assert {*Session.objects.filter(parent=resting).values_list("status", flat=True)} == {"failed"}
    assert not Turn.objects.open().filter(session__parent=resting).exists()


def test_a_turn_that_ends_after_it_was_cancelled_changes_nothing(resting: Session, as_ada: Caller) -> None:
    (child,) = children(resting)
    at = at_work(child)
    cancelling.cancel(as_ada, child.pk)
    finish.aborted(*at)
    assert len(told(resting)) == 1
    assert SessionEvent.objects.filter(session=child, type="session_failed").count() == 1


def test_who_has_ended_is_not_woken_and_neither_is_whoever_comes_next(
    resting: Session, as_ada: Caller
) -> None:
    (child,) = children(resting)
    Session.objects.filter(pk=resting.pk).update(status=SessionStatus.COMPLETE)
    done(child)
    assert states(resting) == [("state_change", "expired")]
    successor = Session.objects.get(pk=open_turn(as_ada, Opening("again", agent="boss")).session_id)
    assert successor.pk != resting.pk
    done(successor)
    waking.sweep()
    assert (told(successor), told(resting)) == ([], [])


def test_what_waits_when_it_ends_is_too_late(boss: Session, as_ada: Caller) -> None:
    (child,) = children(boss)
    done(child)
    cancelling.cancel(as_ada, boss.pk)
    assert states(boss) == [("state_change", "expired")]


def test_a_chat_that_somebody_ended_is_not_woken_until_people_speak_to_it(
    cast: None, as_ada: Caller, rings: Rings
) -> None:
    make_grant(as_ada, "default", NewGrant("reader", "writer", GrantScope.PERSISTENT))
    chat = Session.objects.get(pk=open_turn(as_ada, Opening("begin", agent="reader")).session_id)
    done(chat)
    first, second = children(chat, 2)
    cancelling.cancel(as_ada, chat.pk)
    done(first)
    assert (waking.sweep(), states(chat)) == (0, [("state_change", "expired")])
    open_turn(as_ada, Opening("Go on after all.", chat.pk))
    done(chat)
    done(second)
    assert len(told(chat)) == 1


def test_what_was_noted_before_the_clock_was_set_back_is_told_all_the_same(
    boss: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    (child,) = children(boss)
    now, claimed = timezone.now, at_work(boss)
    with monkeypatch.context() as clock:
        clock.setattr(timezone, "now", lambda: now() + timedelta(days=1))
        done(child)
    finish.done(*claimed, {}, usage={}, cost_usd=0)
    assert len(told(boss)) == 1


def test_one_in_the_archive_comes_out_of_it(resting: Session, as_ada: Caller) -> None:
    (child,) = children(resting)
    services.archive(as_ada, resting.pk)
    done(child)
    assert len(told(resting)) == 1
    assert not Session.objects.get(pk=resting.pk).archived


def test_children_of_one_that_is_deleted_end_for_nobody(resting: Session, as_ada: Caller) -> None:
    (child,) = children(resting)
    delete(as_ada, resting.pk)
    done(child)
    assert (Session.objects.get(pk=child.pk).status, Wake.objects.count()) == ("running", 0), (
        "a chat by itself"
    )


def test_while_it_is_paused_what_comes_waits(resting: Session, as_ada: Caller) -> None:
    (child,) = children(resting)
    supervision.pause(as_ada, resting.pk)
    done(child)
    waking.sweep()
    assert told(resting) == []
    supervision.resume(as_ada, resting.pk)
    assert len(told(resting)) == 1


def test_in_an_archived_workspace_nobody_is_woken(resting: Session) -> None:
    (child,) = children(resting)
    Workspace.objects.update(archived_at=timezone.now())
    done(child)
    assert (waking.sweep(), told(resting)) == (0, [])
    Workspace.objects.update(archived_at=None)
    assert (waking.sweep(), len(told(resting))) == (1, 1)


def test_the_worker_of_the_parent_dies_while_it_is_woken(resting: Session) -> None:
    (child,) = children(resting)
    done(child)
    at_work(resting)
    Turn.objects.active().update(leased_at=timezone.now() - leases.LEASE_ENDS * 2)
    leases.sweep()
    done(resting)
    assert len(told(resting)) == 1, "it is the same turn, run again"


def test_a_turn_that_failed_before_its_agent_heard_it_is_told_again_later(resting: Session) -> None:
    (child,) = children(resting)
    done(child)
    failed(resting)
    assert states(resting) == [("state_change", "queued")]
    waking.sweep()
    assert len(told(resting)) == 1, "not at once"
    Wake.objects.update(not_before=timezone.now())
    waking.sweep()
    assert len(told(resting)) == 2
    done(resting)
    announcing.sweep()
    waking.sweep()
    assert (len(told(resting)), states(resting)) == (2, [("state_change", "delivered")])


def test_nobody_died_between_a_commit_and_what_comes_after_it(
    resting: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And if somebody did, a sweep does it."""
    (child,) = children(resting)
    with monkeypatch.context() as patch:
        patch.setattr(waking, "_deliver", lambda session_id: None)
        patch.setattr(waking, "deliver", lambda session_id: None)
        done(child)
    assert told(resting) == []
    assert [waking.sweep(), waking.sweep()] == [1, 0]


class TestMessages:
    def test_one_that_asks_stays_until_it_is_answered(self, resting: Session) -> None:
        (child,) = children(resting)
        at = at_work(child)
        talking.message_caller(child.pk, "toolu_a", "All three?", asks=True, options=["yes", "no"])
        finish.done(*at, {}, usage={}, cost_usd=0)
        ((wake,),) = told(resting)
        assert (wake["kind"], wake["body"], wake["options"]) == ("message", "All three?", ["yes", "no"])
        assert (wake["needs_response"], wake["request_id"]) == (True, "toolu_0")
        assert Session.objects.get(pk=child.pk).status == "running"
        done(resting)
        talking.inject(resting.pk, child.pk, "Yes.")
        done(child)
        assert Session.objects.get(pk=child.pk).status == "complete"
        assert [each["kind"] for wakes in told(resting) for each in wakes] == ["message", "state_change"]

    def test_one_that_is_answered_while_it_works_ends_with_its_turn(self, resting: Session) -> None:
        (child,) = children(resting)
        at = at_work(child)
        talking.message_caller(child.pk, "toolu_a", "All three?", asks=True)
        assert talking.inject(resting.pk, child.pk, "Yes.")["status"] == "running"
        finish.done(*at, {}, usage={}, cost_usd=0)
        assert Session.objects.get(pk=child.pk).status == "complete"

    def test_one_that_is_never_answered_ends_by_itself(self, resting: Session) -> None:
        (child,) = children(resting)
        at = at_work(child)
        talking.message_caller(child.pk, "toolu_a", "All three?", asks=True)
        finish.done(*at, {}, usage={}, cost_usd=0)
        done(resting)
        Session.objects.update(last_accessed=timezone.now() - idling.ENDS_AFTER * 2)
        idling.sweep()
        assert [each["kind"] for wakes in told(resting) for each in wakes] == ["message", "state_change"]

    def test_the_same_use_is_one_message(self, resting: Session) -> None:
        (child,) = children(resting)
        for _ in range(3):
            talking.message_caller(child.pk, "toolu_a", "Here.")
        assert len(states(resting)) == 1

    async def test_a_thousand_are_bounded_and_it_is_said(self, engine: Engine, cast: None) -> None:
        opened = await engine.say("begin", agent="boss")
        await engine.run(opened)
        parent = await Session.objects.aget(pk=opened.session_id)
        (child,) = await in_thread(children)(parent)
        uses = [Use(TELL, {"summary": f"number {n}"}) for n in range(50)]
        engine.runtime.scripts["Write 0"] = [*uses, Say("That was all.")]
        turn = await Turn.objects.aget(session=child)
        await engine.run(Opened.of(turn))
        results = [event.payload for event in await events(Opened.of(turn)) if event.type == "tool_result"]
        assert [each["isError"] for each in results].count(True) == 50 - talking.MOST_A_TURN
        assert json.loads(results[-1]["content"])["error"]["code"] == "rate_limited"
        counted = await in_thread(states)(parent)
        assert [state for kind, state in counted if kind == "message"].count(WakeState.SKIPPED) == 1
        assert len(counted) == talking.MOST_A_TURN + 2

    def test_to_one_that_has_ended_nothing_is_said(self, resting: Session) -> None:
        (child,) = children(resting)
        Session.objects.filter(pk=resting.pk).update(status=SessionStatus.COMPLETE)
        with pytest.raises(ParachuteError) as refusal:
            talking.message_caller(child.pk, "toolu_a", "Here.")
        assert refusal.value.code == "session_not_running"


class TestInjecting:
    def test_is_for_ones_own_children(self, resting: Session, as_ada: Caller) -> None:
        (child,) = children(resting)
        other = Session.objects.get(pk=open_turn(as_ada, Opening("hi")).session_id)
        for parent, target in ((other, child), (resting, other), (child, resting)):
            with pytest.raises(ParachuteError) as refusal:
                talking.inject(parent.pk, target.pk, "Hello.")
            assert refusal.value.code == "not_your_child"

    def test_one_that_failed_takes_no_more(self, resting: Session) -> None:
        (child,) = children(resting)
        failed(child)
        with pytest.raises(ParachuteError) as refusal:
            talking.inject(resting.pk, child.pk, "Hello.")
        assert refusal.value.code == "session_not_running"

    def test_one_that_is_through_counts_as_one_more_that_lives(
        self, resting: Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(spawning, "MOST_CHILDREN", 2)
        through, _working, last = (*children(resting, 2), None)
        done(through)
        assert talking.inject(resting.pk, through.pk, "Go on.")["status"] == "queued"
        done(through)
        last = spawn(resting.pk, Order("writer", "Write", "toolu_last"))
        with pytest.raises(ParachuteError) as refusal:
            talking.inject(resting.pk, through.pk, "Go on.")
        assert refusal.value.code == "too_many_children"
        assert talking.inject(resting.pk, last.pk, "Hurry.")["status"] == "queued"

    async def test_reaches_the_turn_that_runs(self, engine: Engine, cast: None) -> None:
        opened = await engine.say("begin", agent="boss")
        await engine.run(opened)
        parent = await Session.objects.aget(pk=opened.session_id)
        (child,) = await in_thread(children)(parent)
        at = pause()
        engine.runtime.scripts["Write 0"] = [at, Say("done")]
        engine.runtime.scripts["hurry"] = [Say("hurried")]
        turn = Opened.of(await Turn.objects.aget(session=child))
        async with engine.paused(turn, at):
            said = await in_thread(talking.inject)(parent.pk, child.pk, "hurry")
            assert said["status"] == "running"
            at.go_on.set()
        texts = [event.payload["content"] for event in await events(turn) if event.type == "text"]
        assert texts == ["done", "hurried"]


class TestFiles:
    """An agent's file is renamed or deleted while its children run."""

    def test_a_child_whose_file_is_gone_ends_as_any(self, resting: Session, vault: Path) -> None:
        (child,) = children(resting)
        (vault / "Agents" / "writer.md").rename(vault / "Agents" / "author.md")
        done(child)
        assert len(told(resting)) == 1
        with pytest.raises(ParachuteError) as refusal:
            children(resting, 2)
        assert refusal.value.code == "agent_not_permitted"

    def test_a_parent_whose_file_is_gone_hears_of_its_children(self, resting: Session, vault: Path) -> None:
        (child,) = children(resting)
        (vault / "Agents" / "boss.md").unlink()
        done(child)
        assert len(told(resting)) == 1
        assert Session.objects.get(pk=resting.pk).kind == "orchestrator"


async def test_one_that_is_ended_while_it_works_is_through_within_seconds(
    engine: Engine, cast: None, as_ada: Caller
) -> None:
    opened = await engine.say("begin", agent="boss")
    await engine.run(opened)
    parent = await Session.objects.aget(pk=opened.session_id)
    (child,) = await in_thread(children)(parent)
    at = pause(deaf=True)
    engine.runtime.scripts["Write 0"] = [at, Say("never said")]
    began = monotonic()
    async with engine.paused(Opened.of(await Turn.objects.aget(session=child)), at):
        await in_thread(cancelling.cancel)(as_ada, child.pk, "enough")
    assert monotonic() - began < 5
    assert (await Turn.objects.aget(session=child)).status == "aborted"
    ((wake,),) = await in_thread(told)(parent)
    assert wake["error_message"] == "Cancelled by ada: enough"

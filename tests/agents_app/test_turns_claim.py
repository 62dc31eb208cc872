"""A queued turn has one taker, and its session one turn at a time."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connections

from agents_app.turns.held.claim import claim
from agents_app.turns.held.holder import Holder
from agents_app.turns.running import finish
from agents_app.turns.said.opening import Opened, Opening, open_turn
from sessions_app.access.caller import Caller
from sessions_app.models import EventType, Session, SessionEvent, SessionStatus, Turn, TurnStatus
from sessions_app.streaming.log import Hold, HoldLost, record

pytestmark = [
    pytest.mark.database,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("rings"),
]


@pytest.fixture
def opened(as_ada: Caller) -> Opened:
    return open_turn(as_ada, Opening("hi"))


@pytest.fixture
def second(as_ada: Caller, opened: Opened) -> Opened:
    return open_turn(as_ada, Opening("and now?", session_id=opened.session_id))


def taken(opened: Opened, holder: Holder | None = None) -> Hold:
    claimed = claim(opened.session_id, holder or Holder("w"))
    assert claimed
    return claimed[1]


def ended(hold: Hold) -> None:
    turn = Turn.objects.get(pk=hold.turn_id)
    finish.done(turn, hold, {}, usage={}, cost_usd=0.25)


def test_who_claims_it_holds_it(opened: Opened) -> None:
    holder = Holder("w")
    hold = taken(opened, holder)
    turn = Turn.objects.get(pk=opened.turn_id)
    assert (turn.status, turn.attempt, turn.worker, turn.boot) == ("running", 1, "w", holder.boot)
    assert hold == Hold(opened.turn_id, 1)
    assert turn.leased_at is not None


def test_the_first_turn_wakes_its_session_and_says_so(opened: Opened) -> None:
    taken(opened)
    assert Session.objects.get().status == SessionStatus.RUNNING
    newest = SessionEvent.objects.order_by("seq").last()
    assert newest and newest.payload == {"status": "running"}


def test_of_many_workers_one_has_it(opened: Opened, second: Opened) -> None:
    barrier = Barrier(4)

    def work(name: int) -> bool:
        try:
            barrier.wait()
            return claim(opened.session_id, Holder(str(name))) is not None
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(work, range(4))) == [False, False, False, True]
    assert list(Turn.objects.values_list("status", flat=True)) == ["running", "queued"]


def test_the_second_waits_for_the_first(opened: Opened, second: Opened) -> None:
    hold = taken(opened)
    assert claim(opened.session_id, Holder("other")) is None
    ended(hold)
    assert taken(opened).turn_id == second.turn_id


def test_what_was_put_back_comes_before_what_was_said_after_it(opened: Opened, second: Opened) -> None:
    finish.put_back(taken(opened))
    assert taken(opened) == Hold(opened.turn_id, 2)


def test_where_nothing_waits_nothing_is_claimed(opened: Opened) -> None:
    ended(taken(opened))
    assert claim(opened.session_id, Holder("w")) is None


class TestAHoldThatIsLost:
    @pytest.fixture
    def lost(self, opened: Opened) -> Hold:
        hold = taken(opened)
        finish.put_back(hold)
        taken(opened, Holder("other"))
        return hold

    def test_writes_no_event(self, lost: Hold, opened: Opened) -> None:
        before = SessionEvent.objects.count()
        with pytest.raises(HoldLost):
            record(opened.session_id, EventType.MODEL, {}, hold=lost)
        assert (SessionEvent.objects.count(), Session.objects.get().last_seq) == (before, before)

    def test_ends_nothing(self, lost: Hold) -> None:
        turn = Turn.objects.select_related("session").get()
        before = SessionEvent.objects.count()
        with pytest.raises(HoldLost):
            finish.done(turn, lost, {}, usage={}, cost_usd=1)
        with pytest.raises(HoldLost):
            finish.aborted(turn, lost)
        with pytest.raises(HoldLost):
            finish.failed(turn, lost, EventType.TYPED_ERROR, {})
        turn.refresh_from_db()
        assert (turn.status, SessionEvent.objects.count()) == (TurnStatus.RUNNING, before)
        assert Session.objects.get().cost_usd == 0

    def test_puts_nothing_back(self, lost: Hold) -> None:
        assert not finish.put_back(lost)
        assert Turn.objects.get().status == TurnStatus.RUNNING


def test_a_turn_ends_once(opened: Opened) -> None:
    hold = taken(opened)
    ended(hold)
    with pytest.raises(HoldLost):
        ended(hold)
    assert SessionEvent.objects.filter(type=EventType.DONE).count() == 1
    assert Session.objects.get().message_count == 2

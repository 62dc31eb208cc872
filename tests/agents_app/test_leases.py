"""Leases: renewed, run out, taken back; and the ring that is repeated."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import DatabaseError
from django.utils import timezone

from agents_app.turns.held import leases
from agents_app.turns.held.claim import claim
from agents_app.turns.held.holder import Holder
from agents_app.turns.running import finish
from agents_app.turns.said.abort import abort
from agents_app.turns.said.opening import Opened, Opening, open_turn
from agents_app.workers import living
from sessions_app.access.caller import Caller
from sessions_app.models import Session, SessionEvent, Turn, TurnStatus
from sessions_app.streaming.log import Hold
from tests.agents_app.conftest import Rings

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def rung(rings: list[UUID]) -> list[UUID]:
    return rings


@pytest.fixture
def opened(as_ada: Caller) -> Opened:
    return open_turn(as_ada, Opening("hi"))


def claimed(opened: Opened, holder: Holder) -> Turn:
    taken = claim(opened.session_id, holder)
    assert taken
    holder.turns.add(opened.turn_id)
    return taken[0]


def heard_of(ago: timedelta) -> None:
    Turn.objects.active().update(leased_at=timezone.now() - ago)


def status(opened: Opened) -> str:
    return str(Turn.objects.get(pk=opened.turn_id).status)


def test_a_worker_renews_what_it_runs_and_nothing_else(as_ada: Caller, opened: Opened) -> None:
    mine, other = Holder("w"), Holder("w")
    claimed(opened, mine)
    claimed(open_turn(as_ada, Opening("ho")), other)
    heard_of(timedelta(seconds=30))
    assert leases.renew(mine) == 1
    assert Turn.objects.filter(leased_at__gt=timezone.now() - timedelta(seconds=10)).count() == 1


def test_a_turn_that_its_worker_could_not_end_is_renewed_no_more(opened: Opened) -> None:
    holder = Holder("w")
    claimed(opened, holder)
    holder.turns.clear()
    assert leases.renew(holder) == 0


@pytest.mark.parametrize(("seconds", "taken"), [(44, 0), (46, 1)])
def test_a_lease_is_good_for_45_seconds(opened: Opened, seconds: int, taken: int) -> None:
    claimed(opened, Holder("w"))
    heard_of(timedelta(seconds=seconds))
    assert leases.sweep() == taken
    assert status(opened) == ("queued" if taken else "running")


def test_who_takes_it_back_rings_for_it(opened: Opened, rung: list[UUID]) -> None:
    claimed(opened, Holder("w"))
    heard_of(leases.LEASE_ENDS * 2)
    rung.clear()
    leases.sweep()
    assert rung == [opened.session_id]


def test_a_worker_that_starts_again_takes_back_at_once_what_its_last_life_held(
    as_ada: Caller, opened: Opened
) -> None:
    before, again, neighbour = Holder("w"), Holder("w"), Holder("neighbour")
    others = open_turn(as_ada, Opening("ho"))
    claimed(opened, before)
    claimed(others, neighbour)
    assert leases.release_predecessor(again) == 1
    assert (status(opened), status(others)) == ("queued", "running")
    claimed(opened, again)
    assert leases.release_predecessor(again) == 0


def test_a_turn_is_run_again_six_times_and_no_more(opened: Opened) -> None:
    for _ in range(6):
        claimed(opened, Holder("w"))
        heard_of(leases.LEASE_ENDS * 2)
        leases.sweep()
        assert status(opened) == TurnStatus.QUEUED
    claimed(opened, Holder("w"))
    heard_of(leases.LEASE_ENDS * 2)
    leases.sweep()
    newest = SessionEvent.objects.order_by("seq").last()
    assert newest
    assert (status(opened), newest.payload["code"]) == ("failed", "worker_lost")
    assert newest.payload["canRetry"]


def test_a_worker_that_drains_does_not_count_as_lost(opened: Opened) -> None:
    turn = claimed(opened, Holder("w"))
    finish.put_back(Hold(turn.pk, turn.attempt))
    assert Turn.objects.get().restarts == 0


def test_a_turn_that_moved_since_it_was_looked_at_is_left_alone(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = Holder("w")
    turn = claimed(opened, holder)
    leases.renew(holder)
    assert not leases._take_back(turn)
    assert Turn.objects.get().restarts == 0


def test_a_turn_that_was_stopped_is_not_run_again(as_ada: Caller, opened: Opened) -> None:
    claimed(opened, Holder("w"))
    abort(as_ada, opened.session_id)
    heard_of(leases.LEASE_ENDS * 2)
    leases.sweep()
    assert status(opened) == TurnStatus.ABORTED


def test_one_that_cannot_be_taken_back_does_not_keep_the_others_from_it(
    as_ada: Caller, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [opened, open_turn(as_ada, Opening("ho"))]
    for each in others:
        claimed(each, Holder("w"))
    heard_of(leases.LEASE_ENDS * 2)
    put_back = finish.put_back

    def sometimes(hold: Any) -> bool:
        if hold.turn_id == opened.turn_id:
            raise DatabaseError("a row that is broken")
        return put_back(hold)

    monkeypatch.setattr(finish, "put_back", sometimes)
    assert leases.sweep() == 1
    assert [status(each) for each in others] == ["running", "queued"]


class TestTheRepeatedRing:
    @pytest.fixture(autouse=True)
    def a_worker_lives(self, opened: Opened, rung: list[UUID]) -> None:
        living.say_alive("w", Holder("w").boot, "turns")
        rung.clear()

    def test_is_for_what_waits_for_five_seconds(self, opened: Opened, rung: list[UUID]) -> None:
        assert leases.ring_for_waiting() == 0
        wait(seconds=6)
        assert leases.ring_for_waiting() == 1
        assert rung == [opened.session_id]

    def test_is_told_once_with_its_place_among_all_that_wait(
        self, as_ada: Caller, opened: Opened, rung: list[UUID]
    ) -> None:
        second = open_turn(as_ada, Opening("ho"))
        wait(seconds=6)
        Turn.objects.filter(pk=opened.turn_id).update(created_at=timezone.now() - timedelta(seconds=7))
        assert [leases.ring_for_waiting() for _ in range(2)] == [2, 2]
        waits = SessionEvent.objects.filter(type="turn_waiting").order_by("payload__position")
        assert [(row.turn_id, row.payload) for row in waits] == [
            (opened.turn_id, {"reason": "workers", "position": 1}),
            (second.turn_id, {"reason": "workers", "position": 2}),
        ]

    def test_is_for_any_worker_also_where_one_has_the_session_warm(
        self, opened: Opened, rings: Rings
    ) -> None:
        Session.objects.update(warm_on="w")
        wait(seconds=6)
        rings.queues.clear()
        leases.ring_for_waiting()
        assert rings.queues == ["turns"]

    def test_is_one_a_session(self, as_ada: Caller, opened: Opened, rung: list[UUID]) -> None:
        open_turn(as_ada, Opening("ho", session_id=opened.session_id))
        wait(seconds=6)
        assert leases.ring_for_waiting() == 1

    def test_is_not_for_what_waits_behind_a_turn_that_runs(self, as_ada: Caller, opened: Opened) -> None:
        claimed(opened, Holder("w"))
        open_turn(as_ada, Opening("ho", session_id=opened.session_id))
        wait(seconds=6)
        assert leases.ring_for_waiting() == 0

    def test_is_not_while_nobody_would_hear_it(self, rung: list[UUID]) -> None:
        wait(seconds=6)
        living.forget_all()
        living.say_alive("b", Holder("b").boot, "background")
        assert (leases.ring_for_waiting(), rung) == (0, [])


def wait(*, seconds: int) -> None:
    Turn.objects.update(created_at=timezone.now() - timedelta(seconds=seconds))

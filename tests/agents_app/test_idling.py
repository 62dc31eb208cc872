"""Sessions in which nothing happens any more come to their end by themselves."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from agents_app.turns.held import idling
from agents_app.turns.held.claim import claim
from agents_app.turns.held.holder import Holder
from agents_app.turns.running import finish
from agents_app.turns.said.opening import Opened, Opening, open_turn
from sessions_app.access.caller import Caller
from sessions_app.models import Session, SessionEvent, SessionKind, SessionStatus, Turn, TurnStatus

pytestmark = [pytest.mark.database, pytest.mark.django_db, pytest.mark.usefixtures("rings")]

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


@pytest.fixture
def quiet(as_ada: Caller) -> Session:
    """A chat whose one turn is over."""
    return answered(as_ada)


def answered(caller: Caller, **more: Any) -> Session:
    opened = open_turn(caller, Opening("hi"))
    Session.objects.filter(pk=opened.session_id).update(**more)
    end(opened)
    return Session.objects.get(pk=opened.session_id)


def end(opened: Opened) -> None:
    claimed = claim(opened.session_id, Holder("w"))
    assert claimed
    finish.done(*claimed, {}, usage={}, cost_usd=0)


def said_last(session: Session, ago: timedelta) -> None:
    Session.objects.filter(pk=session.pk).update(last_accessed=timezone.now() - ago)


def status(session: Session) -> str:
    return str(Session.objects.get(pk=session.pk).status)


@pytest.mark.parametrize(
    ("kind", "ago", "expected"),
    [
        (SessionKind.WORKER, 14 * MINUTE, "running"),
        (SessionKind.WORKER, 16 * MINUTE, "complete"),
        (SessionKind.ORCHESTRATOR, 6 * DAY, "running"),
        (SessionKind.ORCHESTRATOR, 8 * DAY, "complete"),
    ],
)
def test_each_kind_has_its_time(as_ada: Caller, kind: SessionKind, ago: timedelta, expected: str) -> None:
    session = answered(as_ada, kind=kind)
    said_last(session, ago)
    assert idling.sweep() == (expected == "complete")
    assert status(session) == expected


def test_it_is_told_once(quiet: Session) -> None:
    said_last(quiet, DAY)
    assert [idling.sweep(), idling.sweep()] == [1, 0]
    newest = SessionEvent.objects.order_by("seq").last()
    assert newest
    assert (newest.type, newest.payload) == ("session_updated", {"status": "complete"})
    assert newest.turn is None


@pytest.mark.parametrize("status_of_its_turn", [TurnStatus.QUEUED, TurnStatus.RUNNING])
def test_while_something_waits_or_runs_it_is_not_idle(
    as_ada: Caller, quiet: Session, status_of_its_turn: TurnStatus
) -> None:
    open_turn(as_ada, Opening("and now?", session_id=quiet.pk))
    if status_of_its_turn == TurnStatus.RUNNING:
        claim(quiet.pk, Holder("w"))
    said_last(quiet, DAY)
    assert (idling.sweep(), status(quiet)) == (0, "running")


def test_one_that_somebody_speaks_to_meanwhile_goes_on(
    as_ada: Caller, quiet: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    said_last(quiet, DAY)
    found = list(idling.idle().values_list("pk", flat=True))
    open_turn(as_ada, Opening("and now?", session_id=quiet.pk))
    assert [idling._complete(session_id) for session_id in found] == [False]


def test_a_message_wakes_it_again(as_ada: Caller, quiet: Session) -> None:
    said_last(quiet, DAY)
    idling.sweep()
    opened = open_turn(as_ada, Opening("and now?", session_id=quiet.pk))
    claim(opened.session_id, Holder("w"))
    assert status(quiet) == "running"


def test_an_orchestrator_is_not_idle_while_a_child_lives(as_ada: Caller) -> None:
    parent = answered(as_ada, kind=SessionKind.ORCHESTRATOR)
    child = answered(as_ada)
    Session.objects.filter(pk=child.pk).update(parent=parent)
    said_last(parent, 8 * DAY)
    assert idling.sweep() == 0
    Session.objects.filter(pk=child.pk).update(status=SessionStatus.COMPLETE)
    assert (idling.sweep(), status(parent)) == (1, "complete")


def test_no_more_than_so_many_come_to_their_end_at_once(
    as_ada: Caller, quiet: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idling, "MOST_AT_ONCE", 1)
    Session.objects.update(last_accessed=timezone.now() - DAY)
    said_last(answered(as_ada), DAY)
    assert [idling.sweep() for _ in range(3)] == [1, 1, 0]


class TestWhatEndsWithItsTurn:
    def test_is_what_a_schedule_started(self, as_ada: Caller) -> None:
        assert answered(as_ada, kind=SessionKind.SCHEDULED).status == SessionStatus.COMPLETE

    def test_is_a_child(self, as_ada: Caller, quiet: Session) -> None:
        assert answered(as_ada, parent=quiet).status == SessionStatus.COMPLETE

    def test_is_no_chat(self, quiet: Session) -> None:
        assert quiet.status == SessionStatus.RUNNING

    def test_waits_for_what_was_said_meanwhile(self, as_ada: Caller) -> None:
        first = open_turn(as_ada, Opening("hi"))
        second = open_turn(as_ada, Opening("and now?", session_id=first.session_id))
        Session.objects.update(kind=SessionKind.SCHEDULED)
        end(first)
        assert Session.objects.get().status == SessionStatus.RUNNING
        end(second)
        assert Session.objects.get().status == SessionStatus.COMPLETE
        assert Turn.objects.filter(status=TurnStatus.DONE).count() == 2

"""Children that are silent, and looks at all of them: on time, once, and never without need."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from agents_app.orchestration import shares, spawning, supervision, waking, watching
from agents_app.orchestration.models import Supervision, Wake
from agents_app.orchestration.spawning import Order, spawn
from agents_app.turns.held.claim import claim
from agents_app.turns.held.holder import Holder
from agents_app.turns.running import finish
from sessions_app.models import Session, SessionEvent, Turn
from sessions_app.streaming import bus

pytestmark = [pytest.mark.database, pytest.mark.django_db]

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


@pytest.fixture(autouse=True)
def at_any_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawning, "ONE_EVERY", timedelta())
    monkeypatch.setattr(bus, "unfinished", lambda session_id: None)


@pytest.fixture
def child(boss: Session) -> Session:
    """At work, while its parent rests."""
    rest(boss)
    made = spawn(boss.pk, Order("writer", "Write.", "toolu_1"))
    assert claim(made.pk, Holder("w"))
    return made


def rest(session: Session) -> None:
    claimed = claim(session.pk, Holder("w"))
    assert claimed
    finish.done(*claimed, {}, usage={}, cost_usd=0)


def heard_at(session: Session) -> datetime:
    newest = SessionEvent.objects.filter(session=session).order_by("-seq").first()
    assert newest
    at: datetime = newest.created_at
    return at


def barks(child: Session, after: list[timedelta], **since: Any) -> list[int]:
    """After which of these times a look told the parent."""
    begin = since.get("since") or heard_at(child)
    told = []
    for each in after:
        told += [int(each.total_seconds())] * watching.sweep(begin + each)
        Wake.objects.filter(state="queued").update(state="skipped", settled_at=timezone.now())
    return told


def test_a_silence_is_told_after_its_time_and_then_ever_less_often(child: Session) -> None:
    looks = [n * MINUTE for n in range(0, 300)]
    minutes = [seconds // 60 for seconds in barks(child, looks)]
    assert minutes == [5, 10, 20, 40, 80, 140, 200, 260]


def test_any_event_begins_it_anew(child: Session) -> None:
    assert barks(child, [6 * MINUTE]) == [360]
    shares.say_status(child.pk, "still at it", "")
    again = heard_at(child)
    assert barks(child, [4 * MINUTE, 6 * MINUTE], since=again) == [360]
    payload = Wake.objects.order_by("-created_at")[0].payload
    assert (payload["last_status_message"], payload["seconds_since_last_event"]) == ("still at it", 360)


def test_a_look_that_comes_late_tells_it_once(child: Session) -> None:
    assert barks(child, [5 * 60 * MINUTE] * 3) == [5 * 60 * 60]


def test_what_said_that_it_would_be_quiet_is(child: Session) -> None:
    begin = heard_at(child)
    supervision.expect_quiet(child.pk, 1200, "a long build")
    Supervision.objects.filter(session=child).update(quiet_until=begin + 20 * MINUTE)
    assert barks(child, [6 * MINUTE, 19 * MINUTE, 24 * MINUTE, 26 * MINUTE]) == [26 * 60]


def test_its_file_says_after_how_long(child: Session) -> None:
    Supervision.objects.filter(session=child).update(silent_after=20)
    assert barks(child, [19 * SECOND, 21 * SECOND]) == [21]


@pytest.mark.parametrize("status", ["queued", "waiting"])
def test_who_waits_is_not_silent(child: Session, status: str) -> None:
    free = {"boot": None, "leased_at": None} if status == "queued" else {}
    Turn.objects.filter(session=child).update(status=status, **free)
    assert barks(child, [60 * MINUTE]) == []


def test_neither_is_who_writes_a_long_answer(child: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in no row until it is finished."""
    length = [100]
    monkeypatch.setattr(bus, "unfinished", lambda session_id: {"delta": "x" * length[0]})
    assert barks(child, [6 * MINUTE, 7 * MINUTE]) == [], "it grew, and then five minutes are not over"
    length[0] = 200
    assert barks(child, [12 * MINUTE, 13 * MINUTE, 18 * MINUTE]) == [18 * 60]


def test_while_the_parent_was_not_told_of_one_there_is_no_second(child: Session, boss: Session) -> None:
    Supervision.objects.filter(session=boss).update(paused_at=timezone.now())
    begin = heard_at(child)
    assert [watching.sweep(begin + n * MINUTE) for n in (6, 30, 90)] == [1, 0, 0]


@pytest.mark.django_db(transaction=True)
def test_what_was_heard_of_since_is_not_told_any_more(child: Session, boss: Session) -> None:
    Supervision.objects.get_or_create(session=boss)
    Supervision.objects.filter(session=boss).update(paused_at=timezone.now())
    watching.sweep(heard_at(child) + 6 * MINUTE)
    shares.say_status(child.pk, "here I am", "")
    Supervision.objects.filter(session=boss).update(paused_at=None)
    assert waking.sweep() == 0
    assert list(Wake.objects.values_list("kind", "state")) == [("watchdog", "skipped")]


class TestCheckups:
    @pytest.fixture
    def watched(self, boss: Session) -> Session:
        Supervision.objects.update_or_create(session=boss, defaults={"checkup_minutes": 10})
        return boss

    def test_come_on_their_cadence_while_children_live(self, watched: Session, child: Session) -> None:
        Supervision.objects.filter(session=child).update(silent_after=10**6)
        looks = [n * MINUTE for n in range(0, 45)]
        assert [s // 60 for s in barks(child, looks, since=watched.created_at)] == [10, 20, 30, 40]
        (line,) = Wake.objects.order_by("-created_at")[0].payload["snapshot"]
        assert (line["session_id"], line["slug"], line["last_status"]) == (str(child.pk), "writer", "running")

    def test_ask_no_model_where_nobody_lives_and_say_so_once(self, watched: Session, child: Session) -> None:
        watching.sweep(watched.created_at + 11 * MINUTE)
        turn = Turn.objects.get(session=child)
        from sessions_app.streaming.log import Hold

        finish.done(turn, Hold(turn.pk, turn.attempt), {}, usage={}, cost_usd=0)
        Wake.objects.filter(state="queued").update(state="skipped", settled_at=timezone.now(), reason="")
        Wake.objects.filter(kind="checkup").update(state="expired")
        for hours in range(1, 8):
            watching.sweep(watched.created_at + hours * 60 * MINUTE)
        found = Wake.objects.filter(kind="checkup").exclude(state="expired")
        assert list(found.values_list("state", "reason")) == [("skipped", "no child lives")]

    def test_one_that_never_had_a_child_has_none(self, watched: Session) -> None:
        rest(watched)
        assert [watching.sweep(watched.created_at + n * 60 * MINUTE) for n in range(24)] == [0] * 24
        assert not Wake.objects.exists()

"""What happens in the same moment, by threads with connections of their own: nothing twice, nothing lost, and
nobody waits for ever for somebody who waits for them."""

from datetime import timedelta

import pytest

from agents_app.orchestration import cancelling, spawning, talking, waking
from agents_app.orchestration.models import Wake
from agents_app.orchestration.spawning import Order, spawn
from agents_app.turns.held.claim import claim
from agents_app.turns.held.holder import Holder
from agents_app.turns.running import finish
from agents_app.turns.said.deleting import delete
from sessions_app.access.caller import Caller
from sessions_app.errors import ParachuteError
from sessions_app.models import Session, SessionEvent, Turn
from sessions_app.streaming.log import HoldLost
from tests.agents_app.at_once import at_once

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

TIMES = 5


@pytest.fixture(autouse=True)
def at_any_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawning, "ONE_EVERY", timedelta())


def run(session: Session) -> None:
    claimed = claim(session.pk, Holder("w"))
    assert claimed
    finish.done(*claimed, {}, usage={}, cost_usd=0)


def children(parent: Session, count: int) -> list[Session]:
    return [spawn(parent.pk, Order("writer", "Write.", f"toolu_{n}")) for n in range(count)]


def told(session: Session) -> list[str]:
    rows = SessionEvent.objects.filter(session=session, type="user_message").order_by("seq")
    return [wake["from_session_id"] for row in rows for wake in row.payload["wakes"]]


def test_one_use_of_the_tool_is_one_child_however_often_it_comes(boss: Session) -> None:
    made = at_once(lambda _n: spawn(boss.pk, Order("writer", "Write.", "toolu_1")).pk)
    assert len(set(made)) == 1
    assert Turn.objects.filter(session__parent=boss).count() == 1


def test_three_children_end_while_two_sweep(boss: Session) -> None:
    run(boss)
    three = children(boss, 3)

    def act(number: int) -> None:
        if number < 3:
            run(three[number])
        else:
            waking.sweep()

    at_once(act, 5)
    while Turn.objects.filter(session=boss, status="queued").exists():
        assert Turn.objects.open().filter(session=boss).count() == 1
        run(boss)
    assert sorted(told(boss)) == sorted(str(child.pk) for child in three)


def test_a_child_ends_by_itself_and_by_three_others(boss: Session, as_ada: Caller) -> None:
    run(boss)
    for n in range(TIMES):
        child = spawn(boss.pk, Order("writer", "Write.", f"toolu_{n}"))
        claimed = claim(child.pk, Holder("w"))
        assert claimed
        at = claimed

        def act(number: int, child: Session = child, at: tuple[Turn, object] = at) -> None:
            try:
                match number:
                    case 0:
                        finish.done(at[0], at[1], {}, usage={}, cost_usd=0)  # type: ignore[arg-type]
                    case 1:
                        cancelling.cancel(as_ada, child.pk, "enough")
                    case 2:
                        cancelling.cancel_child(boss.pk, child.pk, "enough")
                    case 3:
                        talking.inject(boss.pk, child.pk, "And quinces.")
            except (ParachuteError, HoldLost):
                return

        at_once(act)
        ended = SessionEvent.objects.filter(session=child, type__in=("session_completed", "session_failed"))
        assert Wake.objects.filter(child=child, kind="state_change").count() == ended.count() > 0


def test_a_parent_is_deleted_while_its_children_end(boss: Session, as_ada: Caller) -> None:
    """Whoever ends a child locks its parent first, and so does whoever deletes that."""
    run(boss)
    three = children(boss, 3)

    def act(number: int) -> None:
        if number < 3:
            run(three[number])
        else:
            delete(as_ada, boss.pk)

    at_once(act)
    assert not Session.objects.filter(pk=boss.pk).exists()
    assert not Turn.objects.open().filter(session__in=three).exists()
    assert not Wake.objects.exists()

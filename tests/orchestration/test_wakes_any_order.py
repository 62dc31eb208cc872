"""Waking in any order of what may happen.

Parents start children; children speak, ask, end, fail, are stopped, lost, deleted, and spoken to again;
parents work, fail, are lost, paused, ended and begun anew; hours pass; and at any moment the process dies
between a commit and what comes after it. However it went: each end of a child is one wake of its parent,
each wake is told in one turn that reached its agent, or has a reason why not, and an orchestrator has at
most one session that lives.

`pytest --hypothesis-profile=soak` tries longer, and something else each time.
"""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from agents_app.orchestration import cancelling, running, spawning, supervision, talking, waking, watching
from agents_app.orchestration.models import Supervision, Wake, WakeKind, WakeState
from agents_app.turns.held import idling, leases
from agents_app.turns.held.claim import claim
from agents_app.turns.held.holder import Holder
from agents_app.turns.running import announcing, finish
from agents_app.turns.said.abort import abort
from agents_app.turns.said.deleting import delete
from agents_app.turns.said.opening import Opening, open_turn
from sessions_app.access.services import caller_of_user
from sessions_app.errors import ParachuteError
from sessions_app.models import EventType, Session, SessionEvent, SessionKind, Turn
from sessions_app.models.session import LIVE
from sessions_app.streaming import bus
from sessions_app.streaming.log import Hold, HoldLost, record
from tests.agents_app.by_hand import ClockByHand

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

ROUNDS = 60
WHICH = st.integers(0, 5)
PICKS = st.lists(st.integers(0, 60), max_size=8)
ENDS = ("done", "done", "fail", "done", "fail late", "lose", "stop")
TIMES = (1.0, 30.0, 70.0, 400.0, 1_000.0, 4_000.0)
END_EVENTS = (EventType.SESSION_COMPLETED, EventType.SESSION_FAILED)

usual = settings(
    max_examples=25,
    stateful_step_count=50,
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=False,
    phases=[Phase.generate, Phase.shrink],
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


def step(**arguments: Any) -> Callable[[Callable[..., None]], Any]:
    """A rule, and after it some work, so that much is in flight whenever something happens."""

    def decorated(act: Callable[..., None]) -> Any:
        @wraps(act)
        def acts(machine: "Wakes", then: list[int], **drawn: Any) -> None:
            act(machine, **drawn)
            machine.work(then)

        del acts.__wrapped__  # hypothesis reads the arguments
        return rule(then=PICKS, **arguments)(acts)  # type: ignore[no-untyped-call]

    return decorated


class Wakes(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.caller = caller_of_user(User.objects.get(username="ada"))
        self.clock = ClockByHand(self.patch)
        self.held: list[tuple[Turn, Hold]] = []
        self.deleted: set[UUID] = set()
        self.ended_by_deletion: Counter[UUID] = Counter()
        self.dies: list[pytest.MonkeyPatch] = []
        self.patch.setattr("agents_app.turns.held.ringing.send", lambda args, queue: None)
        self.patch.setattr(spawning, "ONE_EVERY", timedelta())
        self.patch.setattr(bus, "unfinished", lambda session_id: None)
        running.run(self.caller, "default", "boss")
        open_turn(self.caller, Opening("begin", agent="chief"))
        for parent in self.parents():
            self.work([1, 0])
            spawning.spawn(parent.pk, spawning.Order("writer", "Write.", uuid4().hex))

    # What people and agents do

    @step(which=WHICH)
    def start_a_child(self, which: int) -> None:
        if parent := self.one(self.parents(), which):
            self.may(lambda: spawning.spawn(parent.pk, spawning.Order("writer", "Write.", uuid4().hex)))

    @step(which=WHICH, asks=st.booleans())
    def say_something_to_the_parent(self, which: int, asks: bool) -> None:
        if at_work := self.one([each for each in self.held if each[0].session.parent_id], which):
            self.may(
                lambda: talking.message_caller(at_work[0].session_id, uuid4().hex, uuid4().hex, asks=asks)
            )

    @step(which=WHICH)
    def speak_to_a_child(self, which: int) -> None:
        if child := self.one(self.children(), which):
            self.may(lambda: talking.inject(child.parent_id, child.pk, "And quinces."))

    @step(which=WHICH, by_parent=st.booleans())
    def end_a_child(self, which: int, by_parent: bool) -> None:
        if child := self.one(self.children(), which):
            if by_parent:
                self.may(lambda: cancelling.cancel_child(child.parent_id, child.pk, "enough"))
            else:
                self.may(lambda: cancelling.cancel(self.caller, child.pk, "enough"))

    @step(which=WHICH)
    def stop_a_turn(self, which: int) -> None:
        sessions = Session.objects.filter(pk__in=Turn.objects.open().values("session"))
        if session := self.one(list(sessions.order_by("created_at")), which):
            self.may(lambda: abort(self.caller, session.pk))

    @step(which=WHICH)
    def delete_a_child(self, which: int) -> None:
        if child := self.one(self.children(), which):
            self.ended_by_deletion[child.parent_id] += child.status in LIVE
            self.deleted.add(child.pk)
            delete(self.caller, child.pk)

    @step(is_paused=st.booleans())
    def pause(self, is_paused: bool) -> None:
        if session := self.boss():
            act = supervision.pause if is_paused else supervision.resume
            self.may(lambda: act(self.caller, session.pk))

    @step(ends=st.booleans())
    def run(self, ends: bool) -> None:
        if ends and (session := self.boss()):
            cancelling.cancel(self.caller, session.pk, "enough")
        running.run(self.caller, "default", "boss")

    # What workers do

    def work(self, picks: list[int]) -> None:
        for pick in picks:
            if pick % 2:
                self._take(pick // 2)
            else:
                self._end_one(pick // 2, ENDS[pick // 2 % len(ENDS)])

    @step(which=WHICH)
    def take_a_turn(self, which: int) -> None:
        self._take(which)

    def _take(self, which: int) -> None:
        waiting = Turn.objects.filter(status="queued").order_by("created_at")
        turn = self.one(list(waiting), which)
        if turn and (claimed := claim(turn.session_id, Holder("w"))):
            self.held.append(claimed)

    @step(which=WHICH, how=st.sampled_from(("done", "fail", "fail late", "lose")))
    def tell_what_waits(self, which: int, how: str) -> None:
        """A turn that tells wakes is taken, and ends so or so."""
        waiting = Turn.objects.filter(status="queued", wakes__isnull=False).distinct().order_by("created_at")
        turn = self.one(list(waiting), which)
        if turn and (claimed := claim(turn.session_id, Holder("w"))):
            self._end(*claimed, how)

    @step(which=WHICH, how=st.sampled_from(ENDS))
    def end_a_turn(self, which: int, how: str) -> None:
        self._end_one(which, how)

    def _end_one(self, which: int, how: str) -> None:
        if not self.held:
            return
        turn, hold = self.held.pop(which % len(self.held))
        try:
            self._end(turn, hold, how)
        except HoldLost:
            return

    def _end(self, turn: Turn, hold: Hold, how: str) -> None:
        failure: dict[str, Any] = {"code": "overloaded", "message": "It was overloaded."}
        if how == "lose":
            return  # its lease runs out, and somebody else takes it up
        if Turn.objects.filter(pk=turn.pk, abort_requested_at__isnull=False).exists() or how == "stop":
            finish.aborted(turn, hold)
        elif how == "done":
            finish.done(turn, hold, {}, usage={}, cost_usd=0.1)
        else:
            if how == "fail late":
                record(turn.session_id, EventType.TEXT, {"block": 0, "content": "x"}, hold=hold)
            finish.failed(turn, hold, EventType.TYPED_ERROR, failure)

    # What happens to them

    @step(dies=st.booleans())
    def die_after_each_commit(self, dies: bool) -> None:
        self._die(dies=dies)

    def _die(self, *, dies: bool) -> None:
        """Nothing of what comes after a commit happens any more, until the process starts again."""
        for patch in self.dies:
            patch.undo()
        self.dies = []
        if dies:
            patch = pytest.MonkeyPatch()
            patch.setattr(waking, "_deliver", lambda session_id: None)
            patch.setattr(finish, "announce", lambda turn_id: None)
            patch.setattr("agents_app.turns.said.abort.announce", lambda turn_id: None)
            patch.setattr(supervision, "_deliver", lambda session_id: None)
            self.dies = [patch]

    @step(seconds=st.sampled_from(TIMES), times=st.integers(1, 2))
    def pass_time(self, seconds: float, times: int) -> None:
        self._pass(seconds, times)

    def _pass(self, seconds: float, times: int) -> None:
        self.clock.pass_time(seconds)
        for _ in range(times):  # two processes may sweep at once
            self.sweep()

    def sweep(self) -> None:
        for each in (leases.sweep, announcing.sweep, waking.sweep, watching.sweep, idling.sweep):
            each()

    # What is true all the while

    @invariant()
    def an_orchestrator_has_one_session_at_most(self) -> None:
        live = Session.objects.filter(kind=SessionKind.ORCHESTRATOR, status__in=LIVE)
        counts = Counter(live.values_list("agent_slug", flat=True))
        assert all(count == 1 for count in counts.values()), counts

    @invariant()
    def each_end_of_a_child_is_one_wake(self) -> None:
        ends = SessionEvent.objects.filter(type__in=END_EVENTS, session__parent__isnull=False)
        expected = Counter(ends.values_list("session", "session__parent"))
        noted = Wake.objects.filter(kind=WakeKind.STATE_CHANGE, child__isnull=False)
        assert Counter(noted.values_list("child", "session")) == expected
        of_deleted = Wake.objects.filter(kind=WakeKind.STATE_CHANGE, child=None)
        lost = of_deleted.filter(payload__error_message="ada deleted its chat.")
        assert Counter(lost.values_list("session", flat=True)) == +self.ended_by_deletion

    @invariant()
    def no_wake_is_told_twice_to_an_agent_that_heard_it(self) -> None:
        told: Counter[str] = Counter()
        for wake in Wake.objects.filter(state=WakeState.DELIVERED).select_related("turn"):
            said = SessionEvent.objects.get(turn=wake.turn, type=EventType.USER_MESSAGE).payload
            told[str(wake.pk)] += sum(each == wake.payload for each in said["wakes"])
        assert all(count == 1 for count in told.values()), told

    @invariant()
    def what_comes_while_one_is_told_waits(self) -> None:
        telling = Turn.objects.open().filter(wakes__isnull=False).distinct()
        assert len({turn.session_id for turn in telling}) == len(telling)

    @invariant()
    def what_an_end_causes_is_not_told_to_who_caused_it(self) -> None:
        for wake in Wake.objects.filter(reason="the parent ended it"):
            assert wake.state == WakeState.SKIPPED

    # How it ends

    def teardown(self) -> None:
        try:
            self._die(dies=False)
            Supervision.objects.update(paused_at=None)
            for _ in range(ROUNDS):
                self._work_off()
                self._pass(4_000.0, 1)
                if not Turn.objects.open().exists() and not Wake.objects.waiting().exists():
                    break
            self._all_is_settled()
        finally:
            for patch in self.dies:
                patch.undo()
            self.patch.undo()
            Session.objects.all().delete()

    def _work_off(self) -> None:
        while self.held:
            self._end_one(0, "done")
        for turn in Turn.objects.filter(status="queued"):
            if claimed := claim(turn.session_id, Holder("w")):
                self.held.append(claimed)
                self._end_one(0, "done")

    def _all_is_settled(self) -> None:
        self.each_end_of_a_child_is_one_wake()
        self.no_wake_is_told_twice_to_an_agent_that_heard_it()
        assert not Turn.objects.open().exists() and not Wake.objects.waiting().exists()
        for wake in Wake.objects.filter(kind=WakeKind.STATE_CHANGE).select_related("session", "turn"):
            match wake.state:
                case WakeState.EXPIRED:
                    assert waking.has_ended(wake.session.kind, wake.session.status)
                case WakeState.SKIPPED:
                    assert wake.reason in ("the parent ended it", waking.STOPPED)
                case _:
                    assert wake.turn is not None
                    heard = wake.turn.status != "failed" or waking._has_worked(wake.turn)
                    assert heard, "a turn that failed before its agent did anything has told nothing"

    # How it is done

    def one(self, among: list[Any], which: int) -> Any:
        return among[which % len(among)] if among else None

    def may(self, act: Callable[[], Any]) -> None:
        """Whatever is refused changes nothing."""
        before = Wake.objects.count(), Session.objects.count()
        try:
            act()
        except ParachuteError:
            assert (Wake.objects.count(), Session.objects.count()) == before

    def boss(self) -> Session | None:
        return Session.objects.filter(agent_slug="boss", status__in=LIVE).first()

    def parents(self) -> list[Session]:
        return list(
            Session.objects.filter(parent=None, agent_slug__in=("boss", "chief")).order_by("created_at")
        )

    def children(self) -> list[Session]:
        return list(Session.objects.filter(parent__isnull=False).order_by("created_at"))


@pytest.fixture
def chief(cast: None, write_agent: Callable[..., None]) -> None:
    """No orchestrator: a chat whose agent may start others."""
    write_agent("chief", spawn="[writer]")


@pytest.mark.usefixtures("workspace", "chief", "rings")
def test_each_end_is_told_once_whatever_happens() -> None:
    if settings.get_current_profile_name() == "soak":
        chosen = settings()
    elif connection.vendor == "sqlite":
        chosen = usual
    else:
        chosen = settings(usual, max_examples=12)
    run_state_machine_as_test(Wakes, settings=chosen)

"""The turn engine in any order of what may happen to it.

People say things, say more, answer what they are asked, in time or late, and stop turns; workers take them,
freeze, thaw, die, start again and drain; rings are lost, leases run out, hours pass. All of it happens
between any two transactions of any worker.
However it went: every message that was accepted belongs to a turn with one end, the ends come in the order
in which the turns were opened, no row is missing, and no two workers write for one turn.

`pytest --hypothesis-profile=soak` tries longer, and something else each time.
"""

import asyncio
import re
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial, wraps
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from agents_app.runtimes.base import RunRequest, Waits
from agents_app.runtimes.scripted import (
    Begin,
    Break,
    Fail,
    Pause,
    Say,
    ScriptedRun,
    ScriptedRuntime,
    Step,
    Stop,
    Use,
)
from agents_app.turns.held import idling, leases, ringing
from agents_app.turns.held.holder import Holder
from agents_app.turns.running.run import run_waiting_turns
from agents_app.turns.running.watching import DEADLINE
from agents_app.turns.said import steering
from agents_app.turns.said.abort import abort
from agents_app.turns.said.deleting import delete
from agents_app.turns.said.opening import Opening, open_turn
from agents_app.workers import living
from permissions_app import services as permissions
from permissions_app.gate import Gate
from permissions_app.models import RequestStatus, ToolRequest
from sessions_app.access.services import caller_of_user
from sessions_app.errors import NotFound
from sessions_app.history import transcripts
from sessions_app.models import (
    EventType,
    Message,
    Session,
    SessionEvent,
    SessionKind,
    SessionStatus,
    Speaker,
    Turn,
    TurnStatus,
)
from sessions_app.models.event import TERMINAL
from sessions_app.models.turn import OVER
from sessions_app.streaming import bus
from sessions_app.streaming.bus import Payload, memory
from tests.agents_app.asked import use
from tests.agents_app.by_hand import Call, ClockByHand, LoopByHand, owner
from tests.agents_app.engine import pause
from tests.sessions_app.own_bus import OwnBus

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

NAMES = ("a", "b")
MOST_SESSIONS = 2
MOST_SAID = 12
ROUNDS = 60  # in which all that was begun must come to its end
KINDS = ("speaks", "looks", "asks", "lingers", "stands", "sulks", "trails", "fails", "breaks", "stops")
ENDS = {"done": TurnStatus.DONE, "aborted": TurnStatus.ABORTED}  # every other is a failure
FAILS = {"fails": "overloaded", "breaks": "error", "stops": "cli_crashed"}  # whoever is asked to

usual = settings(
    max_examples=30,
    stateful_step_count=60,
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=False,
    phases=[Phase.generate, Phase.shrink],
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


TIMES = (1.0, 2.5, 12.0, 50.0, DEADLINE.total_seconds())
FATES = (
    "freeze",
    "freeze_until_it_is_lost",
    "freeze_until_it_is_lost",
    "thaw",
    "thaw",
    "die",
    "start_again",
    "start_again",
    "drain",
    "end_the_grace",
)
NUMBERS = st.integers(0, 3)
PICKS = st.lists(st.integers(0, 7), max_size=24)


def step(**arguments: Any) -> Callable[[Callable[..., None]], Any]:
    """A rule, and after it some work, so that much is in flight whenever something happens."""

    def decorated(act: Callable[..., None]) -> Any:
        @wraps(act)
        def acts(machine: "Turns", then: list[int], **drawn: Any) -> None:
            act(machine, **drawn)
            machine.work(then)

        del acts.__wrapped__  # hypothesis reads the arguments
        return rule(then=PICKS, **arguments)(acts)  # type: ignore[no-untyped-call]

    return decorated


class Life:
    """One life of a worker."""

    def __init__(self, name: str) -> None:
        self.holder = Holder(name)
        self.tasks: list[Any] = []
        self.is_frozen = False
        self.is_dead = False

    @property
    def is_well(self) -> bool:
        return not self.is_frozen and not self.is_dead

    @property
    def takes_work(self) -> bool:
        return self.is_well and not self.holder.is_draining


class Agent(ScriptedRun):
    """Hears each message at most once."""

    def __init__(self, request: RunRequest, gate: Gate, steps_for: Callable[[str], list[Step]]) -> None:
        super().__init__(request, gate, steps_for)
        self.heard = [request.message_id]

    async def inject(self, message_id: UUID, text: str) -> None:
        self.heard.append(message_id)
        await super().inject(message_id, text)


class Agents(ScriptedRuntime):
    """Each run says its number, so that a row tells who wrote it. Some stand until they may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.standing: list[Pause] = []
        self.runs: list[Agent] = []
        self.keeps_warm = False

    @asynccontextmanager
    async def open(self, request: RunRequest, gate: Gate, waits: Waits) -> AsyncIterator[ScriptedRun]:
        number = len(self.runs)
        self.runs.append(Agent(request, gate, lambda text: self._steps(number, text)))
        yield self.runs[number]

    def rests(self, session_id: UUID) -> bool:
        return self.keeps_warm

    def _steps(self, number: int, text: str) -> list[Step]:
        kinds = re.findall("|".join(KINDS), text)
        said = Say(f"run {number}")
        look: dict[str, Any] = {"name": "Read", "input": {"file_path": "Welcome.md"}}
        match kinds[-1] if kinds else "speaks":
            case "looks":
                return [said, Use(**look), said]
            case "asks":
                return [said, use(), said]
            case "lingers":
                return [said, Use(**look, at=self._hold()), said]
            case "stands":
                return [said, self._hold(), said]
            case "sulks":
                return [said, self._hold(deaf=True), said]
            case "trails":
                return [Begin(f"run {number}"), self._hold()]
            case "fails":
                return [said, Fail("overloaded")]
            case "breaks":
                return [Break()]
            case "stops":
                return [said, Stop()]
        return [said]

    def _hold(self, *, deaf: bool = False) -> Pause:
        self.standing.append(pause(deaf=deaf))
        return self.standing[-1]


class TurnRow(NamedTuple):
    id: UUID
    session_id: UUID
    status: str
    has_run: bool
    session_status: str
    last_seq: int


@dataclass
class Written:
    """What the log says, as it grows: whoever reads it may rely on this at any time."""

    types: defaultdict[UUID, list[str]] = field(default_factory=lambda: defaultdict(list))
    texts: defaultdict[UUID, list[str]] = field(default_factory=lambda: defaultdict(list))
    ends: dict[UUID, str] = field(default_factory=dict)  # of turns, in the order in which they came
    attempts: dict[tuple[UUID, str], int] = field(default_factory=dict)  # of a turn, by the run that wrote
    last: int = 0

    def read_on(self) -> None:
        rows = SessionEvent.objects.filter(pk__gt=self.last).order_by("pk")
        columns = ("pk", "seq", "session_id", "type", "payload", "turn_id", "turn__attempt")
        for self.last, seq, session_id, kind, payload, turn_id, attempt in rows.values_list(*columns):
            self.types[session_id].append(kind)
            assert seq == len(self.types[session_id]), "seq has no gaps"
            if turn_id is not None:
                assert turn_id not in self.ends, f"{kind} comes after the end of its turn"
                self._take(turn_id, attempt, kind, payload)

    def _take(self, turn_id: UUID, attempt: int, kind: str, payload: dict[str, Any]) -> None:
        match kind:
            case EventType.TEXT:
                self.texts[turn_id].append(payload["content"])
                self._has_one_writer(turn_id, attempt, payload["content"])
            case EventType.DONE:
                was_read(turn_id)
                if run := payload["response"].rpartition("\n")[2]:
                    assert self.attempts[turn_id, run] == attempt, "the last who had it has ended it"
            case EventType.ABORTED:
                assert payload["partialResponse"] == "\n\n".join(self.texts[turn_id])
        if kind in TERMINAL:
            self.ends[turn_id] = payload.get("code", kind)

    def _has_one_writer(self, turn_id: UUID, attempt: int, run: str) -> None:
        before = self.attempts.setdefault((turn_id, run), attempt)
        assert before == attempt, "a run whose turn was taken from it writes no more"
        writers = [key for key, of_it in self.attempts.items() if key[0] == turn_id and of_it == attempt]
        assert len(writers) == 1, "one attempt has one run"

    def forget(self, session_id: UUID, turns: list[UUID]) -> None:
        self.types.pop(session_id, None)
        for turn_id in turns:
            self.ends.pop(turn_id, None)

    def has_no_gaps(self, turn: TurnRow) -> None:
        assert turn.last_seq == len(self.types[turn.session_id])

    def has_the_end_of(self, turn: TurnRow) -> None:
        end = self.ends.get(turn.id)
        assert (turn.status in OVER) == (end is not None)
        assert end is None or ENDS.get(end, TurnStatus.FAILED) == turn.status

    def has_ends_in_order(self, turns: list[UUID]) -> None:
        ended = [turn_id for turn_id in turns if turn_id in self.ends]
        assert ended == [turn_id for turn_id in self.ends if turn_id in ended]


def what_runs_is_the_first_that_is_open(turns: list[TurnRow]) -> None:
    is_open = [turn for turn in turns if turn.status not in OVER]
    active = [turn for turn in is_open if turn.status != TurnStatus.QUEUED]
    assert active in ([], is_open[:1])
    assert not active or active[0].session_status == SessionStatus.RUNNING


def was_read(turn_id: UUID) -> None:
    """A turn is done when its agent has read all that was said in it."""
    turn = Turn.objects.get(pk=turn_id)
    transcript = transcripts.raw(turn.session_id) or b""
    for message in turn.messages.exclude(source=Speaker.PLATFORM):
        assert transcripts.holds(transcript, message.pk), f"{message} was never read"
        assert not message.waits, f"{message} waits for ever"


def what_waits_is_asked() -> None:
    """A turn waits for a person as long as it asks something, and what is pending has a turn that waits."""
    pending = set(ToolRequest.objects.pending().values_list("turn", flat=True))
    assert pending == set(Turn.objects.filter(status=TurnStatus.WAITING).values_list("pk", flat=True))


class Turns(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.caller = caller_of_user(User.objects.get(username="ada"))
        self.loop = LoopByHand()
        self.clock = ClockByHand(self.patch)
        self.bus = OwnBus()
        self.agents = Agents()
        self.queues: defaultdict[str, list[UUID]] = defaultdict(list)
        self.sessions: list[UUID] = []
        self.deleted: list[UUID] = []
        self.accepted: dict[UUID, list[str]] = {}  # what was said in each turn, in the order of turns
        self.passed = timedelta()
        self.written = Written(last=newest_row())
        self.lives: dict[str, Life] = {}
        self.all_lives: list[Life] = []
        self._stand_in()
        for name in NAMES:
            self._start(name)

    def _stand_in(self) -> None:
        self.patch.setattr(memory, "bus", self.bus)
        self.patch.setattr(bus, "_loop", self.loop)
        self.patch.setattr(bus, "_in_order", asyncio.Lock())
        self.patch.setattr(bus, "unfinished", self._unfinished)
        self.patch.setattr("agents_app.turns.held.ringing.send", self._rung)

    def _unfinished(self, session_id: UUID) -> Payload | None:
        """Whoever asks would wait for a loop that only moves by hand."""
        return self.bus.unfinished(bus.session_topic(session_id))

    def _rung(self, args: tuple[str], queue: str) -> None:
        self.queues[queue].append(UUID(args[0]))

    @initialize(kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=4), keeps=st.booleans())
    def begin(self, kinds: list[str], keeps: bool) -> None:
        self.agents.keeps_warm = keeps
        for kind in kinds:
            self._say(kind, self.sessions[0] if self.sessions else None)

    # What people do

    @precondition(lambda self: sum(map(len, self.accepted.values())) < MOST_SAID)
    @step(
        kind=st.sampled_from(KINDS),
        how=st.sampled_from(["say", "say", "say more", "say more", "begin"]),
        which=NUMBERS,
    )
    def speak(self, kind: str, how: str, which: int) -> None:
        if how == "say more":
            self._say_more(kind, self._session(which))
        elif how == "begin" and len(self.sessions) < MOST_SESSIONS:
            Session.objects.filter(pk=self._say(kind)).update(kind=SessionKind.SCHEDULED)
        else:
            self._say(kind, self._session(which))

    @step(which=NUMBERS, place=NUMBERS)
    def stop(self, which: int, place: int) -> None:
        session_id = self._session(which)
        is_open = list(Turn.objects.open().filter(session=session_id).order_by("opened_seq"))
        if is_open:
            turn = is_open[place % len(is_open)]
            assert abort(self.caller, session_id, turn.pk) == turn
        else:
            with pytest.raises(NotFound):
                abort(self.caller, session_id)

    @step(which=NUMBERS, allows=st.booleans())
    def answer(self, which: int, allows: bool) -> None:
        """What is asked, or what ran out and may be allowed still."""
        known = ToolRequest.objects.filter(session__in=self.sessions, status__in=("pending", "expired"))
        requests = list(known.order_by("created_at"))
        if requests:
            self._decide(requests[which % len(requests)], allows=allows)

    @precondition(lambda self: len(self.sessions) > 1)
    @step(which=NUMBERS)
    def delete(self, which: int) -> None:
        session_id = self._session(which)
        gone = [turn.id for turn in self._turns()[session_id]]
        delete(self.caller, session_id)
        self.sessions.remove(session_id)
        self.deleted.append(session_id)
        for turn_id in gone:
            del self.accepted[turn_id]
        self.written.forget(session_id, gone)

    # What workers do

    @rule(picks=st.lists(st.integers(0, 7), min_size=5, max_size=40))
    def work(self, picks: list[int]) -> None:
        for pick in picks:
            if moves := self._moves(is_heard=pick < 6):
                moves[pick % len(moves)]()

    @precondition(lambda self: self.agents.standing)
    @step(which=NUMBERS)
    def let_an_agent_go_on(self, which: int) -> None:
        standing = self.agents.standing
        standing.pop(which % len(standing)).go_on.set()

    # What happens to them

    @step(what=st.sampled_from(FATES), which=NUMBERS)
    def befall(self, what: str, which: int) -> None:
        getattr(self, f"_{what}")(self.lives[NAMES[which % len(NAMES)]])

    def _freeze(self, life: Life) -> None:
        life.is_frozen = True

    def _freeze_until_it_is_lost(self, life: Life) -> None:
        life.is_frozen = True
        self._pass_time(leases.LEASE_ENDS.total_seconds() + 1)
        self._renew()
        leases.sweep()

    def _thaw(self, life: Life) -> None:
        """It, or the life that was longest frozen."""
        frozen = [life for life in self.all_lives if life.is_frozen]
        for thawed in frozen[:1] if life not in frozen else [life]:
            thawed.is_frozen = False

    def _die(self, life: Life) -> None:
        """What it had called and not heard of may have been written."""
        life.is_dead = True

    def _start_again(self, life: Life) -> None:
        if not life.takes_work:
            self._start(life.holder.name)

    def _drain(self, life: Life) -> None:
        life.holder.is_draining = True

    def _end_the_grace(self, life: Life) -> None:
        life.holder.is_draining = True
        for task in life.tasks if life.is_well else []:
            task.cancel()

    @step(which=NUMBERS, is_cut=st.booleans())
    def lose_a_transcript(self, which: int, is_cut: bool) -> None:
        """Between two turns: what a running agent writes is its own."""
        session_id = self._session(which)
        if Turn.objects.active().filter(session=session_id).exists():
            return
        content = transcripts.raw(session_id) or b""
        transcripts.set_aside(session_id)
        if is_cut and content:
            vault = Path(Session.objects.get(pk=session_id).vault_root)
            transcripts.restore(session_id, vault, content[: len(content) // 2])

    @step(how=st.sampled_from(["workers", "readers", "nobody"]))
    def lose_rings(self, how: str) -> None:
        """One of those for workers, all of those for whoever listens, or no more."""
        for queue in self.queues.values():
            del queue[: how == "workers"]
        self.bus.is_deaf = how == "readers"

    # What time does

    @step(seconds=st.sampled_from(TIMES), renews=st.booleans(), sweeps=st.booleans())
    def wait(self, seconds: float, renews: bool, sweeps: bool) -> None:
        self._pass_time(seconds)
        if renews:
            self._renew()
        if sweeps:
            for sweep in (leases.sweep, leases.ring_for_waiting, idling.sweep):
                sweep()

    # What is true all the while

    @invariant()
    def all_is_well(self) -> None:
        self.loop.settle()
        self.written.read_on()
        for turns in self._turns().values():
            self.written.has_no_gaps(turns[0])
            what_runs_is_the_first_that_is_open(turns)
            for turn in turns:
                self.written.has_the_end_of(turn)
            self.written.has_ends_in_order([turn.id for turn in turns if turn.has_run])
        what_waits_is_asked()
        for agent in self.agents.runs:
            assert len(agent.heard) == len(set(agent.heard)), "nobody says the same twice"

    # How it ends

    def teardown(self) -> None:
        try:
            if sys.exc_info()[0] is None:  # else it has failed already
                self._let_all_come_to_its_end()
                self._nothing_is_left()
        finally:
            self.loop.dispose()
            self.patch.undo()
            Session.objects.all().delete()
            living.forget_all()

    def _let_all_come_to_its_end(self) -> None:
        self.bus.is_deaf = False
        for life in self.all_lives:
            life.is_frozen = False
        for name, life in self.lives.items():
            if not life.takes_work:
                self._start(name)
        for _ in range(ROUNDS):
            if not self._is_something_left():
                return
            self._one_round()
        raise AssertionError(f"{self._turns()} after {ROUNDS} rounds")

    def _one_round(self) -> None:
        while self.agents.standing:
            self.agents.standing.pop().go_on.set()
        for request in ToolRequest.objects.pending():
            self._decide(request, allows=False)
        self._work_off()
        self._pass_time(20)
        self._renew()
        leases.sweep()
        leases.ring_for_waiting()
        self.all_is_well()

    def _is_something_left(self) -> bool:
        open_turns = Turn.objects.open().filter(session__in=self.sessions).exists()
        return open_turns or any(not task.done() for life in self._well() for task in life.tasks)

    def _nothing_is_left(self) -> None:
        self.all_is_well()
        self._every_message_is_in_the_turn_that_took_it()
        self._messages_are_counted()
        self._nothing_of_what_was_deleted_is_there()
        assert not any(life.holder.turns for life in self._well())

    def _every_message_is_in_the_turn_that_took_it(self) -> None:
        assert set(self.written.ends) == set(self.accepted)
        for turns in self._turns().values():
            opened = [turn.id for turn in turns]
            assert opened == [turn_id for turn_id in self.accepted if turn_id in opened]
        for turn_id, accepted in self.accepted.items():
            said = Message.objects.filter(turn=turn_id).exclude(source=Speaker.PLATFORM)
            assert [message.content for message in said.order_by("created_at")] == accepted
            assert self.written.ends[turn_id] in self._ends_that_may_be(accepted)

    def _ends_that_may_be(self, accepted: list[str]) -> set[str]:
        """Nothing fails but what was asked to, what was late, and what was lost too often."""
        asked_to = {FAILS[kind] for kind in accepted if kind in FAILS}
        late = {"deadline_exceeded"} if self.passed >= DEADLINE else set()
        return {"done", "aborted", "worker_lost", *asked_to, *late}

    def _nothing_of_what_was_deleted_is_there(self) -> None:
        """But for what the agents of a worker wrote that died, of which nobody could know."""
        for model in (Turn, Message, SessionEvent):
            assert not model.objects.filter(session__in=self.deleted).exists()
        if not any(life.is_dead for life in self.all_lives):
            assert not [each for each in self.deleted if transcripts.config_folder(each).exists()]

    def _messages_are_counted(self) -> None:
        for session in Session.objects.filter(pk__in=self.sessions):
            done = Turn.objects.filter(session=session, status=TurnStatus.DONE)
            said = Message.objects.filter(turn__in=done).exclude(source=Speaker.PLATFORM)
            assert session.message_count == done.count() + said.count()

    # How it is done

    def _say(self, kind: str, session_id: UUID | None = None) -> UUID:
        opened = open_turn(self.caller, Opening(kind, session_id))
        if session_id is None:
            self.sessions.append(opened.session_id)
        self.accepted[opened.turn_id] = [kind]
        return opened.session_id

    def _say_more(self, kind: str, session_id: UUID) -> None:
        turn_id, state = steering.inject(self.caller, session_id, kind)
        assert (turn_id in self.accepted) == (state == TurnStatus.RUNNING)
        self.accepted.setdefault(turn_id, []).append(kind)

    def _decide(self, request: ToolRequest, *, allows: bool) -> None:
        """What is allowed late wakes the session: that is a turn in which nobody said anything."""
        if allows:
            permissions.grant(self.caller, request.pk)
        elif request.status == RequestStatus.PENDING:
            permissions.deny(self.caller, request.pk)
        woken = Turn.objects.filter(session__in=self.sessions).exclude(pk__in=self.accepted)
        self.accepted |= {turn.pk: [] for turn in woken}

    def _moves(self, *, is_heard: bool = True) -> list[Callable[[], None]]:
        """What a worker could do next: be served, and hear of it at once or later, or hear a ring."""
        self.loop.settle()
        hearing = [life for life in self.lives.values() if life.takes_work and self._queue_of(life)]
        return [
            *(partial(self._serve, call, is_heard=is_heard) for call in self._calls()),
            *(partial(self._hear_a_ring, life) for life in hearing),
        ]

    def _session(self, which: int) -> UUID:
        return self.sessions[which % len(self.sessions)]

    def _turns(self) -> dict[UUID, list[TurnRow]]:
        """In the order in which they were opened, by session."""
        turns = Turn.objects.filter(session__in=self.sessions).order_by("opened_seq")
        columns = ("pk", "session_id", "status", "started_at", "session__status", "session__last_seq")
        by_session: dict[UUID, list[TurnRow]] = {session_id: [] for session_id in self.sessions}
        for pk, session_id, status, started_at, of_session, last_seq in turns.values_list(*columns):
            row = TurnRow(pk, session_id, status, started_at is not None, of_session, last_seq)
            by_session[session_id].append(row)
        return by_session

    def _well(self) -> list[Life]:
        return [life for life in self.all_lives if life.is_well]

    def _calls(self) -> list[Call]:
        return [call for call in self.loop.calls if isinstance(call.owner, Life) and call.owner.is_well]

    def _serve(self, call: Call, *, is_heard: bool) -> None:
        call.serve()
        if is_heard:
            self.loop.calls.remove(call)
            call.answer()
        self.written.read_on()

    def _work_off(self) -> None:
        while moves := self._moves():
            moves[0]()

    def _queue_of(self, life: Life) -> list[UUID]:
        return self.queues[ringing.own_queue(life.holder.name)] or self.queues[ringing.SHARED]

    def _hear_a_ring(self, life: Life) -> None:
        context = copy_context()
        context.run(owner.set, life)
        run = run_waiting_turns(self._queue_of(life).pop(0), life.holder, self.agents)
        life.tasks.append(self.loop.create_task(run, context=context))

    def _start(self, name: str) -> None:
        """As a worker process starts."""
        life = self.lives[name] = Life(name)
        self.all_lives.append(life)
        leases.release_predecessor(life.holder)
        living.say_alive(name, life.holder.boot, "turns")
        leases.ring_for_waiting(timedelta())

    def _pass_time(self, seconds: float) -> None:
        self.passed += timedelta(seconds=seconds)
        self.clock.pass_time(seconds)
        self.loop.pass_time(seconds)

    def _renew(self) -> None:
        for life in self._well():
            leases.renew(life.holder)
            if self.lives[life.holder.name] is life:
                living.say_alive(life.holder.name, life.holder.boot, "turns")


def newest_row() -> int:
    return SessionEvent.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


@pytest.mark.usefixtures("workspace")
def test_turns_are_run_once_and_in_order_whatever_happens() -> None:
    if settings.get_current_profile_name() == "soak":
        chosen = settings()
    elif connection.vendor == "sqlite":
        chosen = usual
    else:
        chosen = settings(usual, max_examples=20)  # a server is slower, and the orders are the same
    run_state_machine_as_test(Turns, settings=chosen)

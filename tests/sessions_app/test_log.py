"""The event log: no gap in `seq`, nothing from who lost the turn, no ring before the row can be read."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.db.models import F

from sessions_app.models import EventType, Session, SessionEvent, Turn, TurnStatus, Workspace
from sessions_app.streaming import bus
from sessions_app.streaming.log import ANNOUNCED, LARGEST_RING, Hold, HoldLost, as_payload, record

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

MakeTurn = Callable[..., Turn]
THREADS, EACH = 8, 25


def seqs(session_id: UUID) -> list[int]:
    return list(SessionEvent.objects.after(session_id, 0).values_list("seq", flat=True))


@pytest.fixture
def rung(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What was rung, in order; each ring must find its row committed and readable by others."""
    heard: list[dict[str, Any]] = []

    def ring(topic: str, payload: dict[str, Any]) -> None:
        assert topic == bus.session_topic(UUID(payload["sessionId"]))
        assert not connection.in_atomic_block
        heard.append(payload)

    monkeypatch.setattr(bus, "ring", ring)
    return heard


def in_threads(work: Callable[[int], None]) -> None:
    def and_close(number: int) -> None:
        try:
            work(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(and_close, range(THREADS)))


def test_the_first_seq_is_one_and_the_session_knows_its_last(session: Session) -> None:
    for n in range(1, 4):
        assert record(session.pk, EventType.MODEL, {"model": "m"}).seq == n
    session.refresh_from_db()
    assert session.last_seq == 3


def test_many_threads_write_one_session_without_a_gap(session: Session, rung: list[dict[str, Any]]) -> None:
    def write(number: int) -> None:
        for _ in range(EACH):
            record(session.pk, EventType.MODEL, {"by": number})

    in_threads(write)
    assert seqs(session.pk) == list(range(1, THREADS * EACH + 1))
    assert sorted(payload["seq"] for payload in rung) == seqs(session.pk)


def test_many_threads_write_several_sessions_without_a_gap(
    workspace: Workspace, rung: list[dict[str, Any]]
) -> None:
    sessions = [Session.objects.create(workspace=workspace, model="m", vault_root="/v") for _ in range(3)]

    def write(number: int) -> None:
        for n in range(EACH):
            record(sessions[(number + n) % 3].pk, EventType.MODEL, {"by": number})

    in_threads(write)
    counts = [len(seqs(each.pk)) for each in sessions]
    assert sum(counts) == THREADS * EACH
    assert [seqs(each.pk) for each in sessions] == [list(range(1, count + 1)) for count in counts]


def test_what_is_rolled_back_leaves_no_gap_and_no_ring(session: Session, rung: list[dict[str, Any]]) -> None:
    record(session.pk, EventType.MODEL, {})
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        record(session.pk, EventType.MODEL, {})
        _ = 1 / 0
    record(session.pk, EventType.MODEL, {})
    assert seqs(session.pk) == [1, 2]
    assert [payload["seq"] for payload in rung] == [1, 2]


def test_rings_come_after_the_commit_and_in_order(session: Session, rung: list[dict[str, Any]]) -> None:
    with transaction.atomic():
        record(session.pk, EventType.MODEL, {})
        record(session.pk, EventType.MODEL, {})
        assert rung == []
    assert [payload["seq"] for payload in rung] == [1, 2]


def test_a_ring_that_fails_is_said_and_spoils_nothing(
    session: Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    after: list[str] = []
    monkeypatch.setattr(bus, "ring", lambda *_: 1 / 0)
    with transaction.atomic():
        record(session.pk, EventType.MODEL, {})
        transaction.on_commit(lambda: after.append("rung for the worker"))
    assert (seqs(session.pk), len(after)) == ([1], 1)
    assert "ZeroDivisionError" in caplog.text


def test_a_ring_is_the_event_as_it_is_read(session: Session, rung: list[dict[str, Any]]) -> None:
    record(session.pk, EventType.TEXT, {"block": 0, "content": "In October."})
    assert rung == [as_payload(SessionEvent.objects.get())]
    assert rung[0]["ts"].endswith("Z")
    assert rung[0]["content"] == "In October."


def test_a_large_row_is_announced_and_not_sent(session: Session, rung: list[dict[str, Any]]) -> None:
    record(session.pk, EventType.TOOL_RESULT, {"content": "x" * LARGEST_RING})
    assert rung == [
        {"type": "tool_result", "sessionId": str(session.pk), "turnId": None, "seq": 1, ANNOUNCED: True}
    ]


def test_an_event_of_no_session_is_not_written(workspace: Workspace) -> None:
    with pytest.raises(Session.DoesNotExist):
        record(UUID(int=1), EventType.MODEL, {})


def test_characters_that_are_no_text_are_marked(session: Session) -> None:
    payload = {"content": "a\0b\ud83d", "tool": {"input": {"k\0": ["\udfff", 1, None]}}}
    record(session.pk, EventType.TOOL_RESULT, payload)
    assert SessionEvent.objects.get().payload == {
        "content": "a\ufffdb\ufffd",
        "tool": {"input": {"k\ufffd": ["\ufffd", 1, None]}},
    }


# The fence


def test_who_holds_the_turn_writes(session: Session, turn: MakeTurn) -> None:
    held = turn(TurnStatus.RUNNING)
    assert record(session.pk, EventType.MODEL, {}, hold=Hold(held.pk, 1)).turn_id == held.pk


@pytest.mark.parametrize("status", [TurnStatus.QUEUED, TurnStatus.DONE, TurnStatus.ABORTED])
def test_who_lost_the_turn_writes_nothing(
    session: Session, turn: MakeTurn, status: TurnStatus, rung: list[dict[str, Any]]
) -> None:
    lost = turn(status, attempt=1)
    with pytest.raises(HoldLost):
        record(session.pk, EventType.MODEL, {}, hold=Hold(lost.pk, 1))
    session.refresh_from_db()
    assert (seqs(session.pk), session.last_seq, rung) == ([], 0, [])


def test_an_older_attempt_writes_nothing(session: Session, turn: MakeTurn) -> None:
    held = turn(TurnStatus.RUNNING, attempt=2)
    with pytest.raises(HoldLost):
        record(session.pk, EventType.MODEL, {}, hold=Hold(held.pk, 1))
    assert seqs(session.pk) == []


def test_nobody_writes_for_a_turn_after_it_was_taken_back(session: Session, turn: MakeTurn) -> None:
    """One worker writes on and on while another takes the turn away from it and says so in a row."""
    held = turn(TurnStatus.RUNNING)

    def write_on_and_on(number: int) -> None:
        with pytest.raises(HoldLost):
            for n in range(10_000):
                record(session.pk, EventType.MODEL, {"n": n}, hold=Hold(held.pk, 1))
                if number == 0 and n == EACH:
                    take_away()

    def take_away() -> None:
        with transaction.atomic():
            Turn.objects.filter(pk=held.pk).update(attempt=F("attempt") + 1)
            record(session.pk, EventType.WARNING, {})

    in_threads(write_on_and_on)
    types = list(SessionEvent.objects.after(session.pk, 0).values_list("type", flat=True))
    assert types.count("warning") == 1
    assert types[-1] == "warning"
    assert seqs(session.pk) == list(range(1, len(types) + 1))

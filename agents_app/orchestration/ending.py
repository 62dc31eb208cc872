"""How a session that is driven comes to its end: its status, the row that says so, and the news for whoever
started it, in one transaction. So no end is without its news, whatever dies when.

Rows are locked in this order: the turn, the parent, the child. Whoever ends a child locks its parent first.
"""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone

from agents_app.orchestration import waking
from agents_app.orchestration.models import Supervision, Wake, WakeKind, WakeState
from agents_app.orchestration.wakes import state_change
from agents_app.orchestration.wakes.message import cause_of
from permissions_app import strangers
from sessions_app.models import EventType, Session, SessionStatus, Speaker, Turn
from sessions_app.models.session import LIVE
from sessions_app.streaming.log import record_all

BY_ITSELF = "the parent ended it"
TOLD = {SessionStatus.COMPLETE: EventType.SESSION_COMPLETED, SessionStatus.FAILED: EventType.SESSION_FAILED}


def lock_parent(session: Session) -> None:
    if session.parent_id is not None:
        _lock(Session.objects.filter(pk=session.parent_id))


def lock_parent_of(session_id: UUID) -> None:
    _lock(Session.objects.filter(children=session_id))


def _lock(sessions: QuerySet[Session]) -> None:
    list(sessions.select_for_update(no_key=True, of=("self",)).values_list("pk", flat=True))


def end(session_id: UUID, status: SessionStatus, *, error: str = "", by_parent: bool = False) -> bool:
    """False where it has ended already. Its parent is locked by then."""
    if Session.objects.filter(pk=session_id, status__in=LIVE).update(status=status) != 1:
        return False
    session = Session.objects.get(pk=session_id)
    rows: list[tuple[EventType, dict[str, Any]]] = [(EventType.SESSION_UPDATED, {"status": str(status)})]
    if session.is_driven:
        rows.insert(0, (TOLD[status], {"status": str(status), "errorMessage": error or None}))
        Supervision.objects.filter(session=session_id).update(end_message=error)
    first = record_all(session_id, rows)[0]
    if session.parent_id is not None:
        news = state_change.of(session, status, first.seq, first.created_at, error)
        waking.note(session.parent_id, news, skipped=BY_ITSELF if by_parent else "")
    if waking.has_ended(session.kind, status):
        waking.expire(session_id)
    return True


def fail_if_an_errand(session: Session, error: str) -> None:
    """Its turn did not come to its end, and nobody sits beside it to say it again."""
    if session.is_errand and not Turn.objects.open().filter(session=session).exists():
        end(session.pk, SessionStatus.FAILED, error=error)


def awaits_answer(session: Session, turn: Turn) -> bool:
    """Whether the child asked its parent something in this turn: then its end is not this turn's."""
    if session.parent_id is None:
        return False
    asked = Wake.objects.filter(
        session=session.parent_id, child=session, kind=WakeKind.MESSAGE, cause=cause_of(turn.pk)
    )
    told = asked.filter(state__in=(WakeState.QUEUED, WakeState.DELIVERED), payload__needs_response=True)
    newest = told.order_by("-created_at").values_list("created_at", flat=True).first()
    if newest is None:
        return False
    since = turn.messages.exclude(source=Speaker.PLATFORM).filter(created_at__gt=newest)
    return not since.exists()  # whoever answers while it works still, answers in this turn


def was_deleted(child: Session, who: str) -> None:
    """Before its rows go: whoever waits for it is told that nothing comes any more. What it said may wait
    still, and whether strangers spoke out of it can be asked nobody then."""
    if child.parent_id is None:
        return
    if child.has_read_strangers:
        strangers.mark(child.parent_id)
    if child.status not in LIVE:
        return
    error = f"{who} deleted its chat."
    seq = child.last_seq + 1
    news = state_change.of(child, SessionStatus.FAILED, seq, timezone.now(), error)
    waking.note(child.parent_id, news)

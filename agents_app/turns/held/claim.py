from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from agents_app.turns.held.holder import Holder
from sessions_app.models import EventType, Session, SessionStatus, Turn, TurnStatus
from sessions_app.streaming.log import Hold, record


def claim(session_id: UUID, holder: Holder) -> tuple[Turn, Hold] | None:
    """Takes the next queued turn of a session, unless one of its turns is active. None: nothing to do.

    Whoever's UPDATE hits the row has it; the constraint of one active turn a session settles the rest.
    """
    waiting = (
        Turn.objects.filter(session_id=session_id, status=TurnStatus.QUEUED).order_by("opened_seq").first()
    )
    if waiting is None:
        return None
    try:
        with transaction.atomic():
            if not _take(waiting, holder):
                return None
            _wake(session_id)
    except IntegrityError:
        return None  # another turn of this session is active; its worker claims this one when that is over
    whole = Turn.objects.select_related("session__workspace", "session__created_by")
    turn: Turn | None = whole.filter(pk=waiting.pk).first()
    return (turn, Hold(turn.pk, turn.attempt)) if turn else None  # its session was deleted just now


def _take(waiting: Turn, holder: Holder) -> bool:
    now = timezone.now()
    taken = Turn.objects.filter(pk=waiting.pk, status=TurnStatus.QUEUED, attempt=waiting.attempt).update(
        status=TurnStatus.RUNNING,
        attempt=F("attempt") + 1,
        worker=holder.name,
        boot=holder.boot,
        leased_at=now,
        started_at=waiting.started_at or now,
        takes_more=True,
    )
    return taken == 1


def _wake(session_id: UUID) -> None:
    sleeping = Session.objects.filter(pk=session_id).exclude(status=SessionStatus.RUNNING)
    if sleeping.update(status=SessionStatus.RUNNING):
        record(session_id, EventType.SESSION_UPDATED, {"status": SessionStatus.RUNNING})

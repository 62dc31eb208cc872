"""Leases: a worker renews those of its turns whenever it says that it lives (`living.SAID_EVERY`); a turn of
whom nobody hears any more is taken back."""

import logging
from datetime import timedelta
from uuid import UUID

from django.db import DatabaseError, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from agents_app.errors import AgentError
from agents_app.turns.held import ringing
from agents_app.turns.held.holder import Holder
from agents_app.turns.running import finish, kept
from agents_app.workers import living
from sessions_app.models import EventType, Turn, TurnStatus
from sessions_app.querysets import TurnQuerySet
from sessions_app.streaming.bus import Payload
from sessions_app.streaming.log import Hold, record

log = logging.getLogger(__name__)

LEASE_ENDS = timedelta(seconds=45)
RUNG_AGAIN_AFTER = timedelta(seconds=5)
RESTARTS = 6  # in a row


def renew(holder: Holder) -> int:
    held = Turn.objects.active().filter(boot=holder.boot, pk__in=tuple(holder.turns))
    return held.update(leased_at=timezone.now())


def sweep() -> int:
    """Takes back every turn whose lease has run out."""
    return _take_back_all(Turn.objects.active().filter(leased_at__lt=timezone.now() - LEASE_ENDS))


def release_predecessor(holder: Holder) -> int:
    """A worker that starts again under its name takes back at once what its last life held."""
    return _take_back_all(Turn.objects.active().filter(worker=holder.name).exclude(boot=holder.boot))


def ring_for_waiting(after: timedelta = RUNG_AGAIN_AFTER) -> int:
    """Rings again for turns that stayed queued: their ring was lost, or its worker was. Not while no worker
    lives: what nobody takes would fill the broker's memory."""
    if not living.count("turns"):
        return 0
    waiting = Turn.objects.filter(status=TurnStatus.QUEUED, created_at__lt=timezone.now() - after)
    free = waiting.exclude(session__turns__in=Turn.objects.active())
    sessions: set[UUID] = set(free.values_list("session_id", flat=True))
    for session_id in sessions:
        ringing.ring_workers(session_id)
        _tell_that_it_waits(session_id)
    return len(sessions)


@transaction.atomic
def _tell_that_it_waits(session_id: UUID) -> None:
    """Once: all workers are at work, so the person is told that it waits for one. Its row is locked, so that
    it is not claimed or stopped before that is written."""
    turns = Turn.objects.filter(status=TurnStatus.QUEUED)
    first = turns.filter(session=session_id).order_by("opened_seq").select_for_update().first()
    if first is None or first.events.filter(type=EventType.TURN_WAITING, payload__reason="workers").exists():
        return
    before = turns.filter(created_at__lte=first.created_at).count()
    record(session_id, EventType.TURN_WAITING, {"reason": "workers", "position": before}, turn_id=first.pk)


def _take_back_all(lost: TurnQuerySet) -> int:
    return sum(_taken_back(turn) for turn in lost.select_related("session"))


def _taken_back(turn: Turn) -> bool:
    """One that cannot be taken back does not keep the others from it; the next sweep tries it again."""
    try:
        return _take_back(turn, kept.unfinished(turn))
    except DatabaseError:
        log.exception("Turn %s could not be taken back.", turn.pk)
        return False


@transaction.atomic
def _take_back(turn: Turn, unfinished: Payload | None = None) -> bool:
    """The crash rule: a session of its own is run again from where its transcript ends; a child or a
    scheduled run fails, visibly. What people had read of an `unfinished` text is kept, whatever becomes of
    it. False where it has moved since: its worker lives, or another was quicker."""
    hold = Hold(turn.pk, turn.attempt)
    unmoved = finish.held(hold).filter(leased_at=turn.leased_at).select_for_update().first()
    if unmoved is None:
        return False
    kept.keep(turn, hold, unfinished)
    if unmoved.abort_requested_at:
        finish.aborted(turn, hold)
    elif turn.session.is_errand or turn.restarts >= RESTARTS:
        error = AgentError("worker_lost", _("The worker that ran this was lost."))
        finish.failed(turn, hold, EventType.TYPED_ERROR, error.as_payload())
    else:
        finish.put_back(hold)
        Turn.objects.filter(pk=turn.pk).update(restarts=F("restarts") + 1)
    transaction.on_commit(lambda: ringing.ring_workers(turn.session_id), robust=True)
    log.warning("Turn %s was lost by %s and is taken back.", turn.pk, turn.worker)
    return True

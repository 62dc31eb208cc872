"""Stopping a turn: answered at once, whether it runs or still waits."""

from functools import partial
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from agents_app.turns.running import finish
from agents_app.turns.running.announcing import announce
from sessions_app import services
from sessions_app.access.caller import Caller
from sessions_app.errors import NotFound
from sessions_app.models import Turn, TurnStatus
from sessions_app.streaming import bus


@transaction.atomic
def abort(caller: Caller, session_id: UUID, turn_id: UUID | None = None) -> Turn:
    """Stops the named turn, else the one that runs, else the first that waits."""
    services.check_writable(caller, session_id)
    turns = Turn.objects.open().filter(session_id=session_id).order_by("opened_seq")
    turn = turns.filter(pk=turn_id).first() if turn_id else turns.first()
    if turn is None:
        raise NotFound(_("Nothing is running or waiting in this session."))
    if not stop(turn, caller.name):
        raise NotFound(_("It has just ended by itself."))
    return turn  # type: ignore[no-any-return]


@transaction.atomic
def stop(turn: Turn, by: str) -> bool:
    """Thrice, because a worker may claim it, or put it back, between one look and the next."""
    return any(each(turn, by) for each in (_abort_waiting, _ask_worker, _abort_waiting))


def _abort_waiting(turn: Turn, by: str) -> bool:
    now = timezone.now()
    waiting = Turn.objects.filter(pk=turn.pk, status=TurnStatus.QUEUED)
    if not waiting.update(status=TurnStatus.ABORTED, ended_at=now, abort_requested_at=now, aborted_by=by):
        return False
    finish.tell_aborted(turn)
    transaction.on_commit(lambda: announce(turn.pk), robust=True)
    return True


def _ask_worker(turn: Turn, by: str) -> bool:
    running = Turn.objects.active().filter(pk=turn.pk)
    if not running.update(abort_requested_at=timezone.now(), aborted_by=by):
        return False
    transaction.on_commit(partial(bus.ring, bus.turn_topic(turn.pk), {"type": "abort"}))
    return True

"""The news that a turn is over. A signal dies with its process, so a column says whether it was told."""

import logging
from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from agents_app.signals import turn_finished
from sessions_app.models import Turn

log = logging.getLogger(__name__)

AGAIN_AFTER = timedelta(seconds=10)
AT_ONCE = 200


def announce(turn_id: UUID) -> None:
    """Called after commit. One that a receiver could not take is told again by the sweep."""
    found = Turn.objects.over().filter(pk=turn_id, announced_at=None)
    turn = found.select_related("session__workspace", "session__created_by").first()
    if turn is None:
        return
    failures = [answer for _, answer in turn_finished.send_robust(sender=Turn, turn=turn) if answer]
    for failure in failures:
        log.error("The end of turn %s could not be told; it is told again.", turn_id, exc_info=failure)
    if not failures:
        found.update(announced_at=timezone.now())


def sweep() -> int:
    """Tells what was not told, the oldest first."""
    before = timezone.now() - AGAIN_AFTER
    untold = Turn.objects.over().filter(announced_at=None, ended_at__lt=before).order_by("ended_at")
    turns = list(untold.values_list("pk", flat=True)[:AT_ONCE])
    for turn_id in turns:
        announce(turn_id)
    return len(turns)

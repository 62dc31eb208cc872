"""Sessions in which nothing happens any more come to their end by themselves. A message wakes them again."""

from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from agents_app.orchestration import ending
from sessions_app.models import Session, SessionKind, SessionStatus, Turn
from sessions_app.models.session import LIVE

ENDS_AFTER = timedelta(minutes=15)
ORCHESTRATOR_ENDS_AFTER = timedelta(days=7)
MOST_AT_ONCE = 200  # the next sweep takes the next


def sweep() -> int:
    return sum(_complete(session_id) for session_id in idle().values_list("pk", flat=True)[:MOST_AT_ONCE])


def idle() -> QuerySet[Session]:
    now = timezone.now()
    is_orchestrator = Q(kind=SessionKind.ORCHESTRATOR)
    children = Session.objects.filter(parent=OuterRef("pk"), status__in=LIVE)
    quiet = Q(~is_orchestrator, last_accessed__lt=now - ENDS_AFTER) | Q(
        is_orchestrator, last_accessed__lt=now - ORCHESTRATOR_ENDS_AFTER
    )
    turns = Turn.objects.open().filter(session=OuterRef("pk"))
    found: QuerySet[Session] = Session.objects.filter(
        quiet, ~Exists(children), ~Exists(turns), status=SessionStatus.RUNNING
    )
    return found


@transaction.atomic
def _complete(session_id: UUID) -> bool:
    """Looked at again with its row locked: whoever says something to it locks it too."""
    ending.lock_parent_of(session_id)
    Session.objects.select_for_update().filter(pk=session_id).first()
    is_idle = idle().filter(pk=session_id).exists()
    return is_idle and ending.end(session_id, SessionStatus.COMPLETE)

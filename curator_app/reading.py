"""Named reads for the API and the pages, through whom they may be seen by."""

from dataclasses import dataclass
from datetime import date
from uuid import UUID

from django.db.models import Count

from curator_app.models import CuratorRun, RunStatus
from sessions_app import reading as sessions
from sessions_app.access.caller import Caller

MOST = 20
MOST_DAYS = 60
MOST_ENTRIES = 500


@dataclass(frozen=True)
class LoggedDay:
    day: date
    entries: int
    chats: int


def runs(caller: Caller, session_id: UUID, most: int = MOST) -> list[CuratorRun]:
    """Of one session, the newest first; those that were passed over are none."""
    session = sessions.visible(caller, session_id)
    found = CuratorRun.objects.filter(session=session).exclude(status=RunStatus.SKIPPED)
    return list(found.order_by("-created_at", "-pk")[:most])


def days(caller: Caller) -> list[LoggedDay]:
    """On which something was logged, the newest first."""
    logged = CuratorRun.objects.visible_to(caller).filter(day__isnull=False)
    counted = logged.values("day").annotate(entries=Count("pk"), chats=Count("session", distinct=True))
    return [LoggedDay(**each) for each in counted.order_by("-day")[:MOST_DAYS]]


def entries(caller: Caller, day: date) -> list[CuratorRun]:
    """What was logged on it, in the order of the day."""
    logged = CuratorRun.objects.visible_to(caller).filter(day=day).select_related("session__workspace")
    return list(logged.order_by("started_at", "pk")[:MOST_ENTRIES])

"""Looking after children while nobody does: who is silent, and who is to be looked at anyway.

Nothing is remembered between two looks. What is due follows from the rows and the clock, and the key of its
wake says which one it is; so a look that was missed, or comes twice, changes nothing.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, Subquery
from django.utils import timezone

from agents_app.orchestration import waking
from agents_app.orchestration.models import Supervision, Wake, WakeKind, WakeState
from agents_app.orchestration.wakes import checkup, watchdog
from sessions_app.models import EventType, Session, SessionEvent, SessionStatus, Turn, TurnStatus
from sessions_app.models.session import LIVE
from sessions_app.streaming import bus

MINUTES_BETWEEN = (5, 10, 20, 40, 60)  # of one silence; the last for good
MOST_AT_ONCE = 1_000


@dataclass(frozen=True)
class Silent:
    """A child that works and is not heard of."""

    child_id: UUID
    parent_id: UUID
    slug: str
    seq: int
    since: datetime
    after: int  # seconds
    heard_text: int

    def step(self, now: datetime) -> int | None:
        """How many times this silence has been long enough to be told, less one; None: it is not."""
        over = (now - self.since).total_seconds() - self.after
        if over < 0:
            return None
        step = 0
        for minutes in MINUTES_BETWEEN[:-1]:
            if over < minutes * 60:
                return step
            over -= minutes * 60
            step += 1
        return step + int(over // (MINUTES_BETWEEN[-1] * 60))


def sweep(now: datetime | None = None) -> int:
    """How many wakes were noted."""
    at = now or timezone.now()
    return look_for_silence(at) + look_at_all(at)


def look_for_silence(now: datetime) -> int:
    due = [(child, step) for child in _working(now) if (step := child.step(now)) is not None]
    if not due:
        return 0
    told = set(
        Wake.objects.filter(
            kind=WakeKind.WATCHDOG, child__in=[child.child_id for child, _step in due]
        ).values_list("dedupe_key", flat=True)
    )
    waiting = set(Wake.objects.waiting().filter(kind=WakeKind.WATCHDOG).values_list("child_id", flat=True))
    return sum(
        _bark(child, step, now)
        for child, step in due
        if child.child_id not in waiting
        and watchdog.key_of(child.child_id, child.seq, step) not in told
        and not _writes(child, now)
    )


def _working(now: datetime) -> list[Silent]:
    """Queued, or waiting for a person, is not silence; nor is what said that it would be quiet."""
    rows = SessionEvent.objects.filter(session=OuterRef("session")).order_by("-seq")
    at_work = Turn.objects.filter(
        Q(session__supervision__quiet_until=None) | Q(session__supervision__quiet_until__lte=now),
        status=TurnStatus.RUNNING,
        session__status=SessionStatus.RUNNING,
        session__parent__isnull=False,
    )
    found = at_work.annotate(heard_at=Subquery(rows.values("created_at")[:1])).values_list(
        "session_id",
        "session__parent_id",
        "session__agent_slug",
        "session__last_seq",
        "heard_at",
        "session__supervision__silent_after",
        "session__supervision__heard_text",
        "session__supervision__heard_at",
        "session__supervision__quiet_until",
    )[:MOST_AT_ONCE]
    return [_silent(*row) for row in found if row[4] is not None]


def _silent(*row: Any) -> Silent:
    child_id, parent_id, slug, seq, heard_at, after, heard_text, wrote_at, quiet_until = row
    since = max(at for at in (heard_at, wrote_at, quiet_until) if at is not None)
    return Silent(child_id, parent_id, slug, seq, since, after or 300, heard_text or 0)


def _writes(child: Silent, now: datetime) -> bool:
    """What is being written is in no row until it is finished: the bus has it so far."""
    so_far = bus.unfinished(child.child_id)
    length = len(str(so_far.get("delta", ""))) if so_far else 0
    if length <= child.heard_text:
        return False
    Supervision.objects.filter(session=child.child_id).update(heard_text=length, heard_at=now)
    return True


@transaction.atomic
def _bark(child: Silent, step: int, now: datetime) -> bool:
    said = SessionEvent.objects.filter(session=child.child_id, type=EventType.AGENT_STATUS).order_by("-seq")
    last = said.values_list("payload__status", flat=True).first() or ""
    seconds = round((now - child.since).total_seconds())
    news = watchdog.of(
        child.child_id, child.slug, seq=child.seq, step=step, seconds=seconds, status=str(last)
    )
    return waking.note(child.parent_id, news) is not None


def look_at_all(now: datetime) -> int:
    """Of each session whose file names a cadence, once each time; where no child lives, without a model."""
    living = Session.objects.filter(parent=OuterRef("session"), status__in=LIVE)
    watched = Supervision.objects.filter(
        checkup_minutes__isnull=False, session__status__in=LIVE, paused_at=None
    )
    found = watched.annotate(has_children=Exists(living), began=F("session__created_at"))
    noted = _checkups_of(found)
    return sum(
        _check(row.pk, slot, has_children=row.has_children, last=noted[row.pk])
        for row in found[:MOST_AT_ONCE]
        if (slot := int((now - row.began).total_seconds() // ((row.checkup_minutes or 1) * 60))) > 0
    )


def _checkups_of(watched: Any) -> defaultdict[UUID, tuple[str, str]]:
    """The newest of each: its key and state."""
    newest: defaultdict[UUID, tuple[str, str]] = defaultdict(lambda: ("", ""))
    rows = Wake.objects.filter(kind=WakeKind.CHECKUP, session__in=watched.values("pk"))
    newer = Wake.objects.filter(
        kind=WakeKind.CHECKUP, session=OuterRef("session"), created_at__gt=OuterRef("created_at")
    )
    for session_id, key, state in rows.filter(~Exists(newer)).values_list(
        "session_id", "dedupe_key", "state"
    ):
        newest[session_id] = (key, state)
    return newest


@transaction.atomic
def _check(session_id: UUID, slot: int, *, has_children: bool, last: tuple[str, str]) -> bool:
    key, state = last
    if key == checkup.key_of(slot) or state == WakeState.QUEUED:
        return False
    if not has_children and state in ("", WakeState.SKIPPED):
        return False  # that nobody lives is told once, and not all night
    news = checkup.of(session_id, slot)
    return waking.note(session_id, news, skipped="" if has_children else checkup.NOBODY) is not None

"""A session and those that it started, as people look at them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from agents_app.orchestration.waking import can_be_woken
from sessions_app.access.caller import Caller
from sessions_app.models import EventType, Session, SessionEvent, SessionKind, SessionStatus, Turn, TurnStatus
from sessions_app.models.session import LIVE

MOST = 100
BRIEF = 10  # seconds of silence that nobody needs to know of
STEP = 5

WORDS: dict[str, tuple[str, Promise]] = {
    "working": ("live", _("working")),
    "queued": ("live", _("waits for its turn")),
    "waiting": ("need", _("waits for an answer")),
    "paused": ("need", _("paused")),
    "attentive": ("good", _("waits for its children")),
    "idle": ("", _("idle")),
    "complete": ("", _("complete")),
    "failed": ("bad", _("failed")),
}


@dataclass(frozen=True)
class Member:
    session: Session
    state: str
    silent_for: int  # seconds, while it works
    said: str  # what it said last of itself
    error: str
    may_end: bool  # whoever asked

    @property
    def dot(self) -> str:
        return WORDS[self.state][0]

    @property
    def word(self) -> Promise:
        return WORDS[self.state][1]

    @property
    def is_live(self) -> bool:
        return self.session.status in LIVE

    @property
    def short_id(self) -> str:
        return self.session.pk.hex[:8]


def children_of(session_id: UUID, caller: Caller) -> list[Member]:
    """The newest of those that the caller may see, the oldest first."""
    writable = Session.objects.writable_by(caller).filter(pk=OuterRef("pk"))
    found = Session.objects.visible_to(caller).filter(parent=session_id).annotate(may_write=Exists(writable))
    return members(found.order_by("-created_at")[:MOST])[::-1]


def members(sessions: QuerySet[Session]) -> list[Member]:
    """In one query."""
    turns = Turn.objects.filter(session=OuterRef("pk"))
    rows = SessionEvent.objects.filter(session=OuterRef("pk")).order_by("-seq")
    children = Session.objects.filter(parent=OuterRef("pk"), status__in=LIVE)
    found = sessions.select_related("workspace", "created_by").annotate(
        runs=Exists(turns.filter(status=TurnStatus.RUNNING)),
        waits=Exists(turns.filter(status=TurnStatus.WAITING)),
        is_queued=Exists(turns.filter(status=TurnStatus.QUEUED)),
        has_children=Exists(children),
        heard_at=Subquery(rows.values("created_at")[:1]),
        said=Subquery(rows.filter(type=EventType.AGENT_STATUS).values("payload__status")[:1]),
        paused_at=F("supervision__paused_at"),
        end_message=F("supervision__end_message"),
    )
    now = timezone.now()
    return [_member(each, now) for each in found]


def _member(session: Session, now: datetime) -> Member:
    facts = vars(session)
    state = _state(session)
    silent = (now - facts["heard_at"]).total_seconds() if state == "working" and facts["heard_at"] else 0
    return Member(
        session,
        state,
        int(silent // STEP) * STEP if silent >= BRIEF else 0,
        str(facts["said"] or ""),
        facts["end_message"] or "" if session.status == SessionStatus.FAILED else "",
        session.status in LIVE and facts.get("may_write", False),
    )


def _state(session: Session) -> str:
    facts = vars(session)
    if session.status not in LIVE:
        return "paused" if facts["paused_at"] and can_be_woken(session) else session.status
    told = (("waits", "waiting"), ("runs", "working"), ("paused_at", "paused"), ("is_queued", "queued"))
    found = next((state for name, state in told if facts[name]), None)
    return found or ("attentive" if facts["has_children"] else "idle")


def parents(caller: Caller, workspace_id: int) -> list[Member]:
    """All that started others or are there to: those that live first."""
    children = Session.objects.filter(parent=OuterRef("pk"))
    found = Session.objects.visible_to(caller).filter(
        Q(kind=SessionKind.ORCHESTRATOR) | Exists(children), parent=None, workspace=workspace_id
    )
    newest = members(found.order_by("-last_accessed")[:MOST])
    return sorted(newest, key=lambda each: not each.is_live)


def cost_of(session_id: UUID) -> tuple[Decimal, Decimal]:
    """Its own, and with all that it started."""
    family = Session.objects.filter(Q(pk=session_id) | Q(parent=session_id))
    costs = dict(family.values_list("pk", "cost_usd"))
    return costs.get(session_id, Decimal(0)), sum(costs.values(), Decimal(0))


def count_live(found: Iterable[Member]) -> int:
    return sum(each.is_live for each in found)

"""A look at all children that live, every so many minutes."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, Subquery
from django.utils import timezone

from agents_app.orchestration.models import Wake, WakeKind
from agents_app.orchestration.wakes.news import News
from sessions_app.models import EventType, Session, SessionEvent
from sessions_app.models.session import LIVE

NOBODY = "no child lives"


def of(session_id: UUID, slot: int) -> News:
    payload = {"snapshot": snapshot(session_id)}
    return News(WakeKind.CHECKUP, key_of(slot), f"cadence, number {slot}", payload)


def key_of(slot: int) -> str:
    return f"checkup {slot}"


def snapshot(session_id: UUID, now: datetime | None = None) -> list[dict[str, Any]]:
    rows = SessionEvent.objects.filter(session=OuterRef("pk")).order_by("-seq")
    said = rows.filter(type=EventType.AGENT_STATUS)
    children = Session.objects.filter(parent=session_id, status__in=LIVE).order_by("created_at")
    found = children.annotate(
        heard_at=Subquery(rows.values("created_at")[:1]), said=Subquery(said.values("payload__status")[:1])
    )
    at = now or timezone.now()
    return [
        {
            "session_id": str(pk),
            "slug": slug,
            "seconds_since_last_event": round((at - heard_at).total_seconds()) if heard_at else None,
            "last_status": last or status,
        }
        for pk, slug, heard_at, last, status in found.values_list(
            "pk", "agent_slug", "heard_at", "said", "status"
        )
    ]


def needless(wake: Wake) -> str:
    """What it tells is what is there when it is told."""
    wake.payload["snapshot"] = snapshot(wake.session_id)
    return "" if wake.payload["snapshot"] else NOBODY

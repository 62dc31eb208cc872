"""What is told of a run: in the session's metadata with the keys of its document, and over the wire."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from curator_app.models import ENDED, CuratorRun, RunStatus

SHOWN = (RunStatus.DONE, RunStatus.FAILED)


def last_run(run: CuratorRun) -> dict[str, Any]:
    told: dict[str, Any] = {
        "ts": _time(run),
        "exchange_number": run.exchange_number,
        "actions": run.actions,
        "status": run.status,
    }
    if run.title_after:
        told["new_title"] = run.title_after
    if run.error:
        told["error"] = run.error
    return told


def on_the_wire(run: CuratorRun) -> dict[str, Any]:
    return {
        "id": str(run.pk),
        "ts": _time(run),
        "exchangeNumber": run.exchange_number,
        "actions": run.actions,
        "newTitle": run.title_after or None,
        "status": run.status,
        "error": run.error or None,
    }


def ended(session_id: UUID) -> QuerySet[CuratorRun]:
    return CuratorRun.objects.filter(session=session_id, status__in=SHOWN).order_by("-ended_at", "-pk")


def contributed(session_id: UUID) -> dict[str, Any]:
    run = ended(session_id).first()
    return {"curator_last_run": on_the_wire(run) if run else None}


def _time(run: CuratorRun) -> str:
    at = (run.ended_at or run.created_at) if run.status in ENDED else run.created_at
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")

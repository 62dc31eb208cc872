"""How much there is, of what a caller may see, and what the process that answers holds in memory."""

import resource
from pathlib import Path
from typing import Any

from django.db.models import Count, F, Q

from sessions_app.access.caller import Caller
from sessions_app.models import Session, SessionTag, Turn
from sessions_app.search.finding import Scope
from sessions_app.search.models import Chunk, ContentType

PAGE = resource.getpagesize()


def stats(caller: Caller) -> dict[str, Any]:
    sessions = Session.objects.visible_to(caller)
    counted = sessions.aggregate(
        total=Count("pk"), archived=Count("pk", filter=Q(archived=True)), children=Count("parent")
    )
    turns = Turn.objects.filter(session__in=sessions.values("pk"))
    chunks = Chunk.objects.filter(Scope.of_caller(caller).chunks)
    notes = ~Q(manifest__content_type=ContentType.SESSION)
    indexed = chunks.aggregate(chunks=Count("pk"), notes=Count("manifest", filter=notes, distinct=True))
    return {
        "sessions": {
            **counted,
            "by_source": _by(sessions, "source"),
            "by_agent": _by(sessions, "agent_slug"),
        },
        "turns": {"total": turns.count(), "by_status": _by(turns, "status")},
        "tags": SessionTag.objects.filter(session__in=sessions.values("pk")).values("tag").distinct().count(),
        "indexed": indexed,
        "memory": {"mb": round(_memory() / 1e6, 1)},
    }


def _by(rows: Any, name: str) -> dict[str, int]:
    counts = rows.order_by().values(key=F(name)).annotate(count=Count("pk"))
    return {row["key"]: row["count"] for row in counts}


def _memory() -> int:
    """What is in memory now; where the system does not say it, the most that ever was."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE
    except (OSError, ValueError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

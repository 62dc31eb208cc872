"""What woke whom, and what it cost."""

from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from django.db.models import Count, Sum

from agents_app.orchestration.models import Wake, WakeKind
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.errors import NotFound

MOST = 200


@dataclass(frozen=True)
class Cost:
    kind: str
    count: int
    usd: Decimal

    @property
    def label(self) -> str:
        return str(WakeKind(self.kind).label)


def wakes(caller: Caller, slug: str, session_id: UUID | None = None) -> tuple[list[Wake], list[Cost]]:
    """The newest, and what all of each kind have cost."""
    if not Workspace.objects.visible_to(caller).filter(slug=slug).exists():
        raise NotFound
    found = Wake.objects.visible_to(caller).filter(session__workspace__slug=slug)
    if session_id is not None:
        found = found.filter(session=session_id)
    by_kind = found.order_by("kind").values_list("kind").annotate(Count("pk"), Sum("cost_usd"))
    newest = list(found.select_related("session", "child").order_by("-created_at", "-pk")[:MOST])
    return newest, [Cost(*row) for row in by_kind]

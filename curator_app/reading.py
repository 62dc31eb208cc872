"""Named reads for the API and the pages."""

from uuid import UUID

from curator_app.models import CuratorRun, RunStatus
from sessions_app import reading as sessions
from sessions_app.access.caller import Caller

MOST = 20


def runs(caller: Caller, session_id: UUID, most: int = MOST) -> list[CuratorRun]:
    """Of one session, the newest first; those that were passed over are none."""
    session = sessions.visible(caller, session_id)
    found = CuratorRun.objects.filter(session=session).exclude(status=RunStatus.SKIPPED)
    return list(found.order_by("-created_at", "-pk")[:most])

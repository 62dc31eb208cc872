"""A child has come to an end. One that is spoken to again and ends a second time is told a second time: the
key is the row of its stream that says so."""

from datetime import datetime

from agents_app.orchestration.models import Wake, WakeKind
from agents_app.orchestration.wakes.news import News
from sessions_app.models import Session


def of(child: Session, status: str, seq: int, at: datetime, error: str) -> News:
    payload = {
        "from_session_id": str(child.pk),
        "from_agent_slug": child.agent_slug,
        "new_status": str(status),
        "completed_at": at.isoformat().replace("+00:00", "Z"),
    }
    if error:
        payload["error_message"] = error
    return News(WakeKind.STATE_CHANGE, f"end {child.pk} {seq}", f"row {seq} of the child", payload, child.pk)


def needless(wake: Wake) -> str:
    return ""

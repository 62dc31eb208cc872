"""A child that works has not been heard of for a while: it may be stuck."""

from uuid import UUID

from agents_app.orchestration.models import Wake, WakeKind
from agents_app.orchestration.wakes.news import News
from sessions_app.models import Session, SessionStatus

SEQ = "last_seq"


def of(child_id: UUID, slug: str, *, seq: int, step: int, seconds: int, status: str) -> News:
    payload = {
        "from_session_id": str(child_id),
        "from_agent_slug": slug,
        "seconds_since_last_event": seconds,
        "last_status_message": status or None,
        SEQ: seq,
    }
    key = key_of(child_id, seq, step)
    return News(WakeKind.WATCHDOG, key, f"silence after row {seq}, number {step + 1}", payload, child_id)


def key_of(child_id: UUID, seq: int, step: int) -> str:
    return f"silence {child_id} {seq} {step}"


def needless(wake: Wake) -> str:
    seqs = Session.objects.filter(
        parent=wake.session_id, pk__in=[wake.child_id], status=SessionStatus.RUNNING
    )
    if seqs.filter(last_seq=wake.payload[SEQ]).exists():
        return ""
    return "it was heard of meanwhile"

"""A child speaks to whoever started it."""

from uuid import UUID

from agents_app.orchestration.models import Wake, WakeKind
from agents_app.orchestration.wakes.news import News
from sessions_app.models import Session


def of(child: Session, turn_id: UUID | None, use: str, body: str, *, asks: bool, options: list[str]) -> News:
    payload = {
        "from_session_id": str(child.pk),
        "from_agent_slug": child.agent_slug,
        "body": body,
        "needs_response": asks,
        "request_id": child.parent_tool_use_id,
        "options": options,
    }
    return News(WakeKind.MESSAGE, f"message {child.pk} {use}", cause_of(turn_id), payload, child.pk)


def cause_of(turn_id: UUID | None) -> str:
    return f"turn {turn_id}" if turn_id else "its tool"


def needless(wake: Wake) -> str:
    return ""

"""The time has come that an agent's file names."""

from datetime import datetime

from agents_app.orchestration.models import Wake, WakeKind
from agents_app.orchestration.wakes.news import News

WAITS = "the one before it still waits"
NO_TEXT = "its file says nothing to be told"


def of(due_at: datetime, text: str) -> News:
    due = due_at.isoformat().replace("+00:00", "Z")
    return News(WakeKind.HEARTBEAT, f"heartbeat {due}", f"due at {due}", {"text": text})


def needless(wake: Wake) -> str:
    return ""

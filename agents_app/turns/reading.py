"""What runs at this moment."""

import json
from typing import Any
from uuid import UUID

from sessions_app import reading
from sessions_app.access.caller import Caller
from sessions_app.models import EventType, Session, SessionEvent, Turn, TurnStatus

LONGEST_SUMMARY = 120


def active_streams(caller: Caller) -> list[dict[str, Any]]:
    turns = (
        Turn.objects.active().filter(session__in=Session.objects.visible_to(caller)).order_by("started_at")
    )
    return [
        {"session_id": turn.session_id, "turn_id": turn.pk, "started_at": turn.started_at.isoformat()}
        for turn in turns
    ]


def streaming_status(caller: Caller, session_id: UUID) -> dict[str, Any]:
    session = reading.visible(caller, session_id)
    turns = list(Turn.objects.open().filter(session=session).order_by("opened_seq"))
    running = next((turn for turn in turns if turn.status != TurnStatus.QUEUED), None)
    tool = _current_tool(running) if running else None
    return {
        "is_streaming": running is not None,
        "turn_id": running.pk if running else None,
        "current_tool": tool["name"] if tool else None,
        "current_tool_summary": _summary(tool["input"]) if tool else None,
        "queued": len(turns) - (running is not None),
    }


def _current_tool(turn: Turn) -> dict[str, Any] | None:
    """The newest tool that was used and has not answered yet."""
    kinds = (EventType.TOOL_USE, EventType.TOOL_RESULT)
    events = SessionEvent.objects.filter(turn=turn, type__in=kinds).order_by("-seq")[:20]
    answered = {event.payload["toolUseId"] for event in events if event.type == EventType.TOOL_RESULT}
    used = (event.payload["tool"] for event in events if event.type == EventType.TOOL_USE)
    return next((tool for tool in used if tool["id"] not in answered), None)


def _summary(given: dict[str, Any]) -> str:
    for name in ("command", "file_path", "path", "pattern", "url", "query", "description"):
        if isinstance(given.get(name), str):
            return str(given[name])[:LONGEST_SUMMARY]
    return json.dumps(given)[:LONGEST_SUMMARY]

"""Conversations that are over, made quickly: as rows, without an agent."""

from typing import Any
from uuid import UUID

from django.utils import timezone

from agents_app.turns.opening import Opened, Opening, open_turn
from sessions_app.access.caller import Caller
from sessions_app.log import record_all
from sessions_app.models import EventType, Turn, TurnStatus

Row = tuple[EventType, dict[str, Any]]
ANSWER = "The **quinces** are ripe in October, after the first frost.\n\n- see `Garden/Quinces.md`\n- or ask"
DONE = {
    "model": "sonnet",
    "usage": {"inputTokens": 100, "outputTokens": 20},
    "costUsd": 0.001,
    "response": ANSWER,
}


def said_and_answered(
    caller: Caller, text: str, *, session: UUID | None = None, answer: str = ANSWER, **end: Any
) -> Opened:
    opened = open_turn(caller, Opening(text, session_id=session))
    tool = {"id": f"use-{opened.turn_id}", "name": "Read", "input": {"file_path": "Garden/Quinces.md"}}
    result = {
        "toolUseId": tool["id"],
        "content": "Ripe.",
        "isError": False,
        "durationMs": 20,
        "truncated": False,
    }
    rows: list[Row] = [
        (EventType.THINKING, {"block": 0, "content": "A note may say so."}),
        (EventType.TOOL_USE, {"tool": tool, "parentToolUseId": None}),
        (EventType.TOOL_RESULT, result),
        (EventType.TEXT, {"block": 1, "content": answer}),
    ]
    ended(opened, TurnStatus.DONE, [*rows, (EventType.DONE, {**DONE, **end})])
    return opened


def ended(opened: Opened, status: TurnStatus, rows: list[Row]) -> None:
    Turn.objects.filter(pk=opened.turn_id).update(status=status, ended_at=timezone.now())
    record_all(opened.session_id, rows, turn_id=opened.turn_id)

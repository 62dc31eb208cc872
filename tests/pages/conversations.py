"""Conversations that are over, made quickly: as rows, without an agent."""

from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from agents_app.turns.said.opening import Opened, Opening, open_turn
from sessions_app.access.caller import Caller
from sessions_app.access.services import caller_of_user
from sessions_app.models import EventType, Turn, TurnStatus
from sessions_app.streaming.log import record_all

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


@transaction.atomic
def a_past(turns: int, first: str = "question 0") -> UUID:
    """Of the first person, for a server that runs: no worker hears of it before all of it is over."""
    caller = caller_of_user(User.objects.order_by("pk")[0])
    begun = said_and_answered(caller, first)
    for number in range(1, turns):
        said_and_answered(caller, f"question {number}", session=begun.session_id)
    return begun.session_id


def ended(opened: Opened, status: TurnStatus, rows: list[Row]) -> None:
    Turn.objects.filter(pk=opened.turn_id).update(status=status, ended_at=timezone.now())
    record_all(opened.session_id, rows, turn_id=opened.turn_id)

"""Requests as a worker leaves them in the rows, for tests in which no agent runs."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction
from django.utils import timezone

from agents_app.turns.held.claim import claim
from agents_app.turns.held.holder import Holder
from permissions_app.models import RequestKind, ToolRequest
from permissions_app.services import ask
from permissions_app.services.asked import NewRequest
from sessions_app.models import Turn
from sessions_app.streaming.log import Hold


def asks(session_id: Any, *, is_question: bool = False, **more: Any) -> ToolRequest:
    """A worker takes what is said to the session, and its agent asks."""
    turn = Turn.objects.active().filter(session=session_id).first()
    if turn is None:
        claimed = claim(UUID(str(session_id)), Holder("w"))
        assert claimed
        turn = claimed[0]
    wanted = {
        "session_id": UUID(str(session_id)),
        "kind": RequestKind.QUESTION if is_question else RequestKind.APPROVAL,
        "tool_name": "AskUserQuestion" if is_question else "mcp__weather__today",
        "tool_use_id": f"toolu_{uuid4().hex}",
        "permission_type": "other" if is_question else "mcp",
        "rule": "foreign_server",
        "why": "A person decides.",
        "input": {"questions": [{"question": "Which?"}]} if is_question else {"place": "Graz"},
        "file_path": "",
        "directory": "/",
        "suggested_grants": [{"scope": "once", "pattern": "", "label": "once"}],
        "subject": "",
        "agent_name": "default",
        "digest": uuid4().hex,
        "on_host": False,
        **more,
    }
    return ask(Hold(turn.pk, turn.attempt), NewRequest(**wanted))


@transaction.atomic
def run_out(request: ToolRequest, ago: timedelta = timedelta(seconds=1)) -> None:
    """Its time is over by so much, and its worker has not looked yet."""
    now = timezone.now()
    ToolRequest.objects.filter(pk=request.pk).update(
        created_at=now - ago - timedelta(minutes=2), expires_at=now - ago
    )

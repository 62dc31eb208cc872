"""How a request and its end are told: a row in the session's stream, and a ring for every inbox.

Called with the turn's row locked, where the turn is active. That is how its status and what it asks agree: it
waits as long as something is pending, and not longer.

The audit is told first: whoever a bell wakes writes rows of its own.
"""

from typing import NamedTuple
from uuid import UUID

from django.db import transaction

from permissions_app.audit.asked import was_asked, was_decided
from permissions_app.frames import as_asked, as_end, frame_for_parent
from permissions_app.models import ToolRequest
from sessions_app.models import Session, Turn, TurnStatus
from sessions_app.streaming import bus
from sessions_app.streaming.log import in_short_for_the_bus, record

INBOX = "requests"  # the topic of whoever shows what is asked; `workspace` says whose


def tell_asked(request: ToolRequest) -> None:
    others = _others(request)
    was_asked(request, others.workspace_id)
    kind, payload = as_asked(request)
    record(request.session_id, kind, payload, turn_id=request.turn_id)
    _ring(request, others)


def tell_end(request: ToolRequest, turn_id: UUID | None) -> None:
    others = _others(request)
    was_decided(request, others.workspace_id)
    kind, payload = as_end(request)
    record(request.session_id, kind, payload, turn_id=turn_id)
    transaction.on_commit(lambda: bus.ring(bus.turn_topic(request.turn_id), {"type": "decided"}), robust=True)
    _ring(request, others)


def let_turn_go_on(turn_id: UUID) -> None:
    if not ToolRequest.objects.pending().filter(turn=turn_id).exists():
        Turn.objects.filter(pk=turn_id, status=TurnStatus.WAITING).update(status=TurnStatus.RUNNING)


def ring_inboxes(workspace_id: int) -> None:
    transaction.on_commit(lambda: bus.ring(INBOX, {"workspace": workspace_id}), robust=True)


class _Others(NamedTuple):
    """Who hears of a request beside its own session: its workspace's inboxes, and the session that started
    it, where that is of the same workspace."""

    workspace_id: int
    parent: UUID | None


def _others(request: ToolRequest) -> _Others:
    session = Session.objects.filter(pk=request.session_id)
    workspace_id, parent, parents = session.values_list(
        "workspace_id", "parent_id", "parent__workspace_id"
    ).get()
    return _Others(workspace_id, parent if parents == workspace_id else None)


def _ring(request: ToolRequest, others: _Others) -> None:
    ring_inboxes(others.workspace_id)
    if others.parent:
        topic = bus.session_topic(others.parent)
        told = in_short_for_the_bus(frame_for_parent(request, others.parent))
        transaction.on_commit(lambda: bus.ring(topic, told), robust=True)

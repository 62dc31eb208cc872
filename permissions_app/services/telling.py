"""How a request and its end are told: a row in the session's stream, and a ring for every inbox.

Called with the turn's row locked, where the turn is active. That is how its status and what it asks agree: it
waits as long as something is pending, and not longer.
"""

from uuid import UUID

from django.db import transaction

from permissions_app.audit.asked import was_asked, was_decided
from permissions_app.frames import as_asked, as_end, frame_for_parent
from permissions_app.models import ToolRequest
from sessions_app import bus
from sessions_app.log import in_short_for_the_bus, record
from sessions_app.models import Session, Turn, TurnStatus

INBOX = "requests"  # the topic of whoever shows what is asked; `workspace` says whose


def tell_asked(request: ToolRequest) -> None:
    kind, payload = as_asked(request)
    record(request.session_id, kind, payload, turn_id=request.turn_id)
    was_asked(request, ring_others(request))


def tell_end(request: ToolRequest, turn_id: UUID | None) -> None:
    kind, payload = as_end(request)
    record(request.session_id, kind, payload, turn_id=turn_id)
    transaction.on_commit(lambda: bus.ring(bus.turn_topic(request.turn_id), {"type": "decided"}), robust=True)
    was_decided(request, ring_others(request))


def let_turn_go_on(turn_id: UUID) -> None:
    if not ToolRequest.objects.pending().filter(turn=turn_id).exists():
        Turn.objects.filter(pk=turn_id, status=TurnStatus.WAITING).update(status=TurnStatus.RUNNING)


def ring_inboxes(workspace_id: int) -> None:
    transaction.on_commit(lambda: bus.ring(INBOX, {"workspace": workspace_id}), robust=True)


def ring_others(request: ToolRequest) -> int:
    """The inboxes of its workspace, which it names, and whoever follows the session that started this one."""
    session = Session.objects.filter(pk=request.session_id)
    workspace: int
    workspace, parent, parents_workspace = session.values_list(
        "workspace_id", "parent_id", "parent__workspace_id"
    ).get()
    ring_inboxes(workspace)
    if parent and parents_workspace == workspace:
        told = in_short_for_the_bus(frame_for_parent(request, parent))
        transaction.on_commit(lambda: bus.ring(bus.session_topic(parent), told), robust=True)
    return workspace

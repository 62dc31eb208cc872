"""Named reads of what is asked, for the API, the inbox and the pages."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from permissions_app.models import GrantRequest, RequestKind, ToolRequest
from permissions_app.querysets import ToolRequestQuerySet
from permissions_app.rules.paths import NotUnderstood
from permissions_app.rules.setting import Patterns
from permissions_app.rules.suggestions import Preview, permission_type, preview
from permissions_app.rules.tools import REACH, ToolCall, named_paths
from permissions_app.schemas import PendingQuestion, PermissionRequest
from permissions_app.services.deciding import found
from permissions_app.session_permissions import setting_of
from sessions_app import reading
from sessions_app.access.caller import Caller
from sessions_app.errors import Invalid
from sessions_app.metadata import PERMISSIONS
from sessions_app.models import EventType, SessionEvent
from sessions_app.querysets import seen_by

LOOKS_BACK = timedelta(days=30)
LOOKS_AT = 500  # calls, the newest
LONGEST_LINE = 200
MOST = 500  # requests that an inbox shows


@dataclass(frozen=True)
class Waiting:
    """What waits for a person, by its kind."""

    approvals: list[ToolRequest]
    questions: list[ToolRequest]


def pending(caller: Caller) -> list[ToolRequest]:
    """All that the caller may decide, the oldest first."""
    return list(ToolRequest.objects.pending().decidable_by(caller).order_by("created_at", "pk")[:MOST])


def pending_grants(caller: Caller) -> list[GrantRequest]:
    """What agents ask to be allowed beyond their definitions, the oldest first."""
    waiting = GrantRequest.objects.pending().decidable_by(caller).select_related("workspace")
    return list(waiting.order_by("created_at", "pk")[:MOST])


def in_session(session_id: UUID) -> Waiting:
    """What its agent asks, and what those ask that it started. One query, of a session that may be seen."""
    own = ToolRequest.objects.pending().filter(Q(session=session_id) | Q(session__parent=session_id))
    return _by_kind(own)


def asked_in(session_id: UUID) -> dict[str, Any]:
    """As `GET /api/chat/{id}` shows it."""
    waiting = in_session(session_id)
    return {
        "pending_permissions": [PermissionRequest.told(each) for each in waiting.approvals],
        "pending_questions": [PendingQuestion.told(each) for each in waiting.questions],
    }


def of_session(caller: Caller, session_id: UUID) -> tuple[dict[str, Any], Waiting]:
    """What it is allowed, and what its agent asks."""
    session = reading.visible(caller, session_id)
    waiting = _by_kind(ToolRequest.objects.pending().filter(session=session))
    return session.metadata[PERMISSIONS], waiting


def previewed(caller: Caller, request_id: UUID, pattern: str) -> Preview:
    """Of the last month's calls of this kind in its workspace, as far as the caller may see their chats,
    those that the pattern would cover."""
    request = found(caller, request_id)
    if not pattern:
        raise Invalid.field("pattern", _("Name the pattern that is to be tried."))
    session = reading.visible(caller, request.session_id)
    used = SessionEvent.objects.filter(
        seen_by(caller, "session"),
        session__workspace=session.workspace_id,
        type=EventType.TOOL_USE,
        payload__tool__name="WebFetch" if request.tool_name == REACH else request.tool_name,
        created_at__gte=timezone.now() - LOOKS_BACK,
    )
    tools = used.order_by("-created_at").values_list("payload__tool", flat=True)[:LOOKS_AT]
    calls = [ToolCall(tool["id"], tool["name"], tool["input"]) for tool in tools]
    same = [call for call in calls if permission_type(call) == request.permission_type]
    try:
        return preview(pattern, same, setting_of(request, session, Patterns()))
    except ValueError as refusal:
        raise Invalid.field("pattern", str(refusal)) from refusal


def in_short(call: ToolCall) -> str:
    """What it is about, in a line."""
    try:
        about = call.input.get("command") or call.input.get("url") or next(iter(named_paths(call)), "")
    except NotUnderstood:
        about = ""
    return str(about or call.name)[:LONGEST_LINE]


def _by_kind(requests: ToolRequestQuerySet) -> Waiting:
    waiting = Waiting([], [])
    for request in requests.order_by("created_at", "pk"):
        (waiting.questions if request.kind == RequestKind.QUESTION else waiting.approvals).append(request)
    return waiting

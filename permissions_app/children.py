"""What the children of a session ask, told in its own stream beside its rows.

A child's request is a row of the child alone: its parent may have no turn, and its rows are its own. Here it
comes as a frame without a number: at once by the parent's bell, and what is pending to whoever joins.
"""

from typing import NamedTuple
from uuid import UUID

from django.db.models import F
from django.utils import timezone

from permissions_app.frames import frame_for_parent, request_of
from permissions_app.models import RequestKind, RequestStatus, ToolRequest
from sessions_app.models.event import EventType
from sessions_app.streaming.bus import Payload
from sessions_app.streaming.log import ANNOUNCED

ASKED = {
    EventType.PERMISSION_REQUEST: RequestKind.APPROVAL,
    EventType.USER_QUESTION: RequestKind.QUESTION,
}


class _Shown(NamedTuple):
    """What the end of a request takes, should its row be gone by then."""

    session_id: UUID | str
    turn_id: UUID | str
    kind: str

    def gone(self, request: str) -> ToolRequest:
        """As it was closed with its session."""
        now = timezone.now()
        return ToolRequest(pk=request, status=RequestStatus.ABORTED, decided_at=now, **self._asdict())


class ChildRequests:
    """For one reader of one stream: each request is told once, and so is its end."""

    def __init__(self, session_id: UUID) -> None:
        self._session_id = session_id
        self._shown: dict[str, _Shown] = {}

    def read(self) -> list[Payload]:
        """What is news since the last look. One query, and a second where something is pending no more."""
        of_children = ToolRequest.objects.filter(
            session__parent=self._session_id, session__workspace=F("session__parent__workspace")
        )
        now = {str(each.pk): each for each in of_children.pending().order_by("created_at", "pk")}
        lost = [name for name in self._shown if name not in now]
        over = of_children.select_related("decided_by").in_bulk(lost) if lost else {}
        news = [over.get(UUID(name)) or self._shown[name].gone(name) for name in lost]
        news += [each for name, each in now.items() if name not in self._shown]
        self._shown = {name: _Shown(each.session_id, each.turn_id, each.kind) for name, each in now.items()}
        return [frame_for_parent(each, self._session_id) for each in news]

    def heard(self, payload: Payload) -> list[Payload] | None:
        """What of a ring is news; None where it says only that there is some."""
        if ANNOUNCED in payload:
            return None
        request, is_asked = request_of(payload), payload["type"] in ASKED
        was_shown = self._shown.pop(request, None) is not None
        if is_asked:
            self._shown[request] = _Shown(payload["sessionId"], payload["turnId"], ASKED[payload["type"]])
        return [payload] if is_asked != was_shown else []

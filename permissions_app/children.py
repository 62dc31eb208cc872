"""What the children of a session ask, told in its own stream beside its rows.

A child's request is a row of the child alone: its parent may have no turn, and its rows are its own. Here it
comes as a frame without a number: at once by the parent's bell, and what is pending to whoever joins.
"""

from uuid import UUID

from django.db.models import F

from permissions_app.frames import frame_for_parent, request_of
from permissions_app.models import ToolRequest
from sessions_app.bus import Payload
from sessions_app.log import ANNOUNCED
from sessions_app.models.event import EventType

ASKED = frozenset({EventType.PERMISSION_REQUEST, EventType.USER_QUESTION})


class ChildRequests:
    """For one reader of one stream: each request is told once, and so is its end."""

    def __init__(self, session_id: UUID) -> None:
        self._session_id = session_id
        self._shown: set[str] = set()

    def read(self) -> list[Payload]:
        """What is news since the last look. One query, and a second where something is pending no more."""
        of_children = ToolRequest.objects.filter(
            session__parent=self._session_id, session__workspace=F("session__parent__workspace")
        )
        now = {str(each.pk): each for each in of_children.pending().order_by("created_at", "pk")}
        lost = self._shown - now.keys()
        over = of_children.filter(pk__in=lost).select_related("decided_by") if lost else ()
        news = [*over, *(each for name, each in now.items() if name not in self._shown)]
        self._shown = set(now)
        return [frame_for_parent(each, self._session_id) for each in news]

    def heard(self, payload: Payload) -> list[Payload] | None:
        """What of a ring is news; None where it says only that there is some."""
        if ANNOUNCED in payload:
            return None
        request = request_of(payload)
        is_news = (request in self._shown) != (payload["type"] in ASKED)
        (self._shown.add if payload["type"] in ASKED else self._shown.discard)(request)
        return [payload] if is_news else []

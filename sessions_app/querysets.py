from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import models
from django.db.models import Exists, OuterRef

if TYPE_CHECKING:
    from sessions_app.access.caller import Caller


class SessionQuerySet(models.QuerySet[Any]):
    def visible_to(self, caller: Caller) -> SessionQuerySet:
        return self.filter(caller.within("workspace"))

    def writable_by(self, caller: Caller) -> SessionQuerySet:
        from sessions_app.access.caller import MAY_WRITE

        return self.filter(caller.within("workspace", MAY_WRITE))

    def with_activity(self) -> SessionQuerySet:
        """Adds `is_active` and `is_waiting`, from which a session's `activity` is told."""
        from sessions_app.models.turn import Turn, TurnStatus

        turns = Turn.objects.filter(session=OuterRef("pk"))
        found: SessionQuerySet = self.annotate(
            is_active=Exists(turns.filter(status__in=(TurnStatus.QUEUED, TurnStatus.RUNNING))),
            is_waiting=Exists(turns.filter(status=TurnStatus.WAITING)),
        )
        return found


class TurnQuerySet(models.QuerySet[Any]):
    def active(self) -> TurnQuerySet:
        from sessions_app.models.turn import ACTIVE

        return self.filter(status__in=ACTIVE)

    def open(self) -> TurnQuerySet:
        from sessions_app.models.turn import OPEN

        return self.filter(status__in=OPEN)

    def over(self) -> TurnQuerySet:
        from sessions_app.models.turn import OVER

        return self.filter(status__in=OVER)


class EventQuerySet(models.QuerySet[Any]):
    def after(self, session_id: UUID, seq: int) -> EventQuerySet:
        return self.filter(session_id=session_id, seq__gt=seq).order_by("seq")

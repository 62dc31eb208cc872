from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import models
from django.db.models import Q

if TYPE_CHECKING:
    from sessions_app.access.caller import Caller


class GrantQuerySet(models.QuerySet[Any]):
    def visible_to(self, caller: Caller) -> GrantQuerySet:
        return self.filter(caller.within("workspace"))

    def active(self) -> GrantQuerySet:
        return self.filter(revoked_at=None)

    def of(self, workspace_id: int, agent: str, session_id: UUID | None) -> GrantQuerySet:
        """What counts for an agent in a session: its own lasting ones, and those of this session."""
        here = Q(session=None) if session_id is None else Q(session=None) | Q(session_id=session_id)
        return self.active().filter(here, workspace_id=workspace_id, agent=agent)


class GrantRequestQuerySet(models.QuerySet[Any]):
    def visible_to(self, caller: Caller) -> GrantRequestQuerySet:
        return self.filter(caller.within("workspace"))

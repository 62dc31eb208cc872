from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import models
from django.db.models import Exists, F, OuterRef, Q

from sessions_app.querysets import is_theirs_or_shared, seen_by

if TYPE_CHECKING:
    from sessions_app.access.caller import Caller


class GrantQuerySet(models.QuerySet[Any]):
    def visible_to(self, caller: Caller) -> GrantQuerySet:
        """For always, all of its workspace's; for one session, of those that they may see."""
        return self.filter(
            Q(session=None) | is_theirs_or_shared(caller, "session"), caller.within("workspace")
        )

    def active(self) -> GrantQuerySet:
        return self.filter(revoked_at=None)

    def of(self, workspace_id: int, agent: str, session_id: UUID | None) -> GrantQuerySet:
        """What counts for an agent in a session: its own lasting ones, and those of this session."""
        here = Q(session=None) if session_id is None else Q(session=None) | Q(session_id=session_id)
        return self.active().filter(here, workspace_id=workspace_id, agent=agent)


class GrantRequestQuerySet(models.QuerySet[Any]):
    def pending(self) -> GrantRequestQuerySet:
        from permissions_app.models import GrantRequestStatus

        return self.filter(status=GrantRequestStatus.PENDING)

    def visible_to(self, caller: Caller) -> GrantRequestQuerySet:
        return self.filter(seen_by(caller, "session"))

    def decidable_by(self, caller: Caller) -> GrantRequestQuerySet:
        """For the session that asks; for always, which `rights.check` looks at, owners alone."""
        from sessions_app.access.caller import MAY_WRITE

        return self.filter(seen_by(caller, "session", MAY_WRITE))


class ToolRequestQuerySet(models.QuerySet[Any]):
    def pending(self) -> ToolRequestQuerySet:
        from permissions_app.models import RequestStatus

        return self.filter(status=RequestStatus.PENDING)

    def visible_to(self, caller: Caller) -> ToolRequestQuerySet:
        return self.filter(seen_by(caller, "session"))

    def decidable_by(self, caller: Caller) -> ToolRequestQuerySet:
        """What no wall holds is an operator's."""
        from sessions_app.access.caller import MAY_WRITE

        found = self.filter(seen_by(caller, "session", MAY_WRITE))
        return found if caller.is_operator else found.filter(on_host=False)

    def unused(self, since: datetime) -> ToolRequestQuerySet:
        """What was granted or answered since then, and not used. Who stops a turn takes back what was said in
        time, for it; what was said late is for the turn that it opened."""
        from permissions_app.models.requests import GOOD
        from sessions_app.models import Turn

        stopped = Turn.objects.filter(pk=OuterRef("turn"), abort_requested_at__isnull=False)
        taken_back = Q(Exists(stopped), decided_at__lte=F("expires_at"))
        return self.filter(~taken_back, status__in=GOOD, used_at=None, decided_at__gte=since)

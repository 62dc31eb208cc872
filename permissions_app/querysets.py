from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    from sessions_app.access.caller import Caller


class ToolRequestQuerySet(models.QuerySet[Any]):
    def pending(self) -> ToolRequestQuerySet:
        from permissions_app.models import RequestStatus

        return self.filter(status=RequestStatus.PENDING)

    def visible_to(self, caller: Caller) -> ToolRequestQuerySet:
        return self.filter(caller.within("session__workspace"))

    def decidable_by(self, caller: Caller) -> ToolRequestQuerySet:
        """A command that no wall holds is an operator's to allow."""
        from sessions_app.access.caller import MAY_WRITE

        found = self.filter(caller.within("session__workspace", MAY_WRITE))
        return found if caller.is_operator else found.filter(on_host=False)

    def unused(self, since: datetime) -> ToolRequestQuerySet:
        """What was granted or answered since then, and not used."""
        from permissions_app.models.requests import GOOD

        return self.filter(status__in=GOOD, used_at=None, decided_at__gte=since)

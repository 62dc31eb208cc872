from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Q
from django.utils import timezone

if TYPE_CHECKING:
    from sessions_app.access.caller import Caller


class WorkspaceQuerySet(models.QuerySet[Any]):
    def visible_to(self, caller: Caller) -> WorkspaceQuerySet:
        return self.filter(caller.within()).distinct()

    def open_to_non_operators(self) -> WorkspaceQuerySet:
        """Workspaces with a member who may not have a command run on the host."""
        return self.filter(memberships__user__is_staff=False).distinct()


class ApiKeyQuerySet(models.QuerySet[Any]):
    def usable(self) -> ApiKeyQuerySet:
        now = timezone.now()
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None, user__is_active=True)

    def visible_to(self, caller: Caller) -> ApiKeyQuerySet:
        """The caller's own that still stand; to a limited key, those alone that reach no further than it."""
        own = self.filter(user_id=caller.user_id, revoked_at=None)
        if caller.workspace_ids is None:
            return own
        further = self.model.workspaces.through.objects.exclude(workspace_id__in=caller.workspace_ids)
        return own.filter(is_limited=True).exclude(pk__in=further.values("apikey_id"))

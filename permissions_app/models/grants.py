"""What people allow an agent beyond its definition. An agent is named by its slug, and so is its child: their
definitions are files, which come and go."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from permissions_app.querysets import GrantQuerySet, GrantRequestQuerySet
from sessions_app.access.models import Workspace, among
from sessions_app.models import Session

SLUG = r"^[a-z0-9][a-z0-9_-]{0,99}$"  # of an agent


class GrantType(models.TextChoices):
    SPAWN = "spawn", _("Start sessions of another agent")


class GrantScope(models.TextChoices):
    PERSISTENT = "persistent", _("Always")  # each session of the agent
    SESSION = "session", _("This session")


class GrantRequestStatus(models.TextChoices):
    PENDING = "pending", _("Pending")
    APPROVED = "approved", _("Approved")
    DENIED = "denied", _("Denied")


class PermissionGrant(models.Model):
    """`agent` may start sessions of `child_agent`, until somebody takes it back.

    Made by people alone. A row is never changed but for `revoked_at`: a grant that comes back is a new one.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="grants")
    agent = models.CharField(max_length=100)
    grant_type = models.CharField(max_length=10, choices=GrantType, default=GrantType.SPAWN)
    child_agent = models.CharField(max_length=100)
    scope = models.CharField(max_length=10, choices=GrantScope)
    session = models.ForeignKey(Session, models.CASCADE, null=True, related_name="grants")
    granted_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    revoked_at = models.DateTimeField(null=True)
    revoked_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")

    objects: ClassVar[GrantQuerySet] = GrantQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["agent", "child_agent", "created_at"]
        verbose_name = _("grant")
        constraints = [
            models.CheckConstraint(condition=among("grant_type", GrantType), name="grant_type_is_known"),
            models.CheckConstraint(condition=among("scope", GrantScope), name="grant_scope_is_known"),
            models.CheckConstraint(condition=~Q(agent=F("child_agent")), name="no_agent_is_granted_itself"),
            models.CheckConstraint(
                condition=Q(scope=GrantScope.PERSISTENT, session=None)
                | Q(scope=GrantScope.SESSION, session__isnull=False),
                name="a_session_grant_names_its_session",
            ),
            models.UniqueConstraint(
                fields=["workspace", "agent", "grant_type", "child_agent"],
                condition=Q(scope=GrantScope.PERSISTENT, revoked_at=None),
                name="one_persistent_grant_a_child",
            ),
            models.UniqueConstraint(
                fields=["session", "agent", "grant_type", "child_agent"],
                condition=Q(scope=GrantScope.SESSION, revoked_at=None),
                name="one_session_grant_a_child",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent} may start {self.child_agent}"

    @property
    def details(self) -> dict[str, Any]:
        return {"childAgentId": self.child_agent}


class GrantRequest(models.Model):
    """An agent asks for a grant, in a session.

        pending ──► approved | denied

    Decided once, by a conditional UPDATE: of several people who answer, one does.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="grant_requests")
    session = models.ForeignKey(Session, models.CASCADE, related_name="grant_requests")
    agent = models.CharField(max_length=100)
    grant_type = models.CharField(max_length=10, choices=GrantType, default=GrantType.SPAWN)
    child_agent = models.CharField(max_length=100)
    reason = models.CharField(max_length=1000, blank=True)
    status = models.CharField(max_length=10, choices=GrantRequestStatus, default=GrantRequestStatus.PENDING)
    created_at = models.DateTimeField(default=timezone.now)
    decided_at = models.DateTimeField(null=True)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    grant = models.ForeignKey(PermissionGrant, models.SET_NULL, null=True, related_name="requests")

    objects: ClassVar[GrantRequestQuerySet] = GrantRequestQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["created_at", "pk"]
        verbose_name = _("grant request")
        constraints = [
            models.CheckConstraint(
                condition=among("grant_type", GrantType), name="grant_request_type_is_known"
            ),
            models.CheckConstraint(
                condition=among("status", GrantRequestStatus), name="grant_request_status_is_known"
            ),
            models.CheckConstraint(
                condition=Q(status=GrantRequestStatus.PENDING, decided_at=None)
                | (~Q(status=GrantRequestStatus.PENDING) & Q(decided_at__isnull=False)),
                name="a_decided_grant_request_says_when",
            ),
            models.UniqueConstraint(
                fields=["session", "agent", "grant_type", "child_agent"],
                condition=Q(status=GrantRequestStatus.PENDING),
                name="one_pending_grant_request_a_child",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent} asks to start {self.child_agent}"

    @property
    def details(self) -> dict[str, Any]:
        return {"childAgentId": self.child_agent}

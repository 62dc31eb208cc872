from __future__ import annotations

import secrets
from hashlib import sha256
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from sessions_app.access.querysets import ApiKeyQuerySet, WorkspaceQuerySet


class TrustLevel(models.TextChoices):
    FULL = "full", _("Whole computer")
    VAULT = "vault", _("This folder")
    SANDBOXED = "sandboxed", _("Read-only box")


class Role(models.TextChoices):
    OWNER = "owner", _("Owner")
    MEMBER = "member", _("Member")
    VIEWER = "viewer", _("Viewer")


class KeyScope(models.TextChoices):
    READ = "read", _("Read")  # every GET
    CHAT = "chat", _("Chat")  # what people do in sessions
    ADMIN = "admin", _("Admin")  # workspaces, members, keys and the rest of the console


def among(field: str, choices: type[models.TextChoices]) -> Q:
    """A condition for a check constraint: Django does not check choices in the database."""
    return Q(**{f"{field}__in": choices.values})


def digest(token: str) -> str:
    """Tokens are long and random, so a plain hash is enough to store them."""
    return sha256(token.encode()).hexdigest()


class Workspace(models.Model):
    """A vault and the people who share it. Every row is reached through one of these."""

    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=200)
    vault_path = models.TextField()
    default_trust = models.CharField(max_length=10, choices=TrustLevel, default=TrustLevel.VAULT)
    trust_floor = models.CharField(max_length=10, choices=TrustLevel, default=TrustLevel.FULL)
    default_agent = models.CharField(max_length=100, default="default")  # a slug: agents are files
    default_model = models.CharField(max_length=100, blank=True)  # empty: the first that is allowed here
    agents = models.JSONField(null=True)  # the slugs of those that it offers; null: all
    time_zone = models.CharField(max_length=64, blank=True)  # empty: the machine's
    writes_copies = models.BooleanField(default=True)  # of its sessions, to read outside of the program
    curates = models.BooleanField(default=True)  # titles, summaries and the log of the day
    archived_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)

    objects: ClassVar[WorkspaceQuerySet] = WorkspaceQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["created_at", "pk"]
        constraints = [
            models.CheckConstraint(
                condition=among("default_trust", TrustLevel), name="workspace_trust_is_known"
            ),
            models.CheckConstraint(
                condition=among("trust_floor", TrustLevel), name="workspace_floor_is_known"
            ),
        ]

    def __str__(self) -> str:
        return self.slug


class Membership(models.Model):
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role, default=Role.MEMBER)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "user"], name="one_membership_a_user"),
            models.CheckConstraint(condition=among("role", Role), name="membership_role_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.workspace}"


class ApiKey(models.Model):
    """A program's way in. Only the hash is kept; the key itself is shown once."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    is_limited = models.BooleanField(default=False)  # to `workspaces`, even when those are gone
    workspaces = models.ManyToManyField(Workspace, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[ApiKeyQuerySet] = ApiKeyQuerySet.as_manager()  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.name

    @staticmethod
    def new_token() -> str:
        return f"para_{secrets.token_urlsafe(32)}"


class SignInLink(models.Model):
    """A link that signs one person in, once, within ten minutes."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(expires_at__gt=F("created_at")), name="link_expires_after_it_was_made"
            ),
        ]

    def __str__(self) -> str:
        return f"sign-in link for {self.user}"


class SignInTries(models.Model):
    """Tries at a password that were wrong, for one name or one address, since the first of them."""

    subject = models.CharField(max_length=64, unique=True)  # a digest: nobody reads here who tried
    count = models.PositiveSmallIntegerField(default=0)
    since = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.count} since {self.since}"

"""Who knocked, who was let in, and who has shown that an account is theirs."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from bots_app.models.bot import PlatformName
from sessions_app.access.models import TrustLevel, Workspace, among


class BotUser(models.Model):
    """An account of a platform that was let in: where to, and with what. Its caller is `bot:<id>`."""

    platform = models.CharField(max_length=20, choices=PlatformName)
    platform_user_id = models.CharField(max_length=100)
    display = models.CharField(max_length=200)
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="bot_users")
    agent = models.CharField(max_length=100, blank=True)  # a slug; empty: the workspace's, or one they choose
    trust_level = models.CharField(max_length=10, choices=TrustLevel, default=TrustLevel.SANDBOXED)
    direct = models.ForeignKey("BotChat", models.SET_NULL, null=True, related_name="+")  # with them alone
    # Whose account it is, where they have proved it: their direct chat is theirs alone.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="bot_users")
    approved_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True)
    messages_per_day = models.PositiveIntegerField(null=True)
    day = models.DateField(null=True)  # on which `said` were said
    said = models.PositiveIntegerField(default=0)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["display", "pk"]
        constraints = [
            models.CheckConstraint(
                condition=among("platform", PlatformName), name="bot_user_platform_is_known"
            ),
            models.CheckConstraint(
                condition=among("trust_level", TrustLevel), name="bot_user_trust_is_known"
            ),
            models.CheckConstraint(
                condition=~Q(trust_level=TrustLevel.FULL), name="nobody_on_a_phone_has_the_computer"
            ),
            models.UniqueConstraint(
                fields=["platform", "platform_user_id"],
                condition=Q(revoked_at=None),
                name="an_account_is_let_in_once",
            ),
        ]

    def __str__(self) -> str:
        return self.display

    @property
    def is_in(self) -> bool:
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > timezone.now())


class PairingStatus(models.TextChoices):
    PENDING = "pending", _("Waiting")
    APPROVED = "approved", _("Let in")
    DENIED = "denied", _("Not let in")
    EXPIRED = "expired", _("Nobody answered")


class PairingRequest(models.Model):
    """Somebody knocked.

        pending ──► approved | denied | expired

    Moved only by conditional UPDATE. One waits for each account; of the others there may be many.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    platform = models.CharField(max_length=20, choices=PlatformName)
    platform_user_id = models.CharField(max_length=100)
    platform_user_display = models.CharField(max_length=200)
    platform_chat_id = models.CharField(max_length=100)
    chat = models.ForeignKey("BotChat", models.SET_NULL, null=True, related_name="pairing_requests")
    messages = models.JSONField(default=list)  # the first that were said: {id, text}
    status = models.CharField(max_length=10, choices=PairingStatus, default=PairingStatus.PENDING)
    approved_trust_level = models.CharField(max_length=10, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    resolved_at = models.DateTimeField(null=True)
    resolved_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    bot_user = models.ForeignKey(BotUser, models.SET_NULL, null=True, related_name="+")
    seen = models.PositiveSmallIntegerField(default=0)  # messages that the approver had before them
    answers_at = models.DateTimeField(null=True)  # while what was approved has not become a turn yet

    class Meta:
        ordering = ["created_at", "pk"]
        indexes = [
            models.Index(
                fields=["platform", "created_at"],
                name="pairing_pending",
                condition=Q(status=PairingStatus.PENDING),
            ),
            models.Index(
                fields=["answers_at"], name="pairing_unanswered", condition=Q(answers_at__isnull=False)
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=among("platform", PlatformName), name="pairing_platform_is_known"
            ),
            models.CheckConstraint(condition=among("status", PairingStatus), name="pairing_status_is_known"),
            models.UniqueConstraint(
                fields=["platform", "platform_user_id"],
                condition=Q(status=PairingStatus.PENDING),
                name="one_pending_request_an_account",
            ),
            models.CheckConstraint(
                condition=Q(status=PairingStatus.PENDING, resolved_at=None)
                | (~Q(status=PairingStatus.PENDING) & Q(resolved_at__isnull=False)),
                name="pairing_is_pending_or_resolved",
            ),
            models.CheckConstraint(
                condition=Q(expires_at__gt=F("created_at")), name="pairing_expires_after_it_was_made"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.platform_user_display} ({self.get_status_display()})"

    @property
    def first_message(self) -> str:
        return str(self.messages[0]["text"]) if self.messages else ""


class LinkCode(models.Model):
    """A word by which somebody shows that an account of a platform is theirs: once, within ten minutes."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(expires_at__gt=F("created_at")), name="link_code_expires_after_it_was_made"
            )
        ]

    def __str__(self) -> str:
        return str(self.pk)

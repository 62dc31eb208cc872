"""What bots remember: what they are signed in with, who knocked, who was let in, where they speak, what was
heard and what is to be said."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from permissions_app.models import ToolRequest
from sessions_app.access.models import TrustLevel, Workspace, among
from sessions_app.models import Session, Turn
from sessions_app.models.session import Source


class PlatformName(models.TextChoices):
    TELEGRAM = Source.TELEGRAM.value, "Telegram"
    DISCORD = Source.DISCORD.value, "Discord"


class BotState(models.TextChoices):
    STOPPED = "stopped", _("Stopped")
    RUNNING = "running", _("Running")
    RECONNECTING = "reconnecting", _("Reconnecting")  # it tries again by itself
    FAILED = "failed", _("Failed")  # a person has to mend it


class Bot(models.Model):
    """One platform: what a person wants of it, and how it is.

    `orders` is raised with each order, so whoever runs it sees that there is a newer one. `holder` is the
    process that speaks for it, as long as it says so: two that poll one bot take each other's messages.
    """

    platform = models.CharField(max_length=20, choices=PlatformName, unique=True)
    sealed = models.TextField(blank=True)  # its token
    ending = models.CharField(max_length=4, blank=True)  # what is shown of it
    saved_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    saved_at = models.DateTimeField(null=True)
    is_on = models.BooleanField(default=True)
    orders = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=15, choices=BotState, default=BotState.STOPPED)
    state_at = models.DateTimeField(default=timezone.now)
    problem = models.TextField(blank=True)  # for a person
    account = models.CharField(max_length=100, blank=True)  # what it is called there
    holder = models.CharField(max_length=100, blank=True)
    seen_at = models.DateTimeField(null=True)
    test_asked = models.UUIDField(null=True)  # somebody wants to know whether it works,
    test_done = models.UUIDField(null=True)  # and here is the answer to that
    test_problem = models.TextField(blank=True)
    test_account = models.CharField(max_length=100, blank=True)

    class Meta:
        ordering = ["-platform"]
        constraints = [
            models.CheckConstraint(condition=among("platform", PlatformName), name="bot_platform_is_known"),
            models.CheckConstraint(condition=among("state", BotState), name="bot_state_is_known"),
        ]

    def __str__(self) -> str:
        return self.get_platform_display()


class ChatType(models.TextChoices):
    PRIVATE = "private", _("Private")
    GROUP = "group", _("Group")


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


class BotChat(models.Model):
    """A chat, or a thread of one, in which a bot speaks; `session` is what it is now."""

    platform = models.CharField(max_length=20, choices=PlatformName)
    chat_id = models.CharField(max_length=60)
    thread_id = models.CharField(max_length=30, blank=True)
    chat_type = models.CharField(max_length=10, choices=ChatType)
    title = models.CharField(max_length=200, blank=True)
    session = models.ForeignKey(Session, models.SET_NULL, null=True, related_name="+")
    agent = models.CharField(max_length=100, blank=True)  # chosen there, by /agent
    workspace = models.ForeignKey(Workspace, models.SET_NULL, null=True, related_name="+")  # of a group
    trust_level = models.CharField(max_length=10, choices=TrustLevel, default=TrustLevel.SANDBOXED)
    recent = models.JSONField(default=list)  # the last that was said in a group, and by whom
    window_at = models.DateTimeField(null=True)  # since when `in_window` messages were counted
    in_window = models.PositiveSmallIntegerField(default=0)
    burst_at = models.DateTimeField(null=True)  # since when what is said counts as one message
    said_too_much_at = models.DateTimeField(null=True)  # when somebody was told so
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["platform", "chat_id", "thread_id"]
        constraints = [
            models.UniqueConstraint(
                fields=["platform", "chat_id", "thread_id"], name="a_bot_chat_is_known_once"
            ),
            models.CheckConstraint(
                condition=among("platform", PlatformName), name="bot_chat_platform_is_known"
            ),
            models.CheckConstraint(condition=among("chat_type", ChatType), name="bot_chat_type_is_known"),
            models.CheckConstraint(
                condition=among("trust_level", TrustLevel) & ~Q(trust_level=TrustLevel.FULL),
                name="bot_chat_trust_is_known",
            ),
        ]

    def __str__(self) -> str:
        return self.title or self.key

    @property
    def key(self) -> str:
        """As a session names it."""
        return f"{self.chat_id}:{self.thread_id}" if self.thread_id else self.chat_id

    @property
    def is_group(self) -> bool:
        return self.chat_type == ChatType.GROUP


class HeardState(models.TextChoices):
    WAITING = "waiting", _("Waiting")
    DONE = "done", _("Done")
    REFUSED = "refused", _("Refused")  # and they were told why


class Heard(models.Model):
    """Something that somebody who was let in has said. A row before the platform hears that it was taken, so
    that none is lost; one for each update, so that none is taken twice."""

    platform = models.CharField(max_length=20, choices=PlatformName)
    update_id = models.CharField(max_length=60)
    chat = models.ForeignKey(BotChat, models.CASCADE, related_name="heard")
    bot_user = models.ForeignKey(BotUser, models.CASCADE, related_name="heard")
    message_id = models.CharField(max_length=60)
    text = models.TextField(blank=True)
    files = models.JSONField(default=list)  # {id, name, size}, to be fetched
    album = models.CharField(max_length=60, blank=True)
    said_at = models.DateTimeField(default=timezone.now)
    together = models.BigIntegerField(null=True)  # the first of those that become one message
    whole = models.TextField(blank=True)  # of those together, as it is said to the agent
    state = models.CharField(max_length=10, choices=HeardState, default=HeardState.WAITING)
    turn = models.ForeignKey(Turn, models.SET_NULL, null=True, related_name="+")

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(fields=["chat", "id"], name="heard_waiting", condition=Q(state=HeardState.WAITING))
        ]
        constraints = [
            models.UniqueConstraint(fields=["platform", "update_id"], name="an_update_is_heard_once"),
            models.CheckConstraint(condition=among("state", HeardState), name="heard_state_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.platform} {self.update_id}"


class DeliveryKind(models.TextChoices):
    ANSWER = "answer", _("Answer")  # of a turn: streamed, and in the order of its chat
    NOTICE = "notice", _("Notice")
    CARD = "card", _("Card")  # something to decide


class DeliveryState(models.TextChoices):
    WAITING = "waiting", _("Waiting")
    SENT = "sent", _("Sent")
    FAILED = "failed", _("Failed")


class Delivery(models.Model):
    """What is to be said in a chat.

        waiting ──► sent
           ▲ │
           │ └────► failed        it was tried often enough, or can never arrive
           └──────────┘           somebody sends it again

    `messages` are those of the platform in which it stands already, so that whoever goes on with it edits
    them and says nothing twice.
    """

    chat = models.ForeignKey(BotChat, models.CASCADE, related_name="deliveries")
    kind = models.CharField(max_length=10, choices=DeliveryKind, default=DeliveryKind.NOTICE)
    key = models.CharField(max_length=120, unique=True)  # what is noted twice is said once
    text = models.TextField(blank=True)
    reply_to = models.CharField(max_length=60, blank=True)
    turn = models.ForeignKey(Turn, models.CASCADE, null=True, related_name="+")
    request = models.ForeignKey(ToolRequest, models.CASCADE, null=True, related_name="+")
    card = models.JSONField(default=dict)  # how it was shown last, and what was chosen so far
    messages = models.JSONField(default=list)
    state = models.CharField(max_length=10, choices=DeliveryState, default=DeliveryState.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField(default=timezone.now)
    problem = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    sent_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["pk"]
        verbose_name_plural = "deliveries"
        indexes = [
            models.Index(
                fields=["chat", "id"], name="deliveries_waiting", condition=Q(state=DeliveryState.WAITING)
            )
        ]
        constraints = [
            models.CheckConstraint(condition=among("kind", DeliveryKind), name="delivery_kind_is_known"),
            models.CheckConstraint(condition=among("state", DeliveryState), name="delivery_state_is_known"),
            models.UniqueConstraint(
                fields=["turn"], condition=Q(turn__isnull=False), name="a_turn_is_answered_once"
            ),
            models.UniqueConstraint(
                fields=["chat", "request"],
                condition=Q(request__isnull=False),
                name="one_card_a_request_and_chat",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.pk}"


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

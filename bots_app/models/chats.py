"""Where bots speak, what they heard there, and what they are to say."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from bots_app.models.bot import PlatformName
from bots_app.models.people import BotUser
from permissions_app.models import ToolRequest
from sessions_app.access.models import TrustLevel, Workspace, among
from sessions_app.models import Session, Turn


class ChatType(models.TextChoices):
    PRIVATE = "private", _("Private")
    GROUP = "group", _("Group")


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

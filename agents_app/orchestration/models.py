"""What the platform keeps of a session that is driven, of the news it owes it, and of what it hands to
people."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from sessions_app.access.models import Workspace, among
from sessions_app.models.session import Session
from sessions_app.models.turn import Turn
from sessions_app.querysets import seen_by

if TYPE_CHECKING:
    from sessions_app.access.caller import Caller

LONGEST_TITLE = 200


class Trigger(models.TextChoices):
    USER = "user", _("A person")
    ORCHESTRATOR = "orchestrator", _("Its parent")
    SCHEDULE = "schedule", _("Its schedule")


class Supervision(models.Model):
    """What the platform knows of a session that it starts or wakes, beside its conversation."""

    session = models.OneToOneField(Session, models.CASCADE, primary_key=True, related_name="supervision")
    triggered_by = models.CharField(max_length=15, choices=Trigger, default=Trigger.USER)
    block = models.TextField(blank=True)  # what it is told of the agents that it may start: as it began
    silent_after = models.PositiveIntegerField(default=300)  # seconds
    checkup_minutes = models.PositiveIntegerField(null=True)
    quiet_until = models.DateTimeField(null=True)  # it said that it will be silent until then
    quiet_reason = models.CharField(max_length=500, blank=True)
    paused_at = models.DateTimeField(null=True)  # since then nothing wakes it
    # Of the text that was being written when somebody looked: a long answer is no silence.
    heard_text = models.PositiveIntegerField(default=0)
    heard_at = models.DateTimeField(null=True)
    end_message = models.TextField(blank=True)  # why it failed, for people

    class Meta:
        constraints = [
            models.CheckConstraint(condition=among("triggered_by", Trigger), name="trigger_is_known"),
        ]

    def __str__(self) -> str:
        return str(self.pk)


class WakeKind(models.TextChoices):
    MESSAGE = "message", _("A child spoke")
    STATE_CHANGE = "state_change", _("A child ended")
    WATCHDOG = "watchdog", _("A child is silent")
    CHECKUP = "checkup", _("A look at all children")
    HEARTBEAT = "heartbeat", _("Its time has come")


class WakeState(models.TextChoices):
    QUEUED = "queued", _("Waits")
    DELIVERED = "delivered", _("Delivered")  # in a turn of its own, with those that waited beside it
    SKIPPED = "skipped", _("Not needed")
    EXPIRED = "expired", _("Too late")  # whoever it was for has ended


class WakeQuerySet(models.QuerySet[Any]):
    def visible_to(self, caller: Caller) -> WakeQuerySet:
        return self.filter(seen_by(caller, "session"))

    def waiting(self) -> WakeQuerySet:
        return self.filter(state=WakeState.QUEUED)

    def due(self) -> WakeQuerySet:
        """Of those that wait. Only what was told in vain is put off: what is new is due whatever the clock
        says, which may have been set back since."""
        return self.waiting().filter(Q(tries=0) | Q(not_before__lte=timezone.now()))


class Wake(models.Model):
    """One thing that a session is to be told by the platform, once.

        queued ──► delivered
          │  ▲        │
          │  └────────┘   the turn failed before its agent had done anything
          └──► skipped | expired

    Moved only by conditional UPDATE. `dedupe_key` says the cause, so that each cause is one row, whoever
    notices it and however often. `turn` is the one that told it.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    session = models.ForeignKey(Session, models.CASCADE, related_name="wakes")  # whom it wakes
    child = models.ForeignKey(Session, models.SET_NULL, null=True, related_name="+")  # whom it is about
    kind = models.CharField(max_length=15, choices=WakeKind)
    dedupe_key = models.CharField(max_length=200)
    cause = models.CharField(max_length=200)
    payload = models.JSONField(default=dict)
    state = models.CharField(max_length=10, choices=WakeState, default=WakeState.QUEUED)
    reason = models.CharField(max_length=200, blank=True)  # why it was skipped, or expired
    turn = models.ForeignKey(Turn, models.CASCADE, null=True, related_name="wakes")
    tries = models.PositiveIntegerField(default=0)
    not_before = models.DateTimeField(default=timezone.now)
    created_at = models.DateTimeField(default=timezone.now)
    settled_at = models.DateTimeField(null=True)
    cost_usd = models.DecimalField(max_digits=12, decimal_places=6, default=0)  # its part of its turn's

    objects: ClassVar[WakeQuerySet] = WakeQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["created_at", "pk"]
        indexes = [
            models.Index(fields=["not_before"], name="wakes_waiting", condition=Q(state=WakeState.QUEUED)),
            models.Index(fields=["session", "-created_at"], name="wakes_of_a_session"),
        ]
        constraints = [
            models.CheckConstraint(condition=among("kind", WakeKind), name="wake_kind_is_known"),
            models.CheckConstraint(condition=among("state", WakeState), name="wake_state_is_known"),
            models.UniqueConstraint(fields=["session", "dedupe_key"], name="a_cause_wakes_once"),
            models.CheckConstraint(
                condition=Q(state=WakeState.DELIVERED, turn__isnull=False)
                | (~Q(state=WakeState.DELIVERED) & Q(turn=None)),
                name="a_delivered_wake_has_its_turn",
            ),
            models.CheckConstraint(
                condition=Q(state=WakeState.QUEUED, settled_at=None)
                | (~Q(state=WakeState.QUEUED) & Q(settled_at__isnull=False)),
                name="a_settled_wake_says_when",
            ),
            models.CheckConstraint(
                condition=Q(child=None) | ~Q(child=F("session")), name="no_session_wakes_itself"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"  # the console shows it to operators, and the chat may be private


class ShareKind(models.TextChoices):
    """By how its title begins."""

    REPORT = "report", _("Report")
    REVIEW = "review", _("Needs human review")
    CANCELLATION = "cancellation", _("Needs cancellation")
    POST_MORTEM = "post_mortem", _("Post-mortem")


NEEDS = (ShareKind.REVIEW, ShareKind.CANCELLATION)  # somebody to do something


class ShareQuerySet(models.QuerySet[Any]):
    def visible_to(self, caller: Caller) -> ShareQuerySet:
        return self.filter(seen_by(caller, "session"))

    def needing(self) -> ShareQuerySet:
        return self.filter(resolved_at=None, kind__in=NEEDS)


class Share(models.Model):
    """What an agent hands to people: read when they come by, and resolved by one of them."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+")
    session = models.ForeignKey(Session, models.CASCADE, related_name="shares")
    tool_use_id = models.CharField(max_length=100)
    kind = models.CharField(max_length=15, choices=ShareKind, default=ShareKind.REPORT)
    title = models.CharField(max_length=LONGEST_TITLE)
    body = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    resolved_at = models.DateTimeField(null=True)
    resolved_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")

    objects: ClassVar[ShareQuerySet] = ShareQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["-created_at", "-pk"]
        indexes = [models.Index(fields=["workspace", "-created_at"], name="shares_of_a_workspace")]
        constraints = [
            models.CheckConstraint(condition=among("kind", ShareKind), name="share_kind_is_known"),
            models.UniqueConstraint(fields=["session", "tool_use_id"], name="one_share_a_tool_use"),
        ]

    def __str__(self) -> str:
        return str(self.pk)

    @property
    def subject(self) -> str:
        """Its title without the words that say its kind."""
        rest = self.title.partition(":")[2].strip() if self.kind != ShareKind.REPORT else ""
        return rest or self.title

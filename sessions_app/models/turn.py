from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from sessions_app.access.models import among
from sessions_app.models.session import Session
from sessions_app.querysets import TurnQuerySet


class TurnStatus(models.TextChoices):
    QUEUED = "queued", _("Queued")
    RUNNING = "running", _("Running")
    WAITING = "waiting", _("Waiting for a person")
    DONE = "done", _("Done")
    ABORTED = "aborted", _("Stopped")
    FAILED = "failed", _("Failed")


class Recovery(models.TextChoices):
    """What a person chose where a session cannot, or shall not, be resumed."""

    INJECT_CONTEXT = "inject_context", _("Tell the agent what was said")
    FRESH_START = "fresh_start", _("Start anew")


ACTIVE = (TurnStatus.RUNNING, TurnStatus.WAITING)
OPEN = (TurnStatus.QUEUED, *ACTIVE)
OVER = (TurnStatus.DONE, TurnStatus.ABORTED, TurnStatus.FAILED)


class Turn(models.Model):
    """One run of an agent over what was said to it.

        queued ──► running ⇄ waiting ──► done | aborted | failed
          ▲ │         │         │
          │ │         └────┬────┘
          │ │              │   its worker drains or is lost
          └─┼──────────────┘
            └──► aborted | failed

    Moved only by conditional UPDATE. `attempt` is raised by every claim and fences every write of the worker
    that holds it; `worker` and `boot` say who that is, `leased_at` when it last said that it lives.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    session = models.ForeignKey(Session, models.CASCADE, related_name="turns")
    opened_seq = models.PositiveIntegerField()  # of its `user_message`; turns of a session run in this order
    status = models.CharField(max_length=10, choices=TurnStatus, default=TurnStatus.QUEUED)
    attempt = models.PositiveIntegerField(default=0)
    restarts = models.PositiveIntegerField(default=0)
    worker = models.CharField(max_length=100, blank=True)
    boot = models.UUIDField(null=True)
    leased_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    announced_at = models.DateTimeField(null=True)  # when the apps above had all heard that it is over
    takes_more = models.BooleanField(default=True)  # what is said meanwhile; False once it is about to end
    recovery = models.CharField(max_length=15, choices=Recovery, blank=True)
    abort_requested_at = models.DateTimeField(null=True)
    aborted_by = models.CharField(max_length=100, blank=True)
    error_code = models.CharField(max_length=40, blank=True)
    usage = models.JSONField(default=dict)
    cost_usd = models.DecimalField(max_digits=12, decimal_places=6, default=0)

    objects: ClassVar[TurnQuerySet] = TurnQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["session", "opened_seq"]
        indexes = [
            models.Index(fields=["status", "leased_at"], name="turn_leases", condition=Q(status__in=OPEN)),
            models.Index(
                fields=["ended_at"],
                name="turns_untold",
                condition=Q(status__in=OVER, announced_at=None),
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=among("status", TurnStatus), name="turn_status_is_known"),
            models.CheckConstraint(
                condition=Q(recovery="") | among("recovery", Recovery), name="turn_recovery_is_known"
            ),
            models.UniqueConstraint(fields=["session", "opened_seq"], name="turns_run_in_order"),
            models.UniqueConstraint(
                fields=["session"], condition=Q(status__in=ACTIVE), name="one_active_turn_a_session"
            ),
            models.CheckConstraint(
                condition=Q(status__in=ACTIVE, leased_at__isnull=False, boot__isnull=False)
                | (~Q(status__in=ACTIVE) & Q(leased_at=None, boot=None)),
                name="an_active_turn_has_a_lease",
            ),
            models.CheckConstraint(
                condition=Q(status__in=OVER, ended_at__isnull=False)
                | (~Q(status__in=OVER) & Q(ended_at=None)),
                name="a_turn_that_is_over_has_ended",
            ),
        ]

    def __str__(self) -> str:
        return f"turn {self.pk} ({self.get_status_display()})"


class Speaker(models.TextChoices):
    USER = "user", _("A person")
    API = "api", _("A program")
    BOT = "bot", _("A bot")
    PARENT = "parent", _("The parent session")
    CHILD = "child", _("A child session")
    PLATFORM = "platform", _("Parachute")


class Message(models.Model):
    """One thing said to a session. Its id is the one that the SDK writes into its transcript, so after a
    crash the file says whether the model ever got it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    session = models.ForeignKey(Session, models.CASCADE, related_name="messages")
    turn = models.ForeignKey(Turn, models.CASCADE, related_name="messages")
    source = models.CharField(max_length=10, choices=Speaker, default=Speaker.USER)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    content = models.TextField(blank=True)  # as it was said
    context = models.TextField(blank=True)  # what came with it and is put before it
    prior_conversation = models.TextField(blank=True)
    waits = models.BooleanField(default=False)  # said to a turn that runs, and not handed to its agent yet
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["created_at"]
        constraints = [
            models.CheckConstraint(condition=among("source", Speaker), name="message_source_is_known")
        ]

    def __str__(self) -> str:
        return str(self.pk)  # the console shows it to operators, and it may be private


class Receipt(models.Model):
    """Remembers what an idempotency key of a caller led to, for a day."""

    caller = models.CharField(max_length=40)
    key = models.CharField(max_length=255)
    body_digest = models.CharField(max_length=64)
    turn = models.ForeignKey(Turn, models.CASCADE, null=True, related_name="receipts")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["caller", "key"], name="one_receipt_a_key")]

    def __str__(self) -> str:
        return f"{self.caller} {self.key}"

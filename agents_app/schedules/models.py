from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, ClassVar

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from sessions_app.access.models import Workspace, among
from sessions_app.models.session import Session

if TYPE_CHECKING:
    from sessions_app.access.caller import Caller


class ScheduleQuerySet(models.QuerySet[Any]):
    def visible_to(self, caller: Caller) -> ScheduleQuerySet:
        return self.filter(caller.within("workspace"))


class AgentSchedule(models.Model):
    """When an agent runs by itself, as its file says and as far as a person accepted it. Written by
    `services.sync` alone, but for `is_on`, which is its owners'."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="schedules")
    agent = models.CharField(max_length=100)
    cron = models.CharField(max_length=200)
    time_zone = models.CharField(max_length=64)  # empty: the machine's
    is_on = models.BooleanField(default=True)
    since = models.DateTimeField(default=timezone.now)  # what was due before is nobody's to catch up with

    objects: ClassVar[ScheduleQuerySet] = ScheduleQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["workspace", "agent"]
        constraints = [
            models.UniqueConstraint(fields=["workspace", "agent"], name="one_schedule_an_agent"),
        ]

    def __str__(self) -> str:
        return f"{self.agent}: {self.cron}"


class TickOutcome(models.TextChoices):
    STARTED = "started", _("Started")  # a session of its own
    WOKEN = "woken", _("Woken")  # the one that lives
    SKIPPED = "skipped", _("Skipped")
    REFUSED = "refused", _("Refused")


class TickQuerySet(models.QuerySet[Any]):
    def visible_to(self, caller: Caller) -> TickQuerySet:
        return self.filter(caller.within("workspace"))


class Tick(models.Model):
    """One time at which an agent was due, and what came of it. Who makes the row does the rest, in the same
    transaction; whoever comes second makes none."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+")
    agent = models.CharField(max_length=100)
    due_at = models.DateTimeField()
    made_at = models.DateTimeField(default=timezone.now)
    is_by_hand = models.BooleanField(default=False)
    outcome = models.CharField(max_length=10, choices=TickOutcome)
    reason = models.CharField(max_length=200, blank=True)
    session = models.ForeignKey(Session, models.SET_NULL, null=True, related_name="+")

    objects: ClassVar[TickQuerySet] = TickQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["-due_at"]
        constraints = [
            models.UniqueConstraint(fields=["workspace", "agent", "due_at"], name="an_agent_ticks_once"),
            models.CheckConstraint(condition=among("outcome", TickOutcome), name="tick_outcome_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.agent}, {self.due_at:%Y-%m-%d %H:%M}"

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any, ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from sessions_app.access.caller import Caller
from sessions_app.access.models import among
from sessions_app.models import Session, Turn
from sessions_app.querysets import seen_by


class RunStatus(models.TextChoices):
    QUEUED = "queued", _("Queued")
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")
    SKIPPED = "skipped", _("Skipped")  # a later exchange came before its turn


ENDED = (RunStatus.DONE, RunStatus.FAILED, RunStatus.SKIPPED)


class CuratorRunQuerySet(models.QuerySet[Any]):
    def living(self, life: str) -> CuratorRunQuerySet:
        """The run of this `life`, if it runs."""
        run_id, _, started_at = life.partition(" ")
        return self.filter(pk=run_id, started_at=datetime.fromisoformat(started_at), status=RunStatus.RUNNING)

    def visible_to(self, caller: Caller) -> CuratorRunQuerySet:
        return self.filter(seen_by(caller, "session"))


class CuratorRun(models.Model):
    """One look of the curator at one exchange of a chat, and what came of it.

        queued ──► running ──► done | failed
          │  ▲        │
          │  └────────┘   its worker stops
          └──► skipped

    Moved only by conditional UPDATE. What its tools changed is written here in the transaction that changes
    it, so a run that breaks off says truly what it has done.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    session = models.ForeignKey(Session, models.CASCADE, related_name="curator_runs")
    turn = models.ForeignKey(Turn, models.CASCADE, related_name="+")  # the exchange that it looks at
    exchange_number = models.PositiveIntegerField()
    is_by_hand = models.BooleanField(default=False)  # somebody asked for it
    status = models.CharField(max_length=10, choices=RunStatus, default=RunStatus.QUEUED)
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    actions = models.JSONField(default=list)  # the tools that had an effect, each once
    title_before = models.CharField(max_length=200, blank=True)
    title_after = models.CharField(max_length=200, blank=True)
    summary_before = models.TextField(blank=True)
    summary_after = models.TextField(blank=True)
    activity = models.TextField(blank=True)  # the line of the day
    day = models.DateField(null=True)  # on which it was logged, in the workspace's time zone
    is_in_vault = models.BooleanField(default=False)  # the line, until others may not read it
    model = models.CharField(max_length=100, blank=True)
    usage = models.JSONField(default=dict)
    cost_usd = models.DecimalField(max_digits=12, decimal_places=6, default=0)
    error = models.TextField(blank=True)
    undone_at = models.DateTimeField(null=True)

    objects: ClassVar[CuratorRunQuerySet] = CuratorRunQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["-created_at", "-pk"]
        indexes = [
            models.Index(fields=["session", "-created_at"], name="curator_runs_of_a_session"),
            models.Index(fields=["day"], name="curator_days", condition=Q(day__isnull=False)),
            models.Index(fields=["session"], name="curator_lines_in_vaults", condition=Q(is_in_vault=True)),
            models.Index(
                fields=["status", "started_at"],
                name="curator_runs_not_over",
                condition=Q(status__in=(RunStatus.QUEUED, RunStatus.RUNNING)),
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=among("status", RunStatus), name="curator_status_is_known"),
            models.UniqueConstraint(
                fields=["turn"], condition=Q(is_by_hand=False), name="an_exchange_is_looked_at_once"
            ),
            models.UniqueConstraint(
                fields=["session"],
                condition=Q(status=RunStatus.RUNNING),
                name="one_curator_runs_in_a_session",
            ),
            models.CheckConstraint(
                condition=Q(status__in=ENDED, ended_at__isnull=False)
                | (~Q(status__in=ENDED) & Q(ended_at=None)),
                name="a_curator_run_that_is_over_has_ended",
            ),
            models.CheckConstraint(
                condition=Q(activity="") | Q(day__isnull=False), name="what_is_logged_has_a_day"
            ),
        ]

    def __str__(self) -> str:
        return str(self.pk)  # the console shows it to operators, and the chat may be private

    @property
    def life(self) -> str:
        """From one claim to its end. A run that was put back has another one with its next worker."""
        return f"{self.pk} {self.started_at.isoformat() if self.started_at else ''}"

    @property
    def is_over(self) -> bool:
        return self.status in ENDED

    @property
    def seconds(self) -> float | None:
        if self.started_at is None or self.ended_at is None:
            return None
        return (self.ended_at - self.started_at).total_seconds()

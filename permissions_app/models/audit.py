"""Rows that are written once. They name sessions, turns and workspaces by id: what is deleted leaves its
decisions behind."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from sessions_app.access.models import among


class AuditKind(models.TextChoices):
    DECISION = "decision", _("Decision")  # of the gate, or of the CLI itself
    REQUEST = "request", _("Request")  # a person is asked
    ANSWER = "answer", _("Answer")  # what was answered, or that nobody did
    GRANT = "grant", _("Grant")  # rights that were widened, or taken back
    EGRESS = "egress", _("Connection")  # through the egress door


class Outcome(models.TextChoices):
    ALLOWED = "allowed", _("Allowed")
    DENIED = "denied", _("Denied")
    ASKED = "asked", _("Asked")
    GRANTED = "granted", _("Granted")
    ANSWERED = "answered", _("Answered")
    EXPIRED = "expired", _("Expired")
    ABORTED = "aborted", _("Stopped")  # or lost, with its turn
    REVOKED = "revoked", _("Revoked")


class AuditChain(models.Model):
    """Where the chain of one session ends. Moved by a conditional UPDATE alone, so two workers that append
    to it at once never use a number twice."""

    session_id = models.UUIDField(primary_key=True)
    number = models.PositiveIntegerField(default=0)
    mac = models.CharField(max_length=64)
    sealed = models.PositiveIntegerField(default=0)  # the number that the newest seal has of it

    class Meta:
        verbose_name = _("audit chain")

    def __str__(self) -> str:
        return f"{self.session_id} to {self.number}"


class AuditRow(models.Model):
    """One decision, request, answer or grant. `mac` is over all of it and over the row before."""

    entry = models.UUIDField(unique=True)  # what is handed over twice is written once
    session_id = models.UUIDField()
    number = models.PositiveIntegerField()
    at = models.DateTimeField(db_index=True)
    kind = models.CharField(max_length=10, choices=AuditKind)
    outcome = models.CharField(max_length=10, choices=Outcome)
    who = models.CharField(max_length=200)
    workspace_id = models.BigIntegerField(null=True)
    turn_id = models.UUIDField(null=True)
    tool = models.CharField(max_length=200, blank=True)
    tool_use_id = models.CharField(max_length=200, blank=True)
    arguments_hash = models.CharField(max_length=64)
    summary = models.CharField(max_length=500, blank=True)
    rule = models.CharField(max_length=200, blank=True)
    pattern = models.CharField(max_length=200, blank=True)
    latency_ms = models.FloatField(null=True)
    previous = models.CharField(max_length=64)
    mac = models.CharField(max_length=64)

    class Meta:
        ordering = ["-at", "-pk"]
        verbose_name = _("audit row")
        constraints = [
            models.UniqueConstraint(fields=["session_id", "number"], name="one_audit_row_a_number"),
            models.CheckConstraint(condition=Q(number__gte=1), name="audit_numbers_start_at_one"),
            models.CheckConstraint(condition=among("kind", AuditKind), name="audit_kind_is_known"),
            models.CheckConstraint(condition=among("outcome", Outcome), name="audit_outcome_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.session_id} {self.number}"

    def content(self) -> dict[str, Any]:
        """All that it says, as the chain ties it and as it is exported."""
        return {
            "id": str(self.entry),
            "sessionId": str(self.session_id),
            "number": self.number,
            "at": self.at.isoformat(),
            "kind": str(self.kind),
            "outcome": str(self.outcome),
            "who": self.who,
            "workspaceId": self.workspace_id,
            "turnId": str(self.turn_id) if self.turn_id else None,
            "tool": self.tool,
            "toolUseId": self.tool_use_id,
            "argumentsHash": self.arguments_hash,
            "summary": self.summary,
            "rule": self.rule,
            "pattern": self.pattern,
            "latencyMs": self.latency_ms,
        }


class AuditSeal(models.Model):
    """Once a minute: where each chain ended that had grown, tied to the seal before. Its hash is in the log
    too, which whoever changes the database does not have."""

    number = models.PositiveIntegerField(primary_key=True)
    at = models.DateTimeField(default=timezone.now)
    heads = models.JSONField()  # {session: [number, mac]}
    previous = models.CharField(max_length=64)
    mac = models.CharField(max_length=64)

    class Meta:
        ordering = ["-number"]
        verbose_name = _("audit seal")

    def __str__(self) -> str:
        return f"seal {self.number}"

    def content(self) -> dict[str, Any]:
        return {"number": self.number, "at": self.at.isoformat(), "heads": self.heads}

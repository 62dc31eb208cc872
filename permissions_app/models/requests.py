from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from permissions_app.querysets import ToolRequestQuerySet
from permissions_app.rules.suggestions import PatternScope as GrantScope
from permissions_app.rules.suggestions import PermissionType
from sessions_app.access.models import among
from sessions_app.models import Session, Turn


class RequestKind(models.TextChoices):
    APPROVAL = "approval", _("Approval")
    QUESTION = "question", _("Question")


class RequestStatus(models.TextChoices):
    PENDING = "pending", _("Waits for a person")
    GRANTED = "granted", _("Allowed")
    DENIED = "denied", _("Not allowed")
    ANSWERED = "answered", _("Answered")
    EXPIRED = "expired", _("Nobody answered in time")
    ABORTED = "aborted", _("Its turn was stopped or lost")


GOOD = (RequestStatus.GRANTED, RequestStatus.ANSWERED)
BY_A_PERSON = (*GOOD, RequestStatus.DENIED)


class ToolRequest(models.Model):
    """One call of a tool about which a person is asked.

        pending ──► granted | denied | answered
          │            ▲
          ├► expired ──┘   an approval that is decided late, within a day
          └► aborted       its turn was stopped, or its worker was lost

    Moved only by conditional UPDATE. What was granted is good for one use of exactly this call (`digest`),
    within a day: `used_at` says when it was made. The worker that waits makes it at once. Where it is gone,
    or the answer came late, whoever of the session makes that call next does. Who stops its turn takes back
    what was said in time.

    While it is pending its turn is active, and waits: whoever ends a turn, or puts it back, closes what it
    asks.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    session = models.ForeignKey(Session, models.CASCADE, related_name="tool_requests")
    turn = models.ForeignKey(Turn, models.CASCADE, related_name="tool_requests")
    attempt = models.PositiveIntegerField()
    kind = models.CharField(max_length=10, choices=RequestKind, default=RequestKind.APPROVAL)
    tool_name = models.CharField(max_length=256)
    tool_use_id = models.CharField(max_length=200)
    permission_type = models.CharField(max_length=10)
    rule = models.CharField(max_length=60)  # that asked
    why = models.TextField(blank=True)  # what that rule says to a person
    input = models.JSONField(default=dict)  # as a person is shown it: very long texts are cut, and say so
    file_path = models.TextField(blank=True)
    directory = models.TextField()  # where the agent stood
    suggested_grants = models.JSONField(default=list)
    subject = models.TextField(blank=True)  # what parallel requests have in common
    agent_name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64)  # of exactly this call
    on_host = models.BooleanField(default=False)  # no wall stands around it: only an operator answers
    answers = models.JSONField(default=dict)
    status = models.CharField(max_length=10, choices=RequestStatus, default=RequestStatus.PENDING)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    decided_as = models.CharField(
        max_length=100, blank=True
    )  # the caller's name: a person may have many keys
    decided_at = models.DateTimeField(null=True)
    pattern = models.TextField(blank=True)
    scope = models.CharField(max_length=10, blank=True)
    reason = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    opened_until = models.DateTimeField(null=True)  # a person has its card open till then: the clock stands
    used_at = models.DateTimeField(null=True)

    objects: ClassVar[ToolRequestQuerySet] = ToolRequestQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["created_at", "pk"]
        indexes = [
            models.Index(
                fields=["session"], name="requests_pending", condition=Q(status=RequestStatus.PENDING)
            ),
            models.Index(
                fields=["session", "digest"],
                name="requests_unused",
                condition=Q(status__in=GOOD, used_at=None),
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=among("kind", RequestKind), name="request_kind_is_known"),
            models.CheckConstraint(condition=among("status", RequestStatus), name="request_status_is_known"),
            models.CheckConstraint(
                condition=Q(permission_type__in=[str(each) for each in PermissionType]),
                name="request_permission_is_known",
            ),
            models.CheckConstraint(
                condition=Q(scope__in=["", *(str(each) for each in GrantScope)]),
                name="request_scope_is_known",
            ),
            models.UniqueConstraint(
                fields=["turn", "tool_use_id"],
                condition=Q(status=RequestStatus.PENDING),
                name="one_pending_request_a_tool_use",
            ),
            models.CheckConstraint(
                condition=Q(status=RequestStatus.PENDING, decided_at=None)
                | (~Q(status=RequestStatus.PENDING) & Q(decided_at__isnull=False)),
                name="a_request_is_pending_or_decided",
            ),
            models.CheckConstraint(
                condition=(Q(status__in=BY_A_PERSON) & ~Q(decided_as=""))
                | (~Q(status__in=BY_A_PERSON) & Q(decided_as="", decided_by=None)),
                name="people_decide_requests",
            ),
            models.CheckConstraint(
                condition=Q(scope="", pattern="") | (Q(status=RequestStatus.GRANTED) & ~Q(scope="")),
                name="only_a_grant_widens",
            ),
            models.CheckConstraint(
                condition=Q(kind=RequestKind.APPROVAL) | ~Q(status__in=["granted", "denied"]),
                name="a_question_is_answered",
            ),
            models.CheckConstraint(
                condition=Q(kind=RequestKind.QUESTION) | ~Q(status=RequestStatus.ANSWERED),
                name="only_a_question_is_answered",
            ),
            models.CheckConstraint(
                condition=Q(used_at=None) | Q(status__in=GOOD), name="only_what_was_granted_is_used"
            ),
            models.CheckConstraint(
                condition=Q(expires_at__gte=F("created_at")), name="request_expires_after_it_was_made"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tool_name} ({self.get_status_display()})"

    @property
    def ticket(self) -> str:
        """What the model is told: short enough to be repeated."""
        return self.pk.hex[:8]

    @property
    def is_question(self) -> bool:
        return self.kind == RequestKind.QUESTION

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents_app.model.endpoint import Credential
from agents_app.orchestration.models import Share, Supervision, Wake
from agents_app.schedules.models import AgentSchedule, Tick
from sessions_app.access.models import Workspace

__all__ = [
    "AgentRights",
    "AgentSchedule",
    "FirstRun",
    "ModelAccess",
    "Share",
    "Supervision",
    "Tick",
    "Wake",
    "Worker",
]


class Worker(models.Model):
    """A worker process that says that it lives. `boot` tells one life of it from the next."""

    name = models.CharField(max_length=100, unique=True)
    boot = models.UUIDField(default=uuid.uuid4)
    queue = models.CharField(max_length=20)
    seen_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.name


class ModelAccess(models.Model):
    """What opens the model, where the page has set it: one row or none. The environment wins over it."""

    class Kind(models.TextChoices):
        API_KEY = Credential.API_KEY, _("API key")
        AUTH_TOKEN = Credential.AUTH_TOKEN, _("Token of a gateway")
        OAUTH = Credential.OAUTH, _("Token of a subscription")

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    kind = models.CharField(max_length=10, choices=Kind)
    sealed = models.TextField()
    ending = models.CharField(max_length=4, blank=True)  # all of the secret that is ever shown again
    base_url = models.CharField(max_length=500)
    saved_at = models.DateTimeField(default=timezone.now)
    saved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(id=1), name="one_access_to_the_model"),
            models.CheckConstraint(
                condition=Q(kind__in=[kind.value for kind in Credential]), name="model_access_kind_is_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} for {self.base_url}"


class FirstRun(models.Model):
    """That somebody was led through the first steps: one row or none, and whoever makes it is led."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_first_run")]

    def __str__(self) -> str:
        return f"the first run, {self.at}"


class AgentRights(models.Model):
    """What of an agent's file counts where it speaks of rights: what people accepted, less what the file has
    given up since. Without a row it has those of the default agent."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+")
    slug = models.CharField(max_length=100)
    accepted = models.JSONField()
    hash = models.CharField(max_length=64)  # of `accepted`: who changes it says from which
    accepted_at = models.DateTimeField(null=True)  # by a person; null: nobody was asked yet
    accepted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
        verbose_name = verbose_name_plural = _("rights of agents")
        constraints = [
            models.UniqueConstraint(fields=["workspace", "slug"], name="an_agent_has_rights_once"),
        ]

    def __str__(self) -> str:
        return self.slug

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from sessions_app.access.models import among
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

"""What people said of the servers of a vault. The entries themselves stand in the vault."""

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from sessions_app.access.models import Workspace
from sessions_app.models import Session


class KnownServer(models.Model):
    """An entry as an owner accepted it. Another entry under its name, as its hash tells, waits again."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+")
    name = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)
    is_on = models.BooleanField(default=False)  # for agents whose files say nothing of servers
    accepted_at = models.DateTimeField(default=timezone.now)
    accepted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    # What came of starting it last.
    tried_at = models.DateTimeField(null=True, blank=True)
    tools = models.JSONField(default=list)
    problem = models.TextField(blank=True)

    class Meta:
        verbose_name, verbose_name_plural = _("MCP server"), _("MCP servers")
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="a_server_is_known_once")]

    def __str__(self) -> str:
        return self.name


class SessionServer(models.Model):
    """What somebody chose for one chat, whatever its agent says."""

    session = models.ForeignKey(Session, models.CASCADE, related_name="+")
    name = models.CharField(max_length=64)
    is_on = models.BooleanField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "name"], name="a_chat_has_a_server_once")]

    def __str__(self) -> str:
        return self.name


class WorkspaceSecret(models.Model):
    """What `${NAME}` stands for in a workspace's `.mcp.json`. Sealed, and shown to nobody again."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+")
    name = models.CharField(max_length=128)
    sealed = models.TextField()
    saved_at = models.DateTimeField(default=timezone.now)
    saved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="a_secret_is_there_once")]

    def __str__(self) -> str:
        return self.name

from django.db import models

from sessions_app.access.models import Workspace


class EnabledSkill(models.Model):
    """A skill of the vault that each agent of the workspace has; others an agent's file names."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+")
    name = models.CharField(max_length=64)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="a_skill_is_enabled_once")]

    def __str__(self) -> str:
        return self.name

"""What people and agents put on a session: tags, and the files and folders that it is told of."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from django.utils import timezone

from sessions_app.models.session import Session

LONGEST_TAG = 60


class SessionTag(models.Model):
    session = models.ForeignKey(Session, models.CASCADE, related_name="labels")
    tag = models.CharField(max_length=LONGEST_TAG, db_index=True)  # in lower case
    added_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["tag"]
        constraints = [
            models.UniqueConstraint(fields=["session", "tag"], name="a_session_has_a_tag_once"),
            models.CheckConstraint(condition=Q(tag=Lower("tag")) & ~Q(tag=""), name="tags_are_in_lower_case"),
        ]

    def __str__(self) -> str:
        return self.tag


class SessionContext(models.Model):
    """A file or folder of the vault whose AGENTS.md or CLAUDE.md the session's agent is told."""

    session = models.ForeignKey(Session, models.CASCADE, related_name="contexts")
    path = models.TextField()  # in the vault
    added_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["path"]
        constraints = [
            models.UniqueConstraint(fields=["session", "path"], name="a_session_has_a_context_once")
        ]

    def __str__(self) -> str:
        return str(self.pk)

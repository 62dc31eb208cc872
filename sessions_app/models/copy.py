from django.db import models
from django.utils import timezone

from sessions_app.models.session import Session


class SessionCopy(models.Model):
    """The readable copy of a session in its vault, as we wrote it last: what is another by now, a person has
    edited."""

    session = models.OneToOneField(Session, models.CASCADE, related_name="copy")
    path = models.TextField()  # in the vault
    content_hash = models.CharField(max_length=64)
    written_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return str(self.session_id)

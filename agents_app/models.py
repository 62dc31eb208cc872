import uuid

from django.db import models
from django.utils import timezone


class Worker(models.Model):
    """A worker process that says that it lives. `boot` tells one life of it from the next."""

    name = models.CharField(max_length=100, unique=True)
    boot = models.UUIDField(default=uuid.uuid4)
    queue = models.CharField(max_length=20)
    seen_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.name

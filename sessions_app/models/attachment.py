from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q

from sessions_app.access.models import among
from sessions_app.models.session import Session
from sessions_app.models.turn import Message

FOLDER = "Chat/assets/"
LARGEST = 20 << 20  # bytes


class ContentType(models.TextChoices):
    """What a file shows itself to be. What its sender said of it is not kept."""

    PNG = "image/png", "PNG"
    JPEG = "image/jpeg", "JPEG"
    GIF = "image/gif", "GIF"
    WEBP = "image/webp", "WebP"
    PDF = "application/pdf", "PDF"
    TEXT = "text/plain", "text"  # SVG and HTML too: nothing here is ever run
    OTHER = "application/octet-stream", "other"


class Attachment(models.Model):
    """A file that came with a message. The file is the vault's: it outlives its row, or goes before."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    session = models.ForeignKey(Session, models.CASCADE, related_name="attachments")
    message = models.ForeignKey(Message, models.CASCADE, related_name="attachments")
    position = models.PositiveSmallIntegerField()  # among the files of its message
    file_name = models.CharField(max_length=120)  # as people see it
    mime_type = models.CharField(max_length=40, choices=ContentType)
    size = models.PositiveIntegerField()
    path = models.CharField(max_length=300)  # below the vault

    class Meta:
        ordering = ["message", "position"]
        constraints = [
            models.UniqueConstraint(fields=["message", "position"], name="attachments_have_an_order"),
            models.CheckConstraint(
                condition=among("mime_type", ContentType), name="attachment_type_is_known"
            ),
            models.CheckConstraint(
                condition=Q(size__gte=1, size__lte=LARGEST), name="attachment_size_is_allowed"
            ),
            models.CheckConstraint(
                condition=Q(path__startswith=FOLDER), name="attachment_lies_in_its_folder"
            ),
            models.CheckConstraint(condition=~Q(file_name=""), name="attachment_has_a_name"),
        ]

    def __str__(self) -> str:
        return str(self.pk)  # see Message

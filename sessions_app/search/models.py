from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from sessions_app.access.models import Workspace, among
from sessions_app.models.session import Session
from sessions_app.search.querysets import ChunkQuerySet


class ContentType(models.TextChoices):
    SESSION = "session", _("Chat")
    JOURNAL = "journal", _("Journal")
    DOCUMENT = "document", _("Note")


class IndexManifest(models.Model):
    """What is indexed, and how it is known that it has changed: by size and time first, then by its hash."""

    # "{workspace}:session:{id}" or "{workspace}:file:{path}": two vaults' notes of one name never meet.
    content_id = models.CharField(primary_key=True, max_length=700)
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+")
    content_type = models.CharField(max_length=10, choices=ContentType)
    session = models.OneToOneField(Session, models.CASCADE, null=True, related_name="indexed")
    path = models.TextField(blank=True)  # in the vault
    title = models.CharField(max_length=300, blank=True)
    summary = models.TextField(blank=True)  # of a chat, which gets another without a word being said
    content_hash = models.CharField(max_length=64, blank=True)
    size = models.BigIntegerField(default=0)
    modified_ns = models.BigIntegerField(default=0)
    problem = models.CharField(max_length=200, blank=True)  # why there is nothing of it to find
    changed_at = models.DateTimeField(default=timezone.now)  # the content, as far as that is known
    indexed_at = models.DateTimeField(default=timezone.now)
    chunk_count = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=among("content_type", ContentType), name="indexed_type_is_known"
            ),
            models.CheckConstraint(
                condition=Q(content_type=ContentType.SESSION, session__isnull=False)
                | (~Q(content_type=ContentType.SESSION) & Q(session=None) & ~Q(path="")),
                name="indexed_content_is_a_session_or_a_file",
            ),
        ]

    def __str__(self) -> str:
        return self.content_id if self.session_id is None else str(self.session_id)


class Chunk(models.Model):
    """A piece of a content, small enough to have one meaning. Its words are in the database's own index."""

    manifest = models.ForeignKey(IndexManifest, models.CASCADE, related_name="chunks")
    field = models.CharField(max_length=20, default="content")
    position = models.PositiveIntegerField()
    text = models.TextField()

    objects: ClassVar[ChunkQuerySet] = ChunkQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["manifest", "field", "position"], name="one_chunk_a_position"),
        ]

    def __str__(self) -> str:
        return f"chunk {self.pk}"

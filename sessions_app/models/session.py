from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from sessions_app.access.models import TrustLevel, Workspace, among
from sessions_app.metadata import SUMMARY_SOURCE
from sessions_app.querysets import SessionQuerySet


class SessionStatus(models.TextChoices):
    PENDING = "pending", _("Pending")  # made, nothing has run yet
    RUNNING = "running", _("Running")  # a conversation that goes on
    COMPLETE = "complete", _("Complete")  # came to its end; a message wakes it again
    FAILED = "failed", _("Failed")


class SessionKind(models.TextChoices):
    WORKER = "worker", _("Worker")
    ORCHESTRATOR = "orchestrator", _("Orchestrator")
    SCHEDULED = "scheduled", _("Scheduled")


class Source(models.TextChoices):
    PARACHUTE = "parachute", "Parachute"
    CLAUDE_CODE = "claude-code", "Claude Code"
    CLAUDE = "claude", "Claude"
    CHATGPT = "chatgpt", "ChatGPT"
    TELEGRAM = "telegram", "Telegram"
    DISCORD = "discord", "Discord"


OF_BOTS = (Source.TELEGRAM, Source.DISCORD)


class TitleSource(models.TextChoices):
    USER = "user", _("A person")
    AI = "ai", _("The curator")
    DEFAULT = "default", _("The first line")


class Module(models.TextChoices):
    CHAT = "chat", _("Chat")
    DAILY = "daily", _("Daily")
    BUILD = "build", _("Build")


class Visibility(models.TextChoices):
    PRIVATE = "private", _("Its author")
    WORKSPACE = "workspace", _("Everybody in its workspace")


LIVE = (SessionStatus.PENDING, SessionStatus.RUNNING)


def default_metadata() -> dict[str, Any]:
    permissions = {"read": [], "write": ["Chat/artifacts/*"], "bash": False, "trustMode": True}
    return {"permissions": permissions}


class Session(models.Model):
    """A conversation with an agent.

        pending ──► running ──► complete
                     │  ▲ ▲        │
                     │  │ └────────┘   a new message
                     ▼  │
                    failed             a chat goes on by a new message

    A turn in flight is not a status: `activity` derives it from the turns.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="sessions")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    # Private ones are their author's alone, whatever somebody is in their workspace.
    visibility = models.CharField(max_length=10, choices=Visibility, default=Visibility.PRIVATE)
    title = models.CharField(max_length=200, blank=True)
    title_source = models.CharField(max_length=10, choices=TitleSource, default=TitleSource.DEFAULT)
    summary = models.TextField(blank=True)
    module = models.CharField(max_length=10, choices=Module, default=Module.CHAT)
    source = models.CharField(max_length=20, choices=Source, default=Source.PARACHUTE)
    # The chat of a bot in which it is held, on the platform that `source` names; empty: in none.
    bot_chat = models.CharField(max_length=100, blank=True)
    bot_chat_type = models.CharField(max_length=20, blank=True)
    agent_slug = models.CharField(max_length=100, default="default")
    agent_type = models.CharField(max_length=100, blank=True)
    kind = models.CharField(max_length=15, choices=SessionKind, default=SessionKind.WORKER)
    model = models.CharField(max_length=100)
    system_prompt = models.TextField(blank=True)  # what the request asked for; empty: the preset
    status = models.CharField(max_length=10, choices=SessionStatus, default=SessionStatus.PENDING)
    trust_level = models.CharField(max_length=10, choices=TrustLevel, default=TrustLevel.VAULT)
    working_directory = models.TextField(blank=True)  # absolute, or relative to the vault; empty: the vault
    vault_root = models.TextField()
    message_count = models.PositiveIntegerField(default=0)
    archived = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)
    last_accessed = models.DateTimeField(default=timezone.now, db_index=True)
    continued_from = models.ForeignKey("self", models.SET_NULL, null=True, related_name="continued_by")
    parent = models.ForeignKey("self", models.SET_NULL, null=True, related_name="children")
    parent_tool_use_id = models.CharField(max_length=100, null=True)
    metadata = models.JSONField(default=default_metadata)
    # Text of the web or of a stranger, which may have told its agent what to do. Never taken back.
    has_read_strangers = models.BooleanField(default=False)
    last_seq = models.PositiveIntegerField(
        default=0
    )  # of its newest event; raised in the event's transaction
    cost_usd = models.DecimalField(max_digits=12, decimal_places=6, default=0)
    # The newest entry of its transcript that we have seen: a copy that lacks it is not the whole story.
    last_entry = models.CharField(max_length=36, blank=True)
    # The worker in which an idle process of its agent rests; what is said next is rung for there.
    warm_on = models.CharField(max_length=100, blank=True)

    objects: ClassVar[SessionQuerySet] = SessionQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["-last_accessed", "-pk"]
        indexes = [
            models.Index(fields=["workspace", "archived", "-last_accessed", "-id"], name="session_list"),
            models.Index(
                fields=["source", "bot_chat"], name="sessions_of_a_bot_chat", condition=~Q(bot_chat="")
            ),
            models.Index(
                fields=["last_accessed"],
                name="session_idle",
                condition=Q(status=SessionStatus.RUNNING),
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=among("status", SessionStatus), name="session_status_is_known"),
            models.CheckConstraint(condition=among("trust_level", TrustLevel), name="session_trust_is_known"),
            models.CheckConstraint(
                condition=among("visibility", Visibility), name="session_visibility_is_known"
            ),
            models.CheckConstraint(condition=among("kind", SessionKind), name="session_kind_is_known"),
            models.CheckConstraint(condition=among("source", Source), name="session_source_is_known"),
            models.CheckConstraint(condition=among("module", Module), name="session_module_is_known"),
            models.CheckConstraint(
                condition=among("title_source", TitleSource), name="title_source_is_known"
            ),
            models.CheckConstraint(
                condition=Q(parent=None) | ~Q(parent=F("id")), name="session_is_not_its_own_parent"
            ),
            models.UniqueConstraint(
                fields=["parent", "parent_tool_use_id"],
                condition=Q(parent_tool_use_id__isnull=False),
                name="one_child_a_tool_use",
            ),
            models.UniqueConstraint(
                fields=["workspace", "agent_slug"],
                condition=Q(kind=SessionKind.ORCHESTRATOR, status__in=LIVE),
                name="one_live_session_an_orchestrator",
            ),
        ]

    def __str__(self) -> str:
        """In the console, whoever reads there: a private title is its author's."""
        return self.title if self.is_shared and self.title else str(self.pk)

    @property
    def author(self) -> str | None:
        """The name of who began it; asks the database unless it was selected with it."""
        return self.created_by.get_username() if self.created_by else None

    @property
    def shown_tags(self) -> list[str]:
        """Asks the database unless they were fetched with it."""
        return [label.tag for label in self.labels.all()]

    @property
    def is_shared(self) -> bool:
        return self.visibility == Visibility.WORKSPACE

    @property
    def is_summary_a_persons(self) -> bool:
        return bool(self.metadata.get(SUMMARY_SOURCE) == TitleSource.USER)

    @property
    def is_driven(self) -> bool:
        """By Parachute itself, or by somebody on a phone: nobody sits there who could answer for a whole
        computer."""
        return self.is_errand or self.kind == SessionKind.ORCHESTRATOR or self.source in OF_BOTS

    @property
    def is_errand(self) -> bool:
        """A child's, or started by a schedule: nobody sits beside it, and it ends with its turn."""
        return self.parent_id is not None or self.kind == SessionKind.SCHEDULED

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone

from sessions_app.access.models import among
from sessions_app.models.session import Session
from sessions_app.models.turn import Turn
from sessions_app.querysets import EventQuerySet


class EventType(models.TextChoices):
    SESSION = "session", "session"
    SESSION_UPDATED = "session_updated", "session_updated"
    USER_MESSAGE = "user_message", "user_message"
    TURN_WAITING = "turn_waiting", "turn_waiting"
    PROMPT_METADATA = "prompt_metadata", "prompt_metadata"
    MODEL = "model", "model"
    INIT = "init", "init"
    TEXT = "text", "text"
    THINKING = "thinking", "thinking"
    TOOL_USE = "tool_use", "tool_use"
    TOOL_RESULT = "tool_result", "tool_result"
    PERMISSION_REQUEST = "permission_request", "permission_request"
    PERMISSION_RESOLVED = "permission_resolved", "permission_resolved"
    PERMISSION_DENIED = "permission_denied", "permission_denied"
    GRANT_REQUEST = "grant_request", "grant_request"
    GRANT_RESOLVED = "grant_resolved", "grant_resolved"
    USER_QUESTION = "user_question", "user_question"
    QUESTION_ANSWERED = "question_answered", "question_answered"
    CHILD_SPAWNED = "child_spawned", "child_spawned"
    AGENT_STATUS = "agent_status", "agent_status"
    AGENT_SHARE = "agent_share", "agent_share"
    SESSION_COMPLETED = "session_completed", "session_completed"
    SESSION_FAILED = "session_failed", "session_failed"
    WARNING = "warning", "warning"
    SESSION_UNAVAILABLE = "session_unavailable", "session_unavailable"
    DONE = "done", "done"
    ABORTED = "aborted", "aborted"
    ERROR = "error", "error"
    TYPED_ERROR = "typed_error", "typed_error"


TERMINAL = (EventType.DONE, EventType.ABORTED, EventType.ERROR, EventType.TYPED_ERROR)
ASKING = (
    EventType.PERMISSION_REQUEST,
    EventType.PERMISSION_RESOLVED,
    EventType.USER_QUESTION,
    EventType.QUESTION_ANSWERED,
)
WORK = (EventType.TEXT, EventType.THINKING, EventType.TOOL_USE, EventType.TOOL_RESULT)


class SessionEvent(models.Model):
    """One row of a session's stream. Written by `log.record` alone, never changed, never without its
    predecessor: `seq` starts at 1 and has no gaps."""

    session = models.ForeignKey(Session, models.CASCADE, related_name="events")
    seq = models.PositiveIntegerField()
    turn = models.ForeignKey(Turn, models.CASCADE, null=True, related_name="events")
    type = models.CharField(max_length=24, choices=EventType)
    payload = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)

    objects: ClassVar[EventQuerySet] = EventQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["session", "seq"]
        constraints = [
            models.UniqueConstraint(fields=["session", "seq"], name="one_event_a_seq"),
            models.UniqueConstraint(
                fields=["turn"], condition=Q(type__in=TERMINAL), name="one_terminal_event_a_turn"
            ),
            models.CheckConstraint(condition=Q(seq__gte=1), name="seq_starts_at_one"),
            models.CheckConstraint(condition=among("type", EventType), name="event_type_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.type}"

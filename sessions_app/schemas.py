"""What goes over the wire: camelCase outside, snake_case inside, and both accepted."""

from datetime import datetime
from typing import Any
from uuid import UUID

from ninja import Schema
from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from sessions_app.models import Session, SessionStatus


class Wire(Schema):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, from_attributes=True)


class Order(Wire):
    """A request body. A field that we do not know is refused by name, never ignored."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, from_attributes=True, extra="forbid"
    )


class ErrorDetails(Wire):
    code: str
    message: str
    details: dict[str, Any] | None = None


class ErrorOut(Wire):
    error: ErrorDetails


class LinkedBot(Wire):
    platform: str
    chat_id: str
    chat_type: str


class SessionOut(Wire):
    id: UUID
    title: str
    title_source: str
    summary: str
    module: str
    source: str
    workspace: str
    agent_slug: str
    agent_type: str
    kind: str
    model: str
    status: str
    activity: str
    trust_level: str
    working_directory: str
    vault_root: str
    message_count: int
    archived: bool
    created_at: datetime
    last_accessed: datetime
    continued_from: UUID | None
    parent_session_id: UUID | None
    linked_bot: LinkedBot | None = None
    tags: list[str] = []
    cost_usd: float
    metadata: dict[str, Any]

    @staticmethod
    def resolve_workspace(session: Session) -> str:
        return str(session.workspace.slug)

    @staticmethod
    def resolve_activity(session: Session) -> str:
        return activity(session)

    @staticmethod
    def resolve_continued_from(session: Session) -> UUID | None:
        return session.continued_from_id

    @staticmethod
    def resolve_parent_session_id(session: Session) -> UUID | None:
        return session.parent_id


class PendingTurn(Wire):
    turn_id: UUID
    message: str
    status: str


class SessionDetail(SessionOut):
    messages: list[dict[str, Any]]
    replay_from: int
    last_seq: int
    pending_turns: list[PendingTurn]
    children: list[SessionOut] = []
    pending_permissions: list[dict[str, Any]] = []
    pending_questions: list[dict[str, Any]] = []
    curator_last_run: dict[str, Any] | None = None


class SessionList(Wire):
    sessions: list[SessionOut]
    total: int
    next_cursor: str | None


def activity(session: Session) -> str:
    """What a session does at this moment. Needs `with_activity`."""
    if getattr(session, "is_waiting", False):
        return "waiting"
    return "active" if getattr(session, "is_active", False) else "quiescent"


STATUSES = frozenset(SessionStatus.values)

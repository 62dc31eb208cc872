"""What goes over the wire: camelCase outside, snake_case inside, and both accepted."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from ninja import Schema
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from sessions_app import metadata
from sessions_app.models import Session
from sessions_app.storable import storable


def _storable(text: str) -> str:
    """Refused by the name of its field, before a database refuses it."""
    if storable(text) != text:
        raise PydanticCustomError("text", "It holds a character that is no text (NUL or half of a pair).")
    return text


Text = Annotated[str, AfterValidator(_storable)]


class Wire(Schema):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, from_attributes=True)


class Order(Wire):
    """A request body. A field that we do not know is refused by name, never ignored."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, from_attributes=True, extra="forbid"
    )


class ErrorDetails(Wire):
    code: str = Field(examples=["not_found"])
    message: str = Field(examples=["There is nothing here, or nothing that you may see."])
    details: dict[str, Any] | None = Field(None, description="`fields[]` names each field that is `invalid`")


class ErrorOut(Wire):
    error: ErrorDetails


def refusals(*statuses: int) -> dict[int, Any]:
    """For the `response` of an operation: each of these looks the same."""
    return dict.fromkeys(statuses, ErrorOut)


class LinkedBot(Wire):
    platform: str
    chat_id: str
    chat_type: str

    @classmethod
    def of(cls, session: Session) -> Self | None:
        if not session.bot_chat:
            return None
        return cls.model_construct(
            platform=session.source, chat_id=session.bot_chat, chat_type=session.bot_chat_type
        )


class SessionOut(Wire):
    id: UUID
    title: str
    title_source: str
    summary: str
    module: str
    source: str
    workspace: str
    visibility: str
    author: str | None = Field(description="The user name of who began it; null where nobody did")
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

    @classmethod
    def of(cls, session: Session, **more: Any) -> Self:
        """From a row `with_activity`. By hand: ninja's own way costs 0.4 ms a row, in the event loop."""
        return cls.model_construct(
            **{name: getattr(session, name) for name in _AS_THEY_ARE},
            workspace=session.workspace.slug,
            activity=_activity(session),
            author=session.author,
            tags=session.shown_tags,
            continued_from=_continued_from(session),
            linked_bot=LinkedBot.of(session),
            parent_session_id=session.parent_id,
            cost_usd=float(session.cost_usd),
            **more,
        )


_NOT_COLUMNS = {
    "workspace",
    "activity",
    "author",
    "continued_from",
    "parent_session_id",
    "linked_bot",
    "tags",
    "cost_usd",
}
_AS_THEY_ARE = tuple(name for name in SessionOut.model_fields if name not in _NOT_COLUMNS)


LONGEST_TITLE = 200
LONGEST_SUMMARY = 10_000


def _title(text: str) -> str:
    title = _storable(text).strip()
    if not 1 <= len(title) <= LONGEST_TITLE or len(title.splitlines()) > 1:
        raise PydanticCustomError("title", f"Give one line of 1 to {LONGEST_TITLE} characters.")
    return title


class Permissions(Order):
    read: list[Text] | None = None
    write: list[Text] | None = None
    bash: StrictBool | list[Text] | None = None
    trust_mode: StrictBool | None = None


class MetadataChange(BaseModel):
    """What a client keeps there stays as it is, whatever its keys are called."""

    model_config = ConfigDict(extra="allow")

    permissions: Permissions | None = None

    def merged_into(self, held: metadata.Metadata) -> metadata.Metadata:
        given = dict(self.model_extra or {})
        if self.permissions is not None:
            given[metadata.PERMISSIONS] = self.permissions.model_dump(by_alias=True, exclude_none=True)
        return metadata.merged(held, given)


class SessionChange(Order):
    """What is left out, or null, stays as it is."""

    title: Annotated[str, AfterValidator(_title)] | None = Field(
        None, description="One line of 1 to 200 characters. From here on the title is a person's"
    )
    summary: Annotated[Text, Field(max_length=LONGEST_SUMMARY)] | None = Field(
        None, description="Another one is a person's from here on"
    )
    model: Annotated[Text, Field(min_length=1)] | None = Field(
        None, description="Counts from the next turn: one that runs goes on with the model that it has"
    )
    trust_level: Literal["full", "vault", "sandboxed"] | None = Field(
        None, description="Towards less only, and from the next turn on"
    )
    visibility: Literal["private", "workspace"] | None = Field(
        None,
        description="`workspace` shares it, and what it started, with everybody in its workspace. For its "
        "author, or an owner of the workspace",
    )
    metadata: MetadataChange | None = Field(
        None,
        description="Merged key by key; null takes a key out. What the server keeps there is left as it is, "
        "and `permissions` can only become less. At most 16,000 characters in all",
    )

    def columns(self, session: Session) -> dict[str, Any]:
        """What is wanted of the session's columns."""
        plain = {name: getattr(self, name) for name in ("title", "summary", "model", "trust_level")}
        wanted = {name: value for name, value in plain.items() if value is not None}
        if self.metadata is not None:
            wanted["metadata"] = self.metadata.merged_into(session.metadata)
        return wanted


class TagOrder(Order):
    tag: Text = Field(examples=["garden"])


class Tags(Wire):
    tags: list[str] = Field(examples=[["garden", "plans"]])


class TagCount(Wire):
    tag: str = Field(examples=["garden"])
    count: int = Field(examples=[3])


class TagCounts(Wire):
    tags: list[TagCount]


class SessionCounts(Wire):
    total: int
    archived: int
    children: int = Field(description="Started by another session")
    by_source: dict[str, int] = Field(examples=[{"parachute": 12, "telegram": 3}])
    by_agent: dict[str, int] = Field(examples=[{"default": 15}])


class TurnCounts(Wire):
    total: int
    by_status: dict[str, int] = Field(examples=[{"done": 40, "failed": 1}])


class IndexedCounts(Wire):
    notes: int
    chunks: int


class Memory(Wire):
    mb: float = Field(description="Of the web process that answers", examples=[118.4])


class Stats(Wire):
    """Of what you may see."""

    sessions: SessionCounts
    turns: TurnCounts
    tags: int
    indexed: IndexedCounts
    memory: Memory


class SegmentOut(Wire):
    index: int
    start: str = Field(description="The time of its first row", examples=["2026-11-18T10:33:27.863Z"])
    end: str
    is_compacted: bool = Field(description="Its model has read a summary of it since, and no more")
    message_count: int = Field(description="What people said, and messages of the agent")
    preview: str = Field(
        description="How the first message in it begins", examples=["When do quinces ripen?"]
    )


class Transcript(Wire):
    messages: list[dict[str, Any]] = Field(description="As in `GET /api/chat/{id}`")
    segments: list[SegmentOut]
    segment_count: int
    skipped_lines: int = Field(
        description="Of the file, that are no rows: torn, or not the CLI's", examples=[0]
    )


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


def _continued_from(session: Session) -> UUID | None:
    """Not the name of a private chat to those with whom it was gone on."""
    before = session.continued_from
    return None if before is None or (session.is_shared and not before.is_shared) else before.pk


def _activity(session: Session) -> str:
    if session.is_waiting:  # type: ignore[attr-defined]
        return "waiting"
    if session.is_active:  # type: ignore[attr-defined]
        return "active"
    return "attentive" if session.is_attentive else "quiescent"  # type: ignore[attr-defined]

from base64 import b64decode
from typing import Literal
from uuid import UUID

from django.utils.translation import gettext as _
from pydantic import Field

from agents_app.turns.said.opening import Opening
from sessions_app.errors import Invalid
from sessions_app.files.attachments import Given
from sessions_app.schemas import Order, Wire

LONGEST_KEY = 255


class AttachmentIn(Order):
    file_name: str = Field(description="What is before its last / is left away", examples=["pruning.md"])
    mime_type: str = Field("", description="Not relied on: the content shows it", examples=["text/markdown"])
    base64_data: str = Field(description="At most 20 MB when decoded", examples=["IyBQcnVuaW5nCg=="])


class TrustModeOrder(Order):
    trust_mode: Literal[True] = Field(description="To take it away, `PATCH` the session")


class ChatRequest(Order):
    message: str = Field(
        "", description="At most 102,400 characters", examples=["What is in my garden notes?"]
    )
    session_id: str | None = Field(None, description='Absent, null or "new": a new session', examples=["new"])
    workspace: str | None = Field(None, description="A slug; yours that is oldest, if none")
    agent: str | None = Field(
        None, description="A slug; the workspace's default agent, if none", examples=["default"]
    )
    agent_path: str | None = Field(None, description="Its file in the vault, instead of the slug")
    agent_type: str | None = Field(None, description="What the session's list can be filtered by")
    model: str | None = None
    module: Literal["chat", "daily", "build"] = "chat"
    system_prompt: str | None = Field(None, description="Instead of the preset, for a new session")
    working_directory: str | None = Field(None, description="In the vault, or absolute", examples=["Garden"])
    initial_context: str | None = None
    prior_conversation: str | None = None
    continued_from: UUID | None = None
    trust_level: Literal["full", "vault", "sandboxed"] | None = None
    recovery_mode: Literal["inject_context", "fresh_start"] | None = Field(
        None, description="Not to resume the agent: tell it what was said, or start anew"
    )
    contexts: list[str] = Field(
        [], description="Folders of the vault whose AGENTS.md or CLAUDE.md a new session's agent is told"
    )
    attachments: list[AttachmentIn] = Field(
        [], description="At most 10 files. With one of them the message may be empty"
    )

    def as_opening(self) -> Opening:
        """Decodes the files, so it is called in a thread."""
        return Opening(
            message=self.message,
            session_id=_session_id(self.session_id),
            workspace=self.workspace,
            agent=self.agent or None,
            agent_path=self.agent_path or None,
            agent_type=self.agent_type or "",
            model=self.model,
            module=self.module,
            system_prompt=self.system_prompt or "",
            working_directory=self.working_directory or "",
            initial_context=self.initial_context or "",
            prior_conversation=self.prior_conversation or "",
            continued_from=self.continued_from,
            trust_level=self.trust_level,
            recovery=self.recovery_mode or "",
            contexts=tuple(self.contexts),
            attachments=tuple(_given(number, file) for number, file in enumerate(self.attachments)),
        )


def _given(number: int, file: AttachmentIn) -> Given:
    try:
        return Given(file.file_name, b64decode(file.base64_data, validate=True))
    except ValueError as error:
        problem = "This is no base64: the standard alphabet with its padding, without line breaks."
        raise Invalid.field(f"attachments.{number}.base64Data", problem) from error


def _session_id(given: str | None) -> UUID | None:
    if given is None or given == "new":
        return None
    try:
        return UUID(given)
    except ValueError as error:
        raise Invalid.field(
            "sessionId", _("This is no session id. Leave it out for a new session.")
        ) from error


def idempotency_key(given: object) -> str:
    """The key of a POST, or of a message over a socket; empty where there is none."""
    if not isinstance(given, str) or len(given) > LONGEST_KEY:
        raise Invalid.field(
            "Idempotency-Key",
            _("Give text of at most %(most)s characters.") % {"most": LONGEST_KEY},
        )
    return given


class Accepted(Wire):
    session_id: UUID
    turn_id: UUID
    seq: int


class InjectRequest(Order):
    message: str = Field(description="1 to 32,000 characters", examples=["Only the notes of this year."])


class InjectOut(Wire):
    turn_id: UUID
    state: Literal["running", "queued"]


class AbortRequest(Order):
    turn_id: UUID | None = None


class AbortOut(Wire):
    success: bool
    session_id: UUID
    turn_id: UUID


class StreamingStatus(Wire):
    is_streaming: bool
    turn_id: UUID | None
    current_tool: str | None
    current_tool_summary: str | None
    queued: int


class ActiveStream(Wire):
    session_id: UUID
    turn_id: UUID
    started_at: str


class ActiveStreams(Wire):
    streams: list[ActiveStream]
    count: int

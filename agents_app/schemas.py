from typing import Literal
from uuid import UUID

from pydantic import Field

from agents_app.turns.opening import Opening
from sessions_app.errors import Invalid
from sessions_app.schemas import Order, Wire


class ChatRequest(Order):
    message: str = Field("", examples=["What did I write about quinces?"])
    session_id: str | None = Field(None, description='Absent, null or "new": a new session')
    workspace: str | None = None
    model: str | None = None
    module: Literal["chat", "daily", "build"] = "chat"
    system_prompt: str | None = None
    working_directory: str | None = None
    initial_context: str | None = None
    prior_conversation: str | None = None
    continued_from: UUID | None = None
    trust_level: Literal["full", "vault", "sandboxed"] | None = None

    def as_opening(self) -> Opening:
        return Opening(
            message=self.message,
            session_id=_session_id(self.session_id),
            workspace=self.workspace,
            model=self.model,
            module=self.module,
            system_prompt=self.system_prompt or "",
            working_directory=self.working_directory or "",
            initial_context=self.initial_context or "",
            prior_conversation=self.prior_conversation or "",
            continued_from=self.continued_from,
            trust_level=self.trust_level,
        )


def _session_id(given: str | None) -> UUID | None:
    if given is None or given == "new":
        return None
    try:
        return UUID(given)
    except ValueError as error:
        raise Invalid.field("sessionId", "This is no session id. Leave it out for a new session.") from error


class Accepted(Wire):
    session_id: UUID
    turn_id: UUID
    seq: int


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

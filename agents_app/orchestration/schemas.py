from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import Field

from agents_app.orchestration.cancelling import LONGEST_REASON
from agents_app.orchestration.ledger import Cost
from agents_app.orchestration.models import Share, Wake
from agents_app.orchestration.spawning import LONGEST_PROMPT, LONGEST_USE
from agents_app.turns.said.opening import LONGEST_MESSAGE
from sessions_app.schemas import Order, Text, Wire

Prompt = Annotated[Text, Field(max_length=LONGEST_PROMPT)]


class RunOrder(Order):
    prompt: Annotated[Text, Field(max_length=LONGEST_MESSAGE)] = Field(
        "", description="What it is told; without, its heartbeat. One that lives already is told only this"
    )


class CancelOrder(Order):
    reason: Annotated[Text, Field(max_length=LONGEST_REASON)] = Field("", description="Its parent reads it")


class WakeOut(Wire):
    id: UUID
    session_id: UUID
    child_session_id: UUID | None
    kind: str
    state: str
    reason: str
    cause: str
    payload: dict[str, Any]
    tries: int
    turn_id: UUID | None
    created_at: datetime
    settled_at: datetime | None
    cost_usd: float

    @classmethod
    def of(cls, wake: Wake) -> Self:
        same = {name: getattr(wake, name) for name in _OF_WAKE}
        return cls(**same, child_session_id=wake.child_id, cost_usd=float(wake.cost_usd))


_OF_WAKE = (
    *("id", "session_id", "kind", "state", "reason", "cause", "payload", "tries", "turn_id"),
    *("created_at", "settled_at"),
)


class WakeCost(Wire):
    kind: str
    count: int
    cost_usd: float


class Ledger(Wire):
    wakes: list[WakeOut]
    costs: list[WakeCost] = Field(description="Of all there are, by kind")

    @classmethod
    def of(cls, wakes: list[Wake], costs: list[Cost]) -> Self:
        of_kinds = [WakeCost(kind=each.kind, count=each.count, cost_usd=float(each.usd)) for each in costs]
        return cls(wakes=[WakeOut.of(wake) for wake in wakes], costs=of_kinds)


class ShareOut(Wire):
    id: UUID
    title: str
    body: str
    kind: str
    session_id: UUID
    agent: str
    created_at: datetime
    resolved_at: datetime | None
    resolved_by: str | None

    @classmethod
    def of(cls, share: Share) -> Self:
        same = {name: getattr(share, name) for name in ("id", "title", "body", "kind", "session_id")}
        return cls(
            **same,
            agent=share.session.agent_slug,
            created_at=share.created_at,
            resolved_at=share.resolved_at,
            resolved_by=share.resolved_by.get_username() if share.resolved_by else None,
        )


class ShareList(Wire):
    shares: list[ShareOut]


class SpawnOrder(Order):
    """Of an agent's helper process."""

    workspace_slug: Text = ""
    agent_slug: Text
    parent_session_id: UUID
    parent_tool_use_id: Text
    initial_prompt: Prompt
    model: Text = ""
    triggered_by: Literal["orchestrator"] = "orchestrator"


class Spawned(Wire):
    session_id: UUID
    status: str


class SaidOrder(Order):
    """To a child, or to whoever started the session: which of both follows from the path."""

    text: Text
    needs_response: bool = False
    options: list[Text] = []
    request_id: Annotated[Text, Field(max_length=LONGEST_USE)] = Field(
        "", description="Of the tool use: the same one is said once"
    )

from datetime import datetime
from typing import Any, Self

from pydantic import Field

from agents_app.tools.mcp.services import Server
from sessions_app.schemas import Order, Text, Wire

OURS = frozenset({"accepted", "state", "hash", "error", "on", "tools", "triedAt", "problem"})


class ToolOut(Wire):
    name: str = Field(examples=["harvest"])
    description: str = Field(examples=["What a plant has yielded"])


class ServerOut(Wire):
    """An entry as `.mcp.json` has it, what may be a secret masked, and what people said of it."""

    type: str = Field(examples=["stdio"])
    command: str | None = Field(None, examples=["python3"])
    args: list[str] | None = None
    env: dict[str, str] | None = Field(None, examples=[{"TOKEN": "${GARDEN_TOKEN}"}])
    url: str | None = None
    headers: dict[str, str] | None = None
    approval: str | None = Field(None, description="`ask`: before each tool's first use in a chat")
    accepted: bool = Field(description="By an owner, as it is. Else it never starts")
    state: str = Field(description="accepted, new, changed or wrong")
    hash: str = Field(description="Of the entry: sent back by whoever accepts what they have read")
    error: str = Field(description="What is wrong in it")
    on: bool = Field(description="For agents whose files say nothing of servers")
    tools: list[ToolOut] = Field(description="As it had them when it was tried last")
    tried_at: datetime | None
    problem: str = Field(description="Why it did not work when it was tried last")

    @classmethod
    def of(cls, server: Server) -> Self:
        entry, known = server.entry, server.known if server.is_accepted else None
        return cls(
            **{"type": entry.kind, **entry.masked()},
            accepted=server.is_accepted,
            state=server.state,
            hash=entry.hash if entry.config else "",
            error=entry.problem,
            on=server.is_on,
            tools=[ToolOut(**each) for each in known.tools] if known else [],
            tried_at=known.tried_at if known else None,
            problem=known.problem if known else "",
        )


class ServerList(Wire):
    servers: dict[str, ServerOut]
    error: str = Field(description="What is wrong with the file as a whole")


class AcceptServer(Order):
    hash: Text = Field("", description="Of the entry that was read; another by now is a 409", examples=[""])


class SwitchOrder(Order):
    on: bool


class TriedOut(Wire):
    ok: bool
    error: str
    tools: list[ToolOut]


class ToolList(Wire):
    tools: list[ToolOut]


class SecretList(Wire):
    names: list[str] = Field(examples=[["GARDEN_TOKEN"]])


class SecretOrder(Order):
    value: Text = Field(max_length=8_000, description="Kept sealed, and never shown again")


class ChosenServer(Wire):
    name: str
    on: bool | None = Field(description="As somebody chose for this chat; null: as its agent has it")
    given: bool = Field(description="Whether the next turn gets it, as far as its trust level lets it work")


class ChosenServers(Wire):
    servers: list[ChosenServer]


class ChooseOrder(Order):
    on: bool | None = Field(description="Null: as its agent has it")


def config_in(body: dict[str, Any]) -> dict[str, Any]:
    """What was read may be sent back, with our own words in it."""
    return {key: value for key, value in body.items() if key not in OURS and value is not None}

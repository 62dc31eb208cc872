from datetime import datetime
from typing import Any, Literal, Self

from pydantic import Field

from agents_app.definitions.agents import Agent
from agents_app.definitions.rights import Rights
from agents_app.definitions.schema import Problem
from agents_app.prompts.assembled import Prompt
from sessions_app.schemas import Order, Text, Wire


class ProblemOut(Wire):
    line: int | None = Field(examples=[3])
    field: str = Field(examples=["model"])
    message: str = Field(examples=["text was expected, and this is a list"])

    @classmethod
    def of(cls, problem: Problem) -> Self:
        return cls(**problem.as_json())


class RightsOut(Wire):
    """Null: no limit of its own."""

    kind: Literal["worker", "orchestrator", "scheduled"]
    trust: Literal["full", "vault", "sandboxed"] | None
    tools: list[str] | None = Field(examples=[["Read", "Write"]])
    write: list[str] | None = Field(examples=[["Garden/**"]])
    read: list[str]
    bash: list[str]
    servers: list[str]
    spawn: list[str]
    schedule: str = Field(examples=["0 7 * * 1-5"])
    budget: float | None

    @classmethod
    def of(cls, rights: Rights) -> Self:
        return cls(**rights.as_json())


class PendingRights(Wire):
    hash: str = Field(description="Sent back by whoever accepts what they have read")
    rights: list[str] = Field(description="Those of which the file asks for more", examples=[["tools"]])
    asked: RightsOut
    counts: RightsOut


class AgentOut(Wire):
    id: str = Field(description="The slug; of a file that has none, its path", examples=["gardener"])
    slug: str = Field(examples=["gardener"])
    name: str = Field(examples=["Gardener"])
    description: str = Field(examples=["Keeps the notes on plants and seasons"])
    kind: str = Field(description="That counts", examples=["worker"])
    model: str = Field(description="Empty: the workspace's", examples=["sonnet"])
    tools: list[str] | None = Field(description="That count; null: all that are offered", examples=[["Read"]])
    trust: str | None = Field(description="At most; null: whatever its workspace allows", examples=["vault"])
    path: str = Field(
        description="In the vault; empty: it is there without a file", examples=["Agents/gardener.md"]
    )
    error: ProblemOut | None
    pending_rights: PendingRights | None

    @classmethod
    def of(cls, agent: Agent, **more: Any) -> Self:
        definition, rights = agent.definition, agent.rights
        problems = definition.all_problems
        return cls(
            id=agent.slug or definition.path,
            slug=agent.slug,
            name=definition.name if agent.slug else definition.path,
            description=definition.fields.description,
            kind=rights.kind,
            model=definition.model,
            tools=None if rights.tools is None else list(rights.tools),
            trust=rights.trust,
            path=definition.path,
            error=ProblemOut.of(problems[0]) if problems else None,
            pending_rights=_pending(agent),
            **more,
        )


class AgentDetail(AgentOut):
    content: str = Field(description="The file as it is")
    digest: str = Field(description="Of the file: sent back by whoever changes what they have read")
    prompt: str = Field(description="Its own; empty: the preset of Claude Code")
    rights: RightsOut = Field(description="Those that count")
    accepted_at: datetime | None
    problems: list[ProblemOut]

    @classmethod
    def whole(cls, agent: Agent) -> Self:
        definition = agent.definition
        return cls.of(
            agent,
            content=definition.text,
            digest=definition.digest if definition.path else "",
            prompt=definition.prompt,
            rights=RightsOut.of(agent.rights),
            accepted_at=agent.accepted_at,
            problems=[ProblemOut.of(each) for each in definition.all_problems],
        )


class AgentList(Wire):
    agents: list[AgentOut]


class AgentOrder(Order):
    content: Text = Field(
        description="The whole file, front matter and all",
        examples=["---\nname: Gardener\ntools: [Read, Write]\n---\n\nYou keep the garden.\n"],
    )
    digest: Text | None = Field(
        None, description="Of the file that was read; empty: there was none. Another one there is a 409"
    )


class AcceptOrder(Order):
    hash: Text = Field("", description="Of the rights that were read; others by now are a 409", examples=[""])


class PromptPart(Wire):
    name: str = Field(description="A file, or what the part is", examples=["CLAUDE.md"])
    text: str
    tokens: int = Field(description="Four characters each", examples=[120])


class PromptOut(Wire):
    prompt_source: Literal["claude_code_preset", "custom", "agent"]
    parts: list[PromptPart]
    context_files: list[str]
    context_truncated: bool
    total_prompt_tokens: int

    @classmethod
    def of(cls, prompt: Prompt) -> Self:
        return cls(
            prompt_source=prompt.source,
            parts=[PromptPart(name=each.name, text=each.text, tokens=each.tokens) for each in prompt.parts],
            context_files=list(prompt.context.files),
            context_truncated=prompt.context.truncated,
            total_prompt_tokens=prompt.tokens,
        )


def _pending(agent: Agent) -> PendingRights | None:
    waits = agent.pending
    if not waits:
        return None
    wanted = agent.definition.wanted
    return PendingRights(
        hash=wanted.hash, rights=waits, asked=RightsOut.of(wanted), counts=RightsOut.of(agent.rights)
    )

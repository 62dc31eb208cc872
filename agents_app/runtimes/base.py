"""The seam between a turn and what runs the agent."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from uuid import UUID

from agents_app.errors import AgentError
from agents_app.runtimes.events import RuntimeEvent
from agents_app.sandboxes.base import Sandbox
from agents_app.tools.mcp.given import GivenServer
from agents_app.tools.own import OwnServer
from agents_app.tools.skills.given import GivenSkill
from permissions_app.gate import Gate


@dataclass(frozen=True)
class RunRequest:
    """All that one run needs to know. `message_id` is pinned into the transcript."""

    session_id: UUID
    turn_id: UUID
    message_id: UUID
    text: str
    resume: bool  # else it starts anew: no transcript lies there
    model: str
    system_prompt: str  # empty: the preset
    append: str
    directory: Path
    vault: Path
    config: Path
    sandbox: Sandbox
    web: bool = False  # it may reach public hosts from behind its wall
    read_only: tuple[Path, ...] = ()  # what steers agents, as it was: a process from before does not fit
    masked: tuple[Path, ...] = ()  # hidden in the wall, wherever they lie: our own home may be in the vault
    opened: tuple[Path, ...] = ()  # files in what is masked that it may read all the same, where they are
    writable: tuple[str, ...] | None = None  # patterns whose folders a wall opens; None: the vault
    scratch: Path | None = None  # a writable folder of its own, made where it is not
    tools: tuple[str, ...] | None = None  # of the CLI's own; None: all that are offered at its trust level
    max_turns: int | None = None  # steps of an answer: each is a call of the model
    servers: tuple[OwnServer, ...] = ()  # beside those
    mcp_file: Path | None = None  # names servers that are processes; by file, as secrets may be in it
    given: tuple[GivenServer, ...] = ()  # servers of the vault
    skills: tuple[GivenSkill, ...] = ()
    skills_at: Path | None = None  # where they are put for its CLI, in its own folder
    is_fresh: bool = False  # it gets a process of its own, which is not kept for the next turn

    @property
    def has_processes(self) -> bool:
        """Of servers, beside its CLI."""
        return any(each.is_process for each in self.given)

    @property
    def may_rest(self) -> bool:
        """Its process, for the next turn: not beside processes of which nobody knows what they do meanwhile,
        nor with connections that are cut when a turn is over."""
        return not self.is_fresh and all(each.kind == "http" for each in self.given)


Waits = Callable[[str, int], Awaitable[None]]


class Run(Protocol):
    """Callers rely on this: events come in the order of what happened, with one `Ended` for each answer, or
    raise `RunFailed`; no tool runs that the gate did not allow; after `interrupt`, which never fails, the end
    comes soon. What is injected while a tool runs is read with the tool's answer; what is injected later is
    answered after it, as long as the run `owes_an_answer`. Then more may be injected, or the run be left."""

    @property
    def owes_an_answer(self) -> bool: ...

    def events(self) -> AsyncGenerator[RuntimeEvent]: ...

    async def inject(self, message_id: UUID, text: str) -> None: ...

    async def interrupt(self) -> None: ...


class Runtime(Protocol):
    def open(self, request: RunRequest, gate: Gate, waits: Waits) -> AbstractAsyncContextManager[Run]:
        """A run that has not begun. What it started is gone when the context is left, however it is left, but
        for one idle process that may be kept for the session's next turn and ends with `close`. `waits` is
        told where it has to wait for its turn: for which of the reasons of the wire, and at which place."""

    def rests(self, session_id: UUID) -> bool:
        """Whether an idle process of the session is kept."""

    async def forget(self, session_id: UUID) -> None:
        """Ends the idle process of a session, where one is kept."""

    async def close(self) -> None: ...


class RunFailed(AgentError):
    """The agent could not run, or broke off; `code` is one of the typed errors of the wire."""


class NotThisTime(RunFailed):
    """It did not start because of what somebody else did at that moment."""


class HeldBack(RunFailed):
    """It did not start because of another agent in its vault, which may be one that rests."""


class CannotResume(RunFailed):
    """Nothing has happened yet: what it was to go on from is not to be had."""

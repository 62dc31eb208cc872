"""A runtime on a stage: a vault, a gate that remembers what it was asked, a model that follows a script."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from agents_app.model.door import Door
from agents_app.model.endpoint import ModelEndpoint
from agents_app.runtimes.base import Run, RunRequest, Runtime
from agents_app.runtimes.events import Delta, Ended, RuntimeEvent, Used
from agents_app.sandboxes import named
from agents_app.sandboxes.base import Sandbox
from permissions_app.gate import Gate
from permissions_app.rules.decision import Decision
from permissions_app.rules.ladder import ToolCall
from permissions_app.rules.setting import Setting, Trust
from sessions_app.history import transcripts

PATIENCE = 60
KEY = "sk-ant-the-real-key"

Meanwhile = Callable[[Run], Awaitable[None]]


def sandbox_that_runs(name: str) -> Sandbox:
    """In CI nothing is skipped: there a wall that does not run is a failure. Containers have a fixture."""
    sandbox = named(name)
    if problem := sandbox.unavailable():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"NOT TESTED: {name}. {problem}")
    return sandbox


class WatchedGate(Gate):
    """The real gate, which remembers each call that it was asked about and what it said."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, standing=lambda setting: setting, on_denied=self._deny)
        self.meanwhile: Callable[[ToolCall, Path], Awaitable[None]] | None = None
        self.asked: list[tuple[ToolCall, Decision]] = []
        self.denied: list[ToolCall] = []

    async def __call__(self, call: ToolCall, directory: Path) -> Decision:
        decision = await super().__call__(call, directory)
        if self.meanwhile is not None:
            await self.meanwhile(call, directory)
        self.asked.append((call, decision))
        return decision

    async def _deny(self, call: ToolCall, decision: Decision) -> None:
        self.denied.append(call)


@dataclass
class Stage:
    runtime: Runtime
    sandbox: Sandbox
    vault: Path
    home: Path
    trust: Trust = Trust.VAULT
    opened: tuple[str, ...] = ()  # what of its vault a read-only box may write
    session_id: UUID = field(default_factory=uuid4)
    requests: list[RunRequest] = field(default_factory=list)
    waited: list[tuple[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.has_heard_text = asyncio.Event()
        self.has_heard_tool = asyncio.Event()
        self.gate = WatchedGate(
            Setting(
                trust=self.trust,
                behind_wall=self.sandbox.is_wall,
                operator=self.trust is Trust.FULL,
                vault=self.vault,
                working_directory=self.vault,
                home=self.home,
                scratch=self.scratch,
                own_config=None if self.scratch else self.config,
                own_servers=frozenset(),
            )
        )

    @property
    def config(self) -> Path:
        return transcripts.config_folder(self.session_id)

    @property
    def scratch(self) -> Path | None:
        """A read-only box has one."""
        return self.config / "scratch" if self.trust is Trust.SANDBOXED else None

    def request(self, text: str, **more: Any) -> RunRequest:
        given: dict[str, Any] = {
            "session_id": self.session_id,
            "turn_id": uuid4(),
            "message_id": uuid4(),
            "text": text,
            "resume": bool(self.requests),
            "model": "sonnet",
            "system_prompt": "",
            "append": "",
            "directory": self.vault,
            "vault": self.vault,
            "config": self.config,
            "sandbox": self.sandbox,
        }
        if self.scratch:
            given |= {"writable": self.opened, "scratch": self.scratch, "is_fresh": True}
        request = RunRequest(**(given | more))
        if not request.resume:
            transcripts.set_aside(self.session_id)
        self.requests.append(request)
        return self.requests[-1]

    async def play(self, text: str, meanwhile: Meanwhile | None = None, **more: Any) -> list[RuntimeEvent]:
        """One run to its end, and what came out of it. Each goes on where the one before ended."""
        heard: list[RuntimeEvent] = []
        async with (
            asyncio.timeout(PATIENCE),
            self.runtime.open(self.request(text, **more), self.gate, self.wait) as run,
        ):
            hearing = asyncio.create_task(self._hear(run, heard))
            try:
                if meanwhile is not None:
                    await meanwhile(run)
                await hearing
            finally:
                hearing.cancel()
        return heard

    async def wait(self, reason: str, position: int) -> None:
        self.waited.append((reason, position))

    async def _hear(self, run: Run, heard: list[RuntimeEvent]) -> None:
        async for event in run.events():
            heard.append(event)
            if isinstance(event, Delta):
                self.has_heard_text.set()
            if isinstance(event, Used):
                self.has_heard_tool.set()
            if isinstance(event, Ended) and (event.interrupted or not run.owes_an_answer):
                return


@asynccontextmanager
async def door_to(url: str) -> AsyncIterator[Door]:
    # Not in tmp_path: the path of a unix socket ends at 108 bytes.
    with tempfile.TemporaryDirectory(prefix="door") as folder:
        door = Door(Path(folder) / "door.sock", ModelEndpoint(url, ("x-api-key", KEY)))
        await door.open()
        try:
            yield door
        finally:
            await door.close()

"""A curator played by a test: at the runtime's seam, with the true gate and the true internal API. Only the
CLI and the process of its tools are left out; with these it is in tests/processes."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from agents_app.runtimes.base import CannotResume, RunRequest
from agents_app.runtimes.events import Answered, Ended, Ready, RuntimeEvent, Used
from curator_app import handed
from permissions_app.gate import Gate
from permissions_app.rules.decision import Verdict
from permissions_app.rules.ladder import ToolCall
from tests.api.web import Answer, Web

CHANGES = {"update_title": "title", "update_summary": "summary", "log_activity": "activity"}
COST = {"inputTokens": 7, "outputTokens": 3}

Then = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Tool:
    """A use of one of its tools, or of another."""

    name: str
    text: str

    @property
    def full_name(self) -> str:
        return f"mcp__curator__{self.name}" if self.name in CHANGES else self.name


@dataclass
class PlayedRuntime:
    """Plays its steps in each run: tools, what happens in between, and failures."""

    steps: list[Tool | Then | Exception] = field(default_factory=list)
    requests: list[RunRequest] = field(default_factory=list)
    servers: list[dict[str, Any]] = field(default_factory=list)  # as the file of each run has it
    answers: list[tuple[str, str]] = field(default_factory=list)  # of its tools: its name, and what came
    forgotten: set[UUID] = field(default_factory=set)  # memories that are lost
    tools_status: str = "connected"

    @asynccontextmanager
    async def open(self, request: RunRequest, gate: Gate, waits: Any) -> AsyncIterator["PlayedRun"]:
        self.requests.append(request)
        assert request.mcp_file
        assert request.mcp_file.stat().st_mode & 0o077 == 0
        server = json.loads(request.mcp_file.read_text())["mcpServers"]["curator"]
        self.servers.append(server)
        if request.session_id in self.forgotten:
            raise CannotResume("cli_crashed", "No conversation found")
        yield PlayedRun(self, request, gate, server)

    async def close(self) -> None: ...

    async def forget(self, session_id: UUID) -> None: ...

    def rests(self, session_id: UUID) -> bool:
        return False


@dataclass
class PlayedRun:
    runtime: PlayedRuntime
    request: RunRequest
    gate: Gate
    server: dict[str, Any]
    owes_an_answer: bool = False

    async def inject(self, message_id: UUID, text: str) -> None: ...

    async def interrupt(self) -> None: ...

    async def events(self) -> AsyncGenerator[RuntimeEvent]:
        state = {"name": "curator", "status": self.runtime.tools_status}
        yield Ready("played", (), (state,), "default")
        for step in self.runtime.steps:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, Tool):
                async for event in self._use(step):
                    yield event
            else:
                await step()
        yield Ended(response="done", model="played", usage=COST, cost_usd=0.25)

    async def _use(self, tool: Tool) -> AsyncGenerator[RuntimeEvent]:
        call = ToolCall(uuid4().hex, tool.full_name, {"text": tool.text})
        yield Used(call.id, call.name, call.input)
        decision = await self.gate(call, self.request.directory)
        if decision.verdict is not Verdict.ALLOW:
            self.runtime.answers.append((tool.name, decision.verdict.value))
            yield Answered(call.id, decision.reason, True)
            return
        answer = await self._patch({CHANGES[tool.name]: tool.text})
        self.runtime.answers.append((tool.name, "ok" if answer.status == 200 else answer.code))
        yield Answered(call.id, answer.body.decode(), answer.status != 200)

    async def _patch(self, body: dict[str, str]) -> Answer:
        session_id = self.server["args"][self.server["args"].index("--session-id") + 1]
        token = self.server["env"][handed.TOKEN]
        web = Web({"authorization": f"Bearer {token}"})
        return await web.patch(f"/api/internal/sessions/{session_id}", body)


def title(text: str) -> Tool:
    return Tool("update_title", text)


def summary(text: str) -> Tool:
    return Tool("update_summary", text)


def activity(text: str) -> Tool:
    return Tool("log_activity", text)

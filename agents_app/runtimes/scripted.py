"""The fake beside the real runtime: plays a script, through the same gate, and keeps the same promises.

`runtime.scripts` maps a word to the steps that are played when a message holds it. Like the real one it
writes a transcript, so that taking a turn up again can be tried without a CLI.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from django.utils import timezone

from agents_app.carrying.carrier import Carrier
from agents_app.runtimes.base import RunFailed, RunRequest, Waits
from agents_app.runtimes.events import Answered, BlockKind, Delta, Ended, Ready, RuntimeEvent, Said, Used
from agents_app.sandboxes.base import READ_ONLY, READ_WRITE
from agents_app.tools.own import OwnTool
from agents_app.workers.endings import end
from permissions_app.gate import Carried, Gate
from permissions_app.rules import patterns
from permissions_app.rules.control_files import steers
from permissions_app.rules.decision import Decision, Verdict
from permissions_app.rules.ladder import ToolCall
from permissions_app.rules.paths import fold
from sessions_app.history.transcripts import encoded

PIECE = 8
STOPPED = Decision(Verdict.DENY, "stopped", "It was interrupted.")


@dataclass(frozen=True)
class Say:
    text: str
    kind: BlockKind = BlockKind.TEXT


@dataclass(frozen=True)
class Begin:
    """The beginning of a text that is never finished: what comes next takes its place."""

    text: str
    kind: BlockKind = BlockKind.TEXT


@dataclass(frozen=True)
class Use:
    """Uses a tool, if the gate lets it: then `does` is called and its text is the tool's answer. `at`: it
    stands there while the tool runs."""

    name: str
    input: dict[str, Any]
    does: Callable[[], str] = lambda: "done"
    at: "Pause | None" = None
    given: list[Mapping[str, Any]] = field(default_factory=list)  # with what it was let through by a person


@dataclass(frozen=True)
class Pause:
    """Stands still until somebody goes on, or interrupts it if it is not deaf. `reached`: it stands."""

    reached: asyncio.Event
    go_on: asyncio.Event
    deaf: bool = False


@dataclass(frozen=True)
class Fail:
    code: str
    message: str = "It was scripted to fail."


@dataclass(frozen=True)
class Break:
    """Something that nobody foresaw."""


@dataclass(frozen=True)
class Stop:
    """It ends in the middle, and nobody asked it to."""


Step = Say | Begin | Use | Pause | Fail | Break | Stop


class ScriptedRuntime:
    def __init__(self) -> None:
        self.scripts: dict[str, list[Step]] = {}
        self.requests: list[RunRequest] = []
        self.open_runs = 0

    @asynccontextmanager
    async def open(self, request: RunRequest, gate: Gate, waits: Waits) -> AsyncIterator["ScriptedRun"]:
        self.requests.append(request)
        self.open_runs += 1
        try:
            yield ScriptedRun(request, gate, self.steps_for)
        finally:
            self.open_runs -= 1

    def steps_for(self, text: str) -> list[Step]:
        default: list[Step] = [Say("ok")]
        return next((steps for key, steps in self.scripts.items() if key in text), default)

    def rests(self, session_id: UUID) -> bool:
        return False

    async def forget(self, session_id: UUID) -> None:
        """It keeps nothing."""

    async def close(self) -> None:
        """It keeps nothing."""


class ScriptedRun:
    def __init__(self, request: RunRequest, gate: Gate, steps_for: Callable[[str], list[Step]]) -> None:
        self._request = request
        self._gate = gate
        self._steps_for = steps_for
        self._said = [(request.message_id, request.text)]
        self._interrupted = asyncio.Event()
        self._response = ""
        self._carried: dict[str, Carried] = {}
        gate.stands_behind(Carrier(request.vault, self._shows) if request.sandbox.is_wall else None)

    def _shows(self, place: Path) -> int:
        """As a wall that was built for this request would."""
        name = place.relative_to(self._request.vault.resolve())
        allowed = self._request.writable
        is_open = allowed is None or any(patterns.matches(each, str(name)) for each in allowed)
        return READ_WRITE if is_open and not steers([fold(part) for part in name.parts]) else READ_ONLY

    @property
    def owes_an_answer(self) -> bool:
        return bool(self._said)

    async def inject(self, message_id: UUID, text: str) -> None:
        self._said.append((message_id, text))

    async def interrupt(self) -> None:
        self._interrupted.set()

    async def events(self) -> AsyncGenerator[RuntimeEvent]:
        servers = tuple({"name": each.name, "status": "connected"} for each in self._request.given)
        yield Ready("scripted", ("Read", "Write", "Bash"), servers, "default")
        while self._said:
            async for event in self._answer(*self._said.pop(0)):
                yield event

    async def _answer(self, message_id: UUID, text: str) -> AsyncGenerator[RuntimeEvent]:
        self._write("user", text, str(message_id), promptSource="sdk")
        for step in self._steps_for(text):
            if self._interrupted.is_set():
                break
            async for event in self._play(step):
                yield event
        stopped = self._interrupted.is_set()
        usage = {"inputTokens": 1, "outputTokens": 1}
        yield Ended(stopped, self._response, "scripted", usage)

    async def _play(self, step: Step) -> AsyncGenerator[RuntimeEvent]:
        match step:
            case Say(text, kind):
                async for event in self._say(text, kind):
                    yield event
            case Begin(text, kind):
                for delta in _deltas(kind, text):
                    yield delta
            case Use():
                async for event in self._use(step):
                    yield event
            case _:
                await self._halt(step)

    async def _halt(self, step: Pause | Fail | Break | Stop) -> None:
        match step:
            case Pause(reached, go_on, deaf):
                reached.set()
                await _first(go_on, *([] if deaf else [self._interrupted]))
            case Fail(code, message):
                raise RunFailed(code, message)
            case Break():
                raise ZeroDivisionError("a secret: sk-ant-0000")
            case Stop():
                self._interrupted.set()

    async def _say(self, text: str, kind: BlockKind) -> AsyncGenerator[RuntimeEvent]:
        for delta in _deltas(kind, text):
            yield delta
        if kind is BlockKind.TEXT:
            self._response = text
            self._write("assistant", [{"type": "text", "text": text}], str(uuid4()))
        yield Said(kind, text)

    async def _use(self, step: Use) -> AsyncGenerator[RuntimeEvent]:
        call = ToolCall(f"toolu_{uuid4().hex[:24]}", step.name, step.input)
        yield Used(call.id, call.name, call.input)
        decision = await self._gate(call, self._request.directory)
        if decision.verdict is Verdict.ASK:
            decision = await self._ask(call, step)
        if carried := self._carried.pop(call.id, None):
            yield Answered(call.id, carried.text, carried.is_error)
            self._read_what_was_said()
            return
        allowed = decision.verdict is Verdict.ALLOW
        if step.at is not None and allowed:
            await self._halt(step.at)
        if allowed and (own := self._own_tool(call.name)):
            told = await own.told(call.input, call.id)
            yield Answered(call.id, told.text, told.is_error)
        else:
            yield Answered(call.id, step.does() if allowed else decision.reason, not allowed)
        self._read_what_was_said()

    def _own_tool(self, name: str) -> OwnTool | None:
        found = (server.named(name) for server in self._request.servers)
        return next((tool for tool in found if tool), None)

    async def _ask(self, call: ToolCall, step: Use) -> Decision:
        """Interrupted meanwhile, it asks no longer, as the CLI."""
        asking = asyncio.create_task(self._gate.ask(call))
        stopped = asyncio.create_task(self._interrupted.wait())
        try:
            await asyncio.wait({asking, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                return STOPPED
            answer = asking.result()
        finally:
            stopped.cancel()
            await end(asking)
        if answer.carried:
            self._carried[call.id] = answer.carried
            return answer.decision
        step.given.append(answer.input if answer.input is not None else call.input)
        return answer.decision

    def _read_what_was_said(self) -> None:
        """With a tool's answer, as the CLI reads it."""
        for message_id, text in self._said:
            self._write("user", text, str(message_id))
        self._said.clear()

    def _write(self, role: str, content: str | list[dict[str, Any]], uuid: str, **more: str) -> None:
        folder = self._request.config / "projects" / encoded(self._request.directory)
        folder.mkdir(parents=True, exist_ok=True)
        message = {"role": role, "content": content, "id": uuid}
        entry = {
            "type": role,
            "message": message,
            "uuid": uuid,
            "timestamp": timezone.now().isoformat(),
            **more,
        }
        with (folder / f"{self._request.session_id}.jsonl").open("a") as file:
            file.write(json.dumps(entry, separators=(",", ":")) + "\n")


def _deltas(kind: BlockKind, text: str) -> Iterator[Delta]:
    for start in range(0, len(text), PIECE):
        yield Delta(kind, text[start : start + PIECE], starts=start == 0)


async def _first(*events: asyncio.Event) -> None:
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()


runtime = ScriptedRuntime()

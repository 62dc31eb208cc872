"""What a run does, written into the session's stream: deltas to the bus, everything finished as a row."""

import asyncio
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any
from uuid import UUID

from django.utils import timezone

from agents_app.runtimes.events import Answered, BlockKind, Delta, Ready, Said, Used, Warned
from agents_app.turns.running.kept import Row, row_of
from agents_app.workers.endings import to_its_end
from permissions_app.rules.decision import Decision
from permissions_app.rules.ladder import ToolCall
from sessions_app.models import EventType, SessionEvent
from sessions_app.storable import storable
from sessions_app.streaming import bus
from sessions_app.streaming.log import Hold, record_all
from sessions_app.threads import in_thread

LONGEST_RESULT = 100_000
TOLD_WITHIN = 2.0  # seconds; a call of which a run never tells keeps nobody from being asked about it


@dataclass
class _Unfinished:
    """The block that is being written."""

    kind: BlockKind
    pieces: list[str] = field(default_factory=list)
    length: int = 0

    def add(self, text: str) -> int:
        """Where the piece begins."""
        offset = self.length
        self.pieces.append(text)
        self.length += len(text)
        return offset

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class Recorder:
    """Writes for one attempt of one turn, fenced by its hold."""

    def __init__(self, session_id: UUID, hold: Hold, *, last_seq: int) -> None:
        self._session_id = session_id
        self._hold = hold
        self._block = 0
        self._last_seq = last_seq
        self._unfinished: _Unfinished | None = None
        self._used: dict[str, tuple[Used, float]] = {}
        self._told: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._announced: asyncio.Task[None] | None = None
        self.was_warm = False
        self.tool_calls: list[dict[str, Any]] = []
        self.denials: list[dict[str, Any]] = []
        self.response = ""  # the last text that was said

    async def go_on(self) -> None:
        """Counts the blocks on from where the attempt before this one ended."""
        self._block = await in_thread(_next_block)(self._hold.turn_id)

    async def write(self, event: Delta | Said | Used | Answered | Warned) -> None:
        match event:
            case Delta():
                await self.delta(event)
            case Said():
                await self.said(event)
            case Used():
                await self.used(event)
            case Answered():
                await self.answered(event)
            case Warned():
                await self.warned(event)

    async def row(self, kind: EventType, payload: dict[str, Any]) -> None:
        """To its end, also when the turn is stopped meanwhile: a thread cannot be called back, and the row
        would come after the turn's last."""
        await to_its_end(self._write([(kind, payload)], after=self._announced))

    def announce(self, rows: list[Row], ready: Ready) -> None:
        """All that comes before the work, in one transaction and beside it: what follows waits for it. An
        agent that is ready once more, to answer what was said meanwhile, has been announced."""
        if self._announced is None:
            self.was_warm = ready.was_warm
            together = [*rows, (EventType.MODEL, {"model": ready.model}), (EventType.INIT, _init(ready))]
            self._announced = asyncio.create_task(self._write(together))

    async def settled(self) -> None:
        if self._announced is not None:
            await asyncio.shield(self._announced)

    async def told_of(self, tool_use_id: str) -> None:
        """Before a person is asked: the gate may be quicker than what the run says, and a card stands below
        the tool that it is about."""
        await self.settled()
        with suppress(TimeoutError):
            async with asyncio.timeout(TOLD_WITHIN):
                await self._told[tool_use_id].wait()

    async def through(self) -> None:
        """No row comes after the turn's last. What went wrong with one is told by what waited for it."""
        await asyncio.gather(self.settled(), return_exceptions=True)

    async def _write(self, rows: list[Row], after: asyncio.Task[None] | None = None) -> None:
        if after is not None:
            await after
        written: list[SessionEvent] = await in_thread(record_all)(self._session_id, rows, hold=self._hold)
        self._last_seq = max(self._last_seq, written[-1].seq)  # the gate writes beside what the run says

    @property
    def is_using_a_tool(self) -> bool:
        return bool(self._used)

    async def waits(self, reason: str, position: int) -> None:
        await self.row(EventType.TURN_WAITING, {"reason": reason, "position": position})

    async def delta(self, delta: Delta) -> None:
        """Only the bus hears it. `after` is the row that a reader must have seen before it."""
        await self.settled()
        if delta.starts and self._unfinished:
            self._block += 1  # what was begun is given up; readers drop it when they see the next number
        if delta.starts or self._unfinished is None:
            self._unfinished = _Unfinished(delta.kind)
        text = storable(delta.text)
        offset = self._unfinished.add(text)
        payload = {
            "type": str(delta.kind),
            "sessionId": str(self._session_id),
            "turnId": str(self._hold.turn_id),
            "seq": None,
            "ts": timezone.now().isoformat().replace("+00:00", "Z"),
            "block": self._block,
            "offset": offset,
            "delta": text,
            "after": self._last_seq,
        }
        await bus.current().publish(bus.session_topic(self._session_id), payload)

    async def said(self, said: Said) -> None:
        if self._unfinished is not None and self._unfinished.text != storable(said.content):
            self._block += 1  # the model was asked again and answered in one piece: the beginning is given up
        self._unfinished = None
        if said.kind is BlockKind.TEXT:
            self.response = said.content
        await self.row(EventType(said.kind.value), {"block": self._block, "content": said.content})
        self._block += 1

    async def used(self, used: Used) -> None:
        self._used[used.id] = (used, monotonic())
        tool = {"id": used.id, "name": used.name, "input": dict(used.input)}
        await self.row(EventType.TOOL_USE, {"tool": tool, "parentToolUseId": used.parent_id})
        self._told[used.id].set()

    async def answered(self, answer: Answered) -> None:
        used, since = self._used.pop(answer.tool_use_id, (None, monotonic()))
        name = used.name if used else ""
        self.tool_calls.append({"id": answer.tool_use_id, "name": name, "isError": answer.is_error})
        await self.row(
            EventType.TOOL_RESULT,
            {
                "toolUseId": answer.tool_use_id,
                "content": answer.content[:LONGEST_RESULT],
                "isError": answer.is_error,
                "durationMs": round((monotonic() - since) * 1000),
                "truncated": len(answer.content) > LONGEST_RESULT,
            },
        )

    async def denied(self, call: ToolCall, decision: Decision) -> None:
        denial = {"toolName": call.name, "toolUseId": call.id, "reason": decision.reason}
        self.denials.append(denial)
        await self.row(EventType.PERMISSION_DENIED, {**denial, "rule": decision.rule})

    async def warned(self, warned: Warned) -> None:
        payload = {"code": warned.code, "title": warned.title, "message": warned.message, "details": []}
        await self.row(EventType.WARNING, payload)

    def cut_off(self) -> list[Row]:
        """The text that another worker goes on from, as a row for whoever puts the turn back."""
        unfinished = self._unfinished
        return [row_of(unfinished.kind.value, self._block, unfinished.text)] if unfinished else []

    async def keep_unfinished(self) -> None:
        """Makes a row of the text that was cut off."""
        if self._unfinished is not None:
            await self.said(Said(self._unfinished.kind, self._unfinished.text))


def _next_block(turn_id: UUID) -> int:
    blocks = SessionEvent.objects.filter(turn=turn_id, type__in=(EventType.TEXT, EventType.THINKING))
    newest = blocks.order_by("-seq").first()
    return newest.payload["block"] + 1 if newest else 0


def _init(ready: Ready) -> dict[str, Any]:
    return {
        "tools": list(ready.tools),
        "mcpServers": [dict(server) for server in ready.mcp_servers],
        "permissionMode": ready.permission_mode,
    }

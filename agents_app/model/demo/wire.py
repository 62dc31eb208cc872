"""The Messages API, as far as the CLI uses it: a reply as one JSON answer or as server-sent events."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

MODEL = "demo"


class Happening(Protocol):
    """Something in a stream that the model did not say: a pause, a gate, rubbish, the end of the line.

    It stands between two blocks or between two parts of a text. `happen` may wait, returns bytes that
    are sent as they are, or raises `CutOff`.
    """

    async def happen(self) -> bytes: ...


class CutOff(Exception):
    """The connection is dropped here, with no end to the stream."""


@dataclass(frozen=True)
class Stall:
    seconds: float

    async def happen(self) -> bytes:
        await asyncio.sleep(self.seconds)
        return b""


@dataclass(frozen=True)
class Raw:
    """Bytes as they are: half an event, or none at all."""

    data: bytes

    async def happen(self) -> bytes:
        return self.data


@dataclass(frozen=True)
class Cut:
    async def happen(self) -> NoReturn:
        raise CutOff


GARBAGE = Raw(b"event: content_block_delta\ndata: {not json\n\n")


@dataclass(frozen=True, init=False)
class _Words:
    """Words in one block, with what happens between them: `Text("Half a ", gate, "sentence.")`."""

    parts: tuple[str | Happening, ...]

    def __init__(self, *parts: str | Happening) -> None:
        object.__setattr__(self, "parts", parts)

    @property
    def text(self) -> str:
        return "".join(part for part in self.parts if isinstance(part, str))


class Text(_Words):
    pass


class Thinking(_Words):
    pass


@dataclass(frozen=True)
class ToolUse:
    name: str
    input: Mapping[str, Any]
    id: str = field(default_factory=lambda: f"toolu_{uuid.uuid4().hex[:24]}")


Block = Text | Thinking | ToolUse


@dataclass(frozen=True)
class Reply:
    """What the model says next, `piece` characters a delta. `pause` is the time before each, in seconds."""

    blocks: tuple[Block | Happening, ...]
    pause: float = 0.0
    piece: int = 12

    @property
    def content(self) -> list[dict[str, Any]]:
        return [_finished(block) for block in self.blocks if isinstance(block, Block)]

    @property
    def stop_reason(self) -> str:
        return "tool_use" if any(isinstance(block, ToolUse) for block in self.blocks) else "end_turn"


@dataclass(frozen=True)
class Failure:
    """An answer that is an error of the API."""

    status: int = 500
    type: str = "api_error"
    message: str = "Scripted failure"
    headers: Mapping[str, str] = field(default_factory=dict)


OVERLOADED = Failure(529, "overloaded_error", "Overloaded")
WRONG_KEY = Failure(401, "authentication_error", "invalid x-api-key")


def rate_limited(seconds: int = 1) -> Failure:
    """Too many requests; the CLI comes back after about so many seconds."""
    return Failure(429, "rate_limit_error", "Rate limited", {"retry-after": str(seconds)})


def say(*parts: str | Happening, pause: float = 0.0) -> Reply:
    return Reply((Text(*parts),), pause=pause)


def as_message(reply: Reply, usage: Mapping[str, int]) -> dict[str, Any]:
    return {
        "id": f"msg_{uuid.uuid4().hex[:24]}",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": reply.content,
        "stop_reason": reply.stop_reason,
        "stop_sequence": None,
        "usage": dict(usage),
    }


async def as_events(reply: Reply, usage: Mapping[str, int]) -> AsyncIterator[bytes]:
    for step in _steps(reply, usage):
        if isinstance(step, bytes):
            yield step
        elif sent := await step.happen():
            yield sent


def event(kind: str, **payload: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **payload})}\n\n".encode()


def error_body(failure: Failure) -> dict[str, Any]:
    return {"type": "error", "error": {"type": failure.type, "message": failure.message}}


def _steps(reply: Reply, usage: Mapping[str, int]) -> Iterator[bytes | Happening]:
    yield event("message_start", message=as_message(reply, usage) | {"content": [], "stop_reason": None})
    index = 0
    for item in reply.blocks:
        if isinstance(item, Block):
            yield from _block_steps(index, item, reply)
            index += 1
        else:
            yield item
    ended = {"stop_reason": reply.stop_reason, "stop_sequence": None}
    yield event("message_delta", delta=ended, usage=dict(usage))
    yield event("message_stop")


def _block_steps(index: int, block: Block, reply: Reply) -> Iterator[bytes | Happening]:
    yield event("content_block_start", index=index, content_block=_opened(block))
    for delta in _deltas(block, reply.piece):
        if isinstance(delta, dict):
            if reply.pause:
                yield Stall(reply.pause)
            yield event("content_block_delta", index=index, delta=delta)
        else:
            yield delta
    yield event("content_block_stop", index=index)


def _finished(block: Block) -> dict[str, Any]:
    match block:
        case Text():
            return {"type": "text", "text": block.text}
        case Thinking():
            return {"type": "thinking", "thinking": block.text, "signature": MODEL}
        case ToolUse(name, given, id):
            return {"type": "tool_use", "id": id, "name": name, "input": dict(given)}


def _opened(block: Block) -> dict[str, Any]:
    match block:
        case Text():
            return {"type": "text", "text": ""}
        case Thinking():
            return {"type": "thinking", "thinking": "", "signature": ""}
        case ToolUse(name, _, id):
            return {"type": "tool_use", "id": id, "name": name, "input": {}}


def _deltas(block: Block, piece: int) -> Iterator[dict[str, Any] | Happening]:
    match block:
        case Text(parts):
            for part in _pieces(parts, piece):
                yield {"type": "text_delta", "text": part} if isinstance(part, str) else part
        case Thinking(parts):
            for part in _pieces(parts, piece):
                yield {"type": "thinking_delta", "thinking": part} if isinstance(part, str) else part
            yield {"type": "signature_delta", "signature": MODEL}
        case ToolUse(_, given, _):
            for part in _pieces([json.dumps(dict(given))], 200):
                yield {"type": "input_json_delta", "partial_json": part}


def _pieces(parts: Iterable[str | Happening], size: int) -> Iterator[str | Happening]:
    """The parts in order, each text cut into pieces of one size."""
    for part in parts:
        if isinstance(part, str):
            yield from (part[start : start + size] for start in range(0, len(part), size))
        else:
            yield part

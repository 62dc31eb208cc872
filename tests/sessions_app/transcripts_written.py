"""Rows of a transcript as the CLI 2.1.326 writes them, with the keys that matter."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from sessions_app.history import transcripts

Row = dict[str, Any]

HOUSEKEEPING: list[Row] = [
    {"type": "queue-operation", "operation": "enqueue", "content": "a secret"},
    {"type": "attachment", "attachment": {"type": "environment"}, "uuid": str(uuid4())},
    {"type": "api-request-blob", "message": {"role": "user", "content": [{"type": "text", "text": "no"}]}},
    {"type": "atis-latch", "atis": ""},
    {"type": "last-prompt", "lastPrompt": "no"},
    {"type": "cost-state", "totalCostUSD": 0.04},
]


def prompt(uuid: UUID | str, text: str, **more: Any) -> Row:
    return _row("user", {"role": "user", "content": text}, uuid=str(uuid), promptSource="sdk", **more)


def said(*blocks: Row, of: str | None = None, model: str = "demo", **more: Any) -> Row:
    message = {"role": "assistant", "model": model, "content": list(blocks)}
    if of is not None:
        message["id"] = of
    return _row("assistant", message, **more)


def answered(tool_use_id: str, content: str, **more: Any) -> Row:
    block = {"type": "tool_result", "tool_use_id": tool_use_id, "content": content}
    return _row("user", {"role": "user", "content": [block]}, **more)


def text(said: str) -> Row:
    return {"type": "text", "text": said}


def uses(tool_use_id: str) -> Row:
    return {"type": "tool_use", "id": tool_use_id, "name": "Read", "input": {}}


def _row(kind: str, message: Row, **more: Any) -> Row:
    row = {"isSidechain": False, "type": kind, "message": message, "uuid": str(uuid4())}
    return row | {"timestamp": "2026-11-18T10:33:27.863Z"} | more


def as_jsonl(*rows: Row) -> bytes:
    """As `JSON.stringify` writes: without spaces, and with U+2028 as it is."""
    lines = [json.dumps(row, separators=(",", ":"), ensure_ascii=False) for row in rows]
    return "".join(f"{line}\n" for line in lines).encode()


def put(session_id: UUID, content: bytes, project: str = "-v") -> Path:
    folder = transcripts.config_folder(session_id) / "projects" / project
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{session_id}.jsonl"
    path.write_bytes(content)
    return path

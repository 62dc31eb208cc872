"""A frame as server-sent events write it."""

import json

from sessions_app.stream import Frame

HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",  # a proxy that collects the stream would take its point away
}


def as_sse(frame: Frame) -> bytes:
    """What is not a row has no id, so a reader that comes back names the last row it saw."""
    if frame is None:
        return b": keep-alive\n\n"
    number = f"id: {frame['seq']}\n" if frame["seq"] is not None else ""
    return f"{number}event: {frame['type']}\ndata: {json.dumps(frame, separators=(',', ':'))}\n\n".encode()

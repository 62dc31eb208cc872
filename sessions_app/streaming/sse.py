"""A frame as server-sent events write it."""

from collections.abc import Iterator, Sequence

from django.core.serializers.json import DjangoJSONEncoder

from sessions_app.streaming.stream import Frame

HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",  # a proxy that collects the stream would take its point away
}

# A server writes the headers with the first piece of the body. Where nothing happens that would be a
# keep-alive, 15 s later: until then a reader cannot tell a stream that waits from a server that hangs.
OPENING = b": connected\n\n"

LARGEST_BODY = 64 * 1024  # bytes, and a frame: of many frames, so much is sent as one

# Of times and ids it makes what the API makes of them. (`json.dumps` would make an encoder for each frame.)
as_json = DjangoJSONEncoder(separators=(",", ":")).encode


def as_sse(frame: Frame) -> bytes:
    """What is not a row has no id, so a reader that comes back names the last row it saw."""
    if frame is None:
        return b": keep-alive\n\n"
    number = f"id: {frame['seq']}\n" if frame["seq"] is not None else ""
    return f"{number}event: {frame['type']}\ndata: {as_json(frame)}\n\n".encode()


def bodies(frames: Sequence[Frame]) -> Iterator[bytes]:
    """Many frames in few pieces: each that is sent costs a server about as much as the frame itself."""
    piece = bytearray()
    for frame in frames:
        piece += as_sse(frame)
        if len(piece) >= LARGEST_BODY:
            yield bytes(piece)
            piece.clear()
    if piece:
        yield bytes(piece)

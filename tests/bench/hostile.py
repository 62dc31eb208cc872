"""Those who mean it badly, as a process of their own: what they cost us is measured, and not what they cost
themselves. `python -m tests.bench.hostile form PORT KEY`."""

import asyncio
import sys
from contextlib import suppress

PART = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\ny\r\n'
FORM = PART * (29_000_000 // len(PART)) + b"--x--"
MIB = 1 << 20
DRIPPING, DRIPS_FOR = 120, 10.0  # connections, seconds
DRIP = 0.25


async def form(port: int, key: str) -> None:
    """Announced and in chunks, by nobody, by somebody, and by a browser's cookies that are made up."""
    kind = "Content-Type: multipart/form-data; boundary=x"
    made_up = f"Cookie: sessionid={'s' * 32}; csrftoken={'t' * 32}"
    for who in ([], [f"X-API-Key: {key}"], ["X-API-Key: para_x"], [made_up]):
        for path in ("/api/chat", "/signin"):
            await _push(port, path, [kind, f"Content-Length: {len(FORM)}", *who], [FORM])
            await _push(port, path, [kind, "Transfer-Encoding: chunked", *who], [_chunk(FORM)])


async def chunks(port: int, key: str) -> None:
    """600 MB, by somebody who may send 30, and by somebody who may send one."""
    for who in (key, "para_x"):
        kind = ["Content-Type: application/json", "Transfer-Encoding: chunked", f"X-API-Key: {who}"]
        await _push(port, "/api/chat", kind, [_chunk(b"x" * MIB)] * 600)


async def drips(port: int, key: str) -> None:
    """Half of them never end their headers, the other half their body."""
    body = b"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    starts = [b"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nX-A: ", body] * (DRIPPING // 2)
    await asyncio.gather(*(_drip(port, start, b"x" if start != body else _chunk(b"x")) for start in starts))


async def _push(port: int, path: str, headers: list[str], body: list[bytes]) -> None:
    """As fast as it goes, whatever is answered, until the connection is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", *headers, "", ""]
    with suppress(OSError):
        writer.write("\r\n".join(lines).encode())
        for piece in body:
            writer.write(piece)
            await writer.drain()
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 4"), answer
    writer.close()


async def _drip(port: int, start: bytes, drop: bytes) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    with suppress(OSError):
        writer.write(start)
        for _ in range(int(DRIPS_FOR / DRIP)):
            await asyncio.sleep(DRIP)
            writer.write(drop)
            await writer.drain()
    writer.close()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n" % len(data) + data + b"\r\n"


if __name__ == "__main__":
    _, how, port, key = sys.argv
    asyncio.run({"form": form, "chunks": chunks, "drips": drips}[how](int(port), key))

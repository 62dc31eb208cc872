"""What a process writes, read without ever making it wait."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from typing import IO

CHUNK = 16 * 1024
LONGEST_LINE = 16 * 1024  # a longer one is told in pieces, as one process must not fill our memory


def of(popen: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    """Its standard output and its standard error, the same pipe twice where they are one."""
    assert popen.stdout
    return popen.stdout, popen.stderr or popen.stdout


async def lines(pipe: IO[bytes]) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in _chunks(pipe):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line
        if len(rest) > LONGEST_LINE:
            yield rest
            rest = b""
    if rest:
        yield rest


async def everything(pipe: IO[bytes]) -> bytes:
    return b"".join([chunk async for chunk in _chunks(pipe)])


async def _chunks(pipe: IO[bytes]) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    try:
        while chunk := await reader.read(CHUNK):
            yield chunk
    finally:
        transport.close()

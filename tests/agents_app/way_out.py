"""The way out of a process whose turn runs, and a web to reach by it: nothing leaves the loopback."""

import asyncio
import socket as sockets
import tempfile
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from agents_app.egress.door import Egress, EgressPass
from permissions_app.audit import Entry
from permissions_app.rules.decision import Decision, allow
from tests.agents_app.handing_over import PATIENCE, SESSION, hand_over, listening

ALLOWED = allow("public_host", "Pages of the public web may be fetched.")
HOME = "127.0.0.77"  # where the web is, in these tests


class Names:
    """A name server that answers as it is told to, another way each time if there is more than one."""

    def __init__(self) -> None:
        self.known: dict[str, list[list[str]]] = {"public.example": [[HOME]]}
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host not in self.known:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, flags=sockets.AI_NUMERICHOST)
            return [str(each[4][0]) for each in found]
        answers = self.known[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]


class SlowNames:
    """What is called in a thread to look a name up: of some it hangs, as where a name server says nothing."""

    def __init__(self) -> None:
        self.hang = 0
        self.may_end = threading.Event()

    def __call__(self, host: str, port: int, *given: Any, **more: Any) -> list[Any]:
        if host.startswith("slow"):
            self.hang += 1
            self.may_end.wait(2 * PATIENCE)
            raise OSError("This name is not known.")
        return [(sockets.AF_INET, sockets.SOCK_STREAM, 6, "", (HOME, port))]

    async def hangs(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.hang < count:
                await asyncio.sleep(0.01)


class Host:
    """A server of the web that keeps what it was sent and answers with what it was told to."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
        self.holds = asyncio.Event()
        self.holds.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heard.append(await reader.read(65_536))
        writer.write(self.answer)
        await writer.drain()
        await self.holds.wait()
        writer.close()


class Hosts:
    """Says of every host what it is told to say, once it may."""

    def __init__(self, says: Decision = ALLOWED) -> None:
        self.says = says
        self.asked: list[str] = []
        self.may_say = asyncio.Event()
        self.may_say.set()
        self.heard = 0
        self.loses: Exception | None = None

    async def __call__(self, host: str) -> Decision:
        self.asked.append(host)
        await self.may_say.wait()
        return self.says

    async def hears(self) -> None:
        if self.loses:
            raise self.loses
        self.heard += 1

    def leave(self) -> None:
        """Nobody waits here."""


class Out:
    """A process of a session that has a way out, and its turn."""

    def __init__(self, egress: Egress, known: EgressPass, port: int, inside: tuple[str, int]) -> None:
        self.egress, self.known, self.port, self.inside = egress, known, port, inside

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(*self.inside)

    async def ask(self, text: str) -> bytes:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await self.open()
            writer.write(text.replace("{port}", str(self.port)).encode("latin-1"))
            try:
                return await reader.read()
            except ConnectionError:
                return b""
            finally:
                writer.close()

    async def connect(self, host: str, port: int | None = None) -> bytes:
        asked = f"CONNECT {host}:{port or self.port} HTTP/1.1\r\nHost: x\r\n\r\n"
        return await self.ask(f"{asked}GET / HTTP/1.1\r\n\r\n")


@asynccontextmanager
async def way_out(names: Names, host: Host, told: list[Entry], **more: Any) -> AsyncIterator[Out]:
    server = await asyncio.start_server(host.serve, HOME, 0)
    port = server.sockets[0].getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:  # short: the path of a unix socket ends at 107 bytes
        given = {"ports": frozenset({port}), "also": frozenset({HOME}), "resolve": names.resolve, **more}
        egress = Egress(Path(folder) / "out", heard=told.append, **given)
        try:
            yield await let_out(egress, port)
        finally:
            host.holds.set()
            egress.close()
            server.close()


async def let_out(egress: Egress, port: int) -> Out:
    """One more process."""
    known = egress.issue(SESSION)
    known.enter(uuid4(), Hosts())
    with listening() as listener:
        inside = listener.getsockname()
        assert await hand_over(known, listener.fileno()) == b"ok\n"
    return Out(egress, known, port, inside)

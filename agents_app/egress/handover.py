"""Where one process hands over the listening socket of its wall: a unix socket of its own, until it has.

What comes by it is from behind a wall and may be anything. So one greeting is heard at a time, one
descriptor at most is taken with it, and whatever is not wanted is closed. A process that wastes this wastes
its own start.
"""

import asyncio
import logging
import os
import secrets
import socket as sockets
from collections.abc import Awaitable, Callable
from pathlib import Path

from agents_app.egress.listening import listener_at

logger = logging.getLogger(__name__)

TAKES_BREATH = 1.0  # seconds, when the machine has no descriptor left

Take = Callable[[sockets.socket], Awaitable[None]]


class Handover:
    """Calls `take` once, with a socket that listens for TCP and is from then on its own."""

    def __init__(self, path: Path, token: str, take: Take, *, patience: float) -> None:
        self.path = path
        self._greeting = f"{token}\n".encode()
        self._take, self._patience = take, patience
        self._has_complained = False
        self._listener = listener_at(path)
        self._listener.listen(8)
        self._listener.setblocking(False)
        self._hearing = asyncio.create_task(self._hear())

    def close(self) -> None:
        self._hearing.cancel()
        self._shut()

    def _shut(self) -> None:
        if self._listener.fileno() >= 0:  # the path may be another's by now
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()
            self.path.unlink(missing_ok=True)

    async def _hear(self) -> None:
        loop = asyncio.get_running_loop()
        while self._listener.fileno() >= 0:
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError as error:
                self._complain(error)
                await asyncio.sleep(TAKES_BREATH)
                continue
            with connection:
                try:
                    await self._greet(connection)
                except (TimeoutError, OSError) as error:
                    self._complain(error)

    async def _greet(self, connection: sockets.socket) -> None:
        async with asyncio.timeout(self._patience):
            await _readable(connection)
        said, handles, _, _ = sockets.recv_fds(connection, len(self._greeting), 1)
        listener = _listener(handles)
        try:
            if not secrets.compare_digest(said, self._greeting):
                raise PermissionError("it does not say the token of its process")
            await self._take(listener)
        except BaseException:
            listener.close()
            raise
        self._shut()
        connection.send(b"ok\n")

    def _complain(self, error: Exception) -> None:
        """Once: an agent could fill the disk with its tries."""
        if not self._has_complained:
            self._has_complained = True
            logger.warning("A process was not let through the egress door: %s", error or type(error).__name__)


def _listener(handles: list[int]) -> sockets.socket:
    """Of what was sent, or it is closed."""
    if not handles:
        raise ConnectionError("it sends no socket")
    try:
        listener = sockets.socket(fileno=handles[0])
    except BaseException:
        os.close(handles[0])
        raise
    try:
        listener.setblocking(False)
        listener.set_inheritable(False)
        if (
            listener.family == sockets.AF_INET
            and listener.type == sockets.SOCK_STREAM
            and listener.getsockopt(sockets.SOL_SOCKET, sockets.SO_ACCEPTCONN)
        ):
            return listener
        raise ConnectionError("what it sends is no listening socket")
    except BaseException:
        listener.close()
        raise


async def _readable(connection: sockets.socket) -> None:
    loop = asyncio.get_running_loop()
    there = asyncio.Event()
    loop.add_reader(connection, there.set)
    try:
        await there.wait()
    finally:
        loop.remove_reader(connection)

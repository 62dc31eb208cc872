"""Handing the listening socket of a wall over, as `launcher/inside.py` does."""

import array
import asyncio
import socket as sockets
from contextlib import suppress
from uuid import UUID

from agents_app.egress.door import EgressPass

PATIENCE = 10
SESSION = UUID(int=5)


def listening() -> sockets.socket:
    listener = sockets.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    return listener


async def hand_over(known: EgressPass, *handles: int, token: str | None = None) -> bytes:
    """Says what the door answered."""

    def send() -> bytes:
        with sockets.socket(sockets.AF_UNIX) as door:
            door.settimeout(PATIENCE)
            door.connect(str(known.handover.path))
            rights = [(sockets.SOL_SOCKET, sockets.SCM_RIGHTS, array.array("i", handles))] if handles else []
            door.sendmsg([f"{known.token if token is None else token}\n".encode()], rights)
            with suppress(ConnectionResetError):
                return door.recv(3)
            return b""

    return await asyncio.to_thread(send)

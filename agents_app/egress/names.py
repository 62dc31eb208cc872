"""Names of the web are looked up in threads of their own, a few at once.

A lookup cannot be stopped: where a name server says nothing its thread stands until the system gives up, some
twenty seconds later. In the threads of the event loop 32 of them held up all starts and ends of the worker.
"""

import asyncio
import socket as sockets
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from threading import Thread
from typing import Any

MOST_AT_ONCE = 32  # of the worker: each is a thread
MOST_OF_ONE = 4  # of one process

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


async def resolved(host: str, port: int) -> Sequence[str]:
    found = await asyncio.wrap_future(_found(host, port))
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def _found(host: str, port: int) -> Future[list[Any]]:
    """In a thread that the interpreter does not wait for as it ends: for those of an executor it does."""
    future = Future[list[Any]]()
    future.set_running_or_notify_cancel()  # from here on nobody can take it back from the thread

    def look() -> None:
        try:
            future.set_result(sockets.getaddrinfo(host, port, type=sockets.SOCK_STREAM))
        except Exception as error:  # noqa: BLE001 - whoever waits for it is told, whatever it was
            future.set_exception(error)

    Thread(target=look, name="lookup", daemon=True).start()
    return future


class Lookups:
    """Each process has a few of its own, so that one whose names are slow takes them from no other."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._of_all = asyncio.Semaphore(MOST_AT_ONCE)

    async def __call__(self, host: str, port: int, own: asyncio.Semaphore) -> Sequence[str]:
        """Waits its turn. Of who gives up later than that a thread is left, which goes on to count."""
        await own.acquire()
        try:
            await self._of_all.acquire()
        except asyncio.CancelledError:
            own.release()
            raise
        looking = asyncio.ensure_future(self._resolve(host, port))
        looking.add_done_callback(lambda _: self._end(own))
        return await asyncio.shield(looking)

    def _end(self, own: asyncio.Semaphore) -> None:
        self._of_all.release()
        own.release()

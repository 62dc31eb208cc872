"""Async at the edges, sync in services: the one way from a coroutine into a service.

The pools are bounded, so a burst of readers cannot open more database connections than this; calls beyond it
wait their turn. A connection that the server has closed meanwhile is replaced before it is used.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from django.db import close_old_connections

P = ParamSpec("P")
R = TypeVar("R")

THREADS = 8

_pool = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="service")
# Apart from the services, because who looks may look at files: a disk that hangs shall hang nothing else.
_looks = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="look")
POOLS = (_pool, _looks)


def connected(service: Callable[P, R]) -> Callable[P, R]:
    """The same, with a connection to the database that still stands. For what runs in a thread of a pool."""

    def serve(*args: P.args, **kwargs: P.kwargs) -> R:
        close_old_connections()
        return service(*args, **kwargs)

    return serve


def in_thread(service: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """`await in_thread(service)(…)` runs the service in the pool and gives what it returns.

    A cancellation waits for a service that was called, so that it does not write behind the caller's back,
    and is then delivered. (`sync_to_async` loses it: a worker that was told to stop went on for a minute.)
    """
    serve = connected(service)

    @wraps(service)
    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        run = partial(copy_context().run, serve, *args, **kwargs)
        future = asyncio.get_running_loop().run_in_executor(_pool, run)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            while not future.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({future})
            future.exception()  # seen; the cancellation is what the caller hears of
            raise

    return call


def looked_up(look: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """The same for what only reads files, and perhaps a row by what is `connected`. A cancellation does not
    wait for it: nothing comes of it afterwards."""

    @wraps(look)
    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.get_running_loop().run_in_executor(_looks, partial(look, *args, **kwargs))

    return call

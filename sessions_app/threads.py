"""Async at the edges, sync in services: the one way from a coroutine into a service.

The pool is bounded, so a burst of readers cannot open more database connections than this; calls beyond it
wait their turn. A connection that the server has closed meanwhile is replaced before it is used.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from django.db import close_old_connections

P = ParamSpec("P")
R = TypeVar("R")

THREADS = 8

_pool = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="service")


def in_thread(service: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """`await in_thread(service)(…)` runs the service in the pool and gives what it returns.

    A cancellation waits for a service that was called, so that it does not write behind the caller's back,
    and is then delivered. (`sync_to_async` loses it: a worker that was told to stop went on for a minute.)
    """

    @wraps(service)
    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        def serve() -> R:
            close_old_connections()
            return service(*args, **kwargs)

        future = asyncio.get_running_loop().run_in_executor(_pool, copy_context().run, serve)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            while not future.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({future})
            future.exception()  # seen; the cancellation is what the caller hears of
            raise

    return call

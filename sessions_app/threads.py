"""Async at the edges, sync in services: the one way from a coroutine into a service.

The pool is bounded, so a burst of readers cannot open more database connections than this; calls beyond it
wait their turn. A connection that the server has closed meanwhile is replaced before it is used.
"""

from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import close_old_connections

P = ParamSpec("P")
R = TypeVar("R")

THREADS = 8

_pool = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="service")


def in_thread(service: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """`await in_thread(service)(…)` runs the service in the pool and gives what it returns."""

    @wraps(service)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        close_old_connections()
        return service(*args, **kwargs)

    return sync_to_async(call, thread_sensitive=False, executor=_pool)

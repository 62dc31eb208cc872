from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from django.db import connections


def at_once(act: Callable[[int], Any], threads: int = 4) -> list[Any]:
    """The same thing by several threads, each with a connection of its own, none before all are there."""
    barrier = Barrier(threads)

    def run(number: int) -> Any:
        try:
            barrier.wait()
            return act(number)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, range(threads)))

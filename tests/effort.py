"""How much work something is, on a machine that may be slower than it was a moment ago."""

import gc
from collections.abc import Callable
from time import thread_time

COUNTS_TO = 200_000


def effort(work: Callable[[], object]) -> float:
    """Its time of computing, in what counting takes just before and after. Of its own thread: what others do
    meanwhile is not its doing, nor what the tests before have left to be collected."""
    gc.disable()
    try:
        before = _time_of(_count)
        took = _time_of(work)
        return took / max(before, _time_of(_count))
    finally:
        gc.enable()


def _time_of(work: Callable[[], object]) -> float:
    began = thread_time()
    work()
    return thread_time() - began


def _count() -> None:
    for _ in range(COUNTS_TO):
        pass

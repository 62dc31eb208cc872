"""What must not be left half-done when a task is cancelled."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

CANCELLED_AGAIN_AFTER = 1.0  # seconds


async def to_its_end(coroutine: Coroutine[Any, Any, T]) -> T:
    """Waits for it however often the caller is cancelled meanwhile. Its result, or its exception, is the
    caller's; the cancellation arrives at the caller's next await."""
    task, caller = asyncio.create_task(coroutine), asyncio.current_task()
    assert caller is not None
    was_cancelled = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            was_cancelled = True
    if was_cancelled:
        caller.uncancel()  # counted once: a time-out around the caller still knows its own
        caller.cancel()
    return task.result()


async def end(task: asyncio.Task[Any]) -> None:
    """Cancels a task until it has ended. Once is not enough: libraries lose a cancellation that comes in the
    moment in which they get what they waited for."""
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=CANCELLED_AGAIN_AFTER)

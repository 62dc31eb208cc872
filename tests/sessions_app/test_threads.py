"""A service that was called from a coroutine goes to its end, and a cancellation is never lost."""

import asyncio
import threading

import pytest

from sessions_app.threads import THREADS, in_thread, looked_up

# A thread of the pool looks at the connection that an earlier test has left to it.
pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_cancellation_is_delivered_after_the_service_has_ended() -> None:
    began, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def service() -> str:
        began.set()
        may_end.wait(10)
        ended.set()
        return "written"

    task = asyncio.create_task(in_thread(service)())
    await asyncio.to_thread(began.wait, 10)
    task.cancel()
    asyncio.get_running_loop().call_soon(may_end.set)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_what_a_service_raises_is_the_callers() -> None:
    def service() -> None:
        raise LookupError("not here")

    with pytest.raises(LookupError):
        await in_thread(service)()


async def test_a_second_cancellation_changes_nothing() -> None:
    began, may_end = threading.Event(), threading.Event()

    def service() -> None:
        began.set()
        may_end.wait(10)

    task = asyncio.create_task(in_thread(service)())
    await asyncio.to_thread(began.wait, 10)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    asyncio.get_running_loop().call_soon(may_end.set)
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_looks_that_hang_hold_up_no_service_and_nobody_who_gives_up() -> None:
    may_end = threading.Event()
    looks = [asyncio.create_task(looked_up(may_end.wait)(10)) for _ in range(THREADS)]
    assert await in_thread(lambda: "served")() == "served"
    for look in looks:
        look.cancel()
    await asyncio.wait(looks)
    assert not may_end.is_set()
    may_end.set()

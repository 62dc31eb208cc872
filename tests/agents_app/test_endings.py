"""What is waited for to its end, however often who waits is cancelled."""

import asyncio

import pytest

from agents_app.workers import endings
from agents_app.workers.endings import end, to_its_end


class Work:
    def __init__(self) -> None:
        self.began, self.may_end = asyncio.Event(), asyncio.Event()
        self.has_ended = False

    async def __call__(self) -> str:
        self.began.set()
        await self.may_end.wait()
        self.has_ended = True
        return "done"


@pytest.fixture
async def work() -> Work:
    return Work()


async def test_its_result_and_its_exception_are_the_callers(work: Work) -> None:
    async def fails() -> None:
        raise ZeroDivisionError

    work.may_end.set()
    assert await to_its_end(work()) == "done"
    with pytest.raises(ZeroDivisionError):
        await to_its_end(fails())


@pytest.mark.parametrize("times", [1, 3])
async def test_a_cancelled_caller_waits_and_is_cancelled_afterwards(work: Work, times: int) -> None:
    results: list[str] = []

    async def call() -> None:
        results.append(await to_its_end(work()))
        await asyncio.sleep(0)
        results.append("not reached")

    caller = asyncio.create_task(call())
    await work.began.wait()
    for _ in range(times):
        caller.cancel()
        await asyncio.sleep(0)
    assert not caller.done()
    work.may_end.set()
    await asyncio.wait({caller})
    assert (results, caller.cancelled()) == (["done"], True)


async def test_a_caller_that_ends_with_it_is_cancelled_all_the_same(work: Work) -> None:
    caller = asyncio.create_task(to_its_end(work()))
    await work.began.wait()
    caller.cancel()
    await asyncio.sleep(0)
    work.may_end.set()
    await asyncio.wait({caller})
    assert (work.has_ended, caller.cancelled()) == (True, True)


async def test_a_time_out_around_it_is_still_a_time_out(work: Work) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0) as limit:
            asyncio.get_running_loop().call_later(0.01, work.may_end.set)
            await to_its_end(work())
            await asyncio.sleep(0)
    assert limit.expired()
    assert work.has_ended


async def test_a_task_that_loses_a_cancellation_is_cancelled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endings, "CANCELLED_AGAIN_AFTER", 0.01)
    lost: list[int] = []

    async def loses_two() -> None:
        while len(lost) < 2:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                lost.append(1)
        await asyncio.Event().wait()

    task = asyncio.create_task(loses_two())
    await asyncio.sleep(0)
    await end(task)
    assert task.cancelled() and len(lost) == 2

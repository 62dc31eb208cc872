"""Time and threads that are moved by hand, so that a test chooses what happens between any two steps."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import Context, ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from typing import Any, TypeVar, TypeVarTuple

import pytest
from django.utils import timezone

ROUNDS = 20

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

owner: ContextVar[object] = ContextVar("owner", default=None)


@dataclass(eq=False)
class Call:
    """A service that was called from a coroutine. It is served, and then whoever called it hears of it."""

    owner: object
    _answer: asyncio.Future[Any]
    _service: Callable[[], Any] = field(repr=False)
    _tell: Callable[[], None] | None = field(default=None, repr=False)

    def serve(self) -> None:
        """Once, however often."""
        if self._tell is not None:
            return
        try:
            self._tell = partial(self._answer.set_result, self._service())
        except Exception as error:  # noqa: BLE001 - whoever called it hears of it
            self._tell = partial(self._answer.set_exception, error)

    def answer(self) -> None:
        assert self._tell is not None
        if not self._answer.done():
            self._tell()


class LoopByHand(asyncio.SelectorEventLoop):
    """Its tasks run until each of them waits: for a service, for a time, for another. Services, which
    elsewhere run in threads, are served one by one, by whoever moves it and outside of its tasks; they are
    transactions, so nothing else can happen inside of one. Its clock stands still until it is moved."""

    def __init__(self) -> None:
        self._now = 0.0
        self._moves = False
        self.calls: list[Call] = []
        self._answers: list[asyncio.Future[Any]] = []
        super().__init__()

    def time(self) -> float:
        return self._now

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        self._moves = True
        return super().call_soon(callback, *args, context=context)

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        self._moves = True
        return super().call_soon_threadsafe(callback, *args, context=context)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        answer: asyncio.Future[T] = self.create_future()
        self._answers.append(answer)
        self.calls.append(Call(owner.get(), answer, lambda: func(*args)))
        return answer

    def settle(self) -> None:
        self._moves = True
        while self._moves:
            self._moves = False
            super().call_soon(self.stop)
            self.run_forever()

    def pass_time(self, seconds: float) -> None:
        self._now += seconds
        self.settle()

    def dispose(self) -> None:
        """Ends all that is left: nobody is served any more."""
        for _ in range(ROUNDS):
            for task in asyncio.all_tasks(self):
                task.cancel()
            for answer in self._answers:
                if not answer.done():
                    answer.set_exception(ConnectionError("Nobody is served any more."))
            self.pass_time(60)
        self.close()


class ClockByHand:
    """The time of day, for Django's `timezone.now`. No two looks at it are at the same time."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._now = datetime.now(UTC)
        clock = self

        class Moved(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> "Moved":
                return clock.tick()  # type: ignore[return-value]

        patch.setattr(timezone, "datetime", Moved)

    def tick(self) -> datetime:
        self.pass_time(0.000001)
        return self._now

    def pass_time(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)

"""What one process was refused, so told that it can fill no disk with it: a refusal costs an agent nothing.

The first of its kind in a second is told by itself, those that repeat it by their number when the second is
over. Of other kinds no more than a few are told in a second: what comes beyond waits for its answer.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

MOST_TOLD = 20  # kinds of one process in a second


@dataclass(frozen=True)
class Refusal:
    host: str
    port: int
    rule: str

    def __str__(self) -> str:
        return f"{self.host}:{self.port} ({self.rule})"


class Refusals:
    """`tell_again` is given how often each was repeated, `lasts` is how long a second is."""

    def __init__(self, tell_again: Callable[[Counter[Refusal]], None], *, lasts: float) -> None:
        self._tell_again, self._lasts = tell_again, lasts
        self._times = Counter[Refusal]()
        self._is_over = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    async def tell(self, refusal: Refusal, tell: Callable[[], None]) -> None:
        """Calls `tell`, or counts. Cancelled while it waits, it tells all the same: it was refused."""
        try:
            while refusal not in self._times and len(self._times) >= MOST_TOLD:
                await self._is_over.wait()
        except asyncio.CancelledError:
            tell()
            raise
        if not self._times:
            self._timer = asyncio.get_running_loop().call_later(self._lasts, self.end)
        self._times[refusal] += 1
        if self._times[refusal] == 1:
            tell()

    def end(self) -> None:
        """The second is over, or the turn that it is told of."""
        if self._timer is not None:
            self._timer.cancel()
        again = Counter({each: times - 1 for each, times in self._times.items() if times > 1})
        self._times.clear()
        self._is_over.set()
        self._is_over = asyncio.Event()
        if again:
            self._tell_again(again)

"""One subscription a process and topic, and from there to as many listeners as there are."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sessions_app.streaming.bus.base import Payload

KEPT_FOR_A_SLOW_LISTENER = 1_000


class QueueListener:
    """Keeps what one listener has not read yet, up to a bound. Beyond it all is dropped and the listener is
    told to read the rows: a reader that stalls costs a bounded amount and still misses nothing."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Payload | None] = asyncio.Queue()

    def hear(self, payload: Payload | None) -> None:
        if payload is None or self._queue.qsize() >= KEPT_FOR_A_SLOW_LISTENER:
            while not self._queue.empty():
                self._queue.get_nowait()
            payload = None
        self._queue.put_nowait(payload)

    async def next(self, timeout: float) -> Payload | None:
        try:
            async with asyncio.timeout(timeout):
                return await self._queue.get()
        except TimeoutError:
            return None


class Fanout:
    def __init__(self) -> None:
        self._listeners: defaultdict[str, set[QueueListener]] = defaultdict(set)

    @asynccontextmanager
    async def listen(self, topic: str) -> AsyncIterator[QueueListener]:
        listener = QueueListener()
        self._listeners[topic].add(listener)
        try:
            yield listener
        finally:
            self._listeners[topic].discard(listener)
            if not self._listeners[topic]:
                del self._listeners[topic]

    def __contains__(self, topic: str) -> bool:
        return topic in self._listeners

    def __bool__(self) -> bool:
        return bool(self._listeners)

    def hear(self, topic: str, payload: Payload | None) -> None:
        for listener in tuple(self._listeners.get(topic, ())):
            listener.hear(payload)

    def fell_behind(self) -> None:
        """Something may have been lost for everybody: each listener reads its rows again."""
        for topic in tuple(self._listeners):
            self.hear(topic, None)

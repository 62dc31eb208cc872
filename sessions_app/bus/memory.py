"""A bus inside one process: for tests, and for a process that needs nobody else."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sessions_app.bus import tails
from sessions_app.bus.base import Payload
from sessions_app.bus.fanout import Fanout, QueueListener


class MemoryBus:
    def __init__(self) -> None:
        self._fanouts: dict[asyncio.AbstractEventLoop, Fanout] = {}
        self._tails: dict[str, tuple[Payload, str]] = {}

    async def publish(self, topic: str, payload: Payload) -> None:
        self._keep_tail(topic, payload)
        for loop, fanout in tuple(self._fanouts.items()):
            if loop.is_closed():
                del self._fanouts[loop]
            else:
                loop.call_soon_threadsafe(fanout.hear, topic, payload)

    @asynccontextmanager
    async def subscribe(self, topic: str) -> AsyncIterator[QueueListener]:
        fanout = self._fanouts.setdefault(asyncio.get_running_loop(), Fanout())
        async with fanout.listen(topic) as listener:
            yield listener

    async def tail(self, topic: str) -> list[Payload]:
        kept = self._tails.get(topic)
        return [tails.joined(*kept)] if kept else []

    def _keep_tail(self, topic: str, payload: Payload) -> None:
        if tails.is_delta(payload):
            before = self._tails[topic][1] if payload["offset"] and topic in self._tails else ""
            self._tails[topic] = (tails.head(payload), before + payload["delta"])
        elif tails.ends(payload):
            self._tails.pop(topic, None)


bus = MemoryBus()

"""A bus inside one process: for tests, and for a process that needs nobody else."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sessions_app.streaming.bus import tails
from sessions_app.streaming.bus.base import Payload
from sessions_app.streaming.bus.fanout import Fanout, QueueListener


class MemoryBus:
    def __init__(self) -> None:
        self._fanouts: dict[asyncio.AbstractEventLoop, Fanout] = {}
        self._tails: dict[str, tuple[Payload, list[tails.Piece]]] = {}

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
        kept = self._tails.get(topic)
        if tails.is_delta(payload) and not payload["offset"]:
            self._tails[topic] = (payload, [])
        elif kept and tails.is_delta(payload):
            kept[1].append(tails.piece(payload))
        elif kept and (payload.get("type") == tails.DELETED or tails.ends(payload, kept[0])):
            del self._tails[topic]


bus = MemoryBus()

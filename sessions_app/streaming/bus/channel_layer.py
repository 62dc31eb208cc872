"""The bus over the pubsub layer of channels_redis, and Redis itself for the tails.

Each event loop of a process has one channel of the layer. It joins the group of a topic with its first
listener and leaves with its last, so that a thousand readers of one session are one subscription.
"""

import asyncio
import json
import logging
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any
from uuid import uuid4

from channels.layers import get_channel_layer
from django.conf import settings
from redis.asyncio import BlockingConnectionPool, Redis
from redis.exceptions import RedisError, WatchError

from sessions_app.streaming.bus import tails
from sessions_app.streaming.bus.base import Payload
from sessions_app.streaming.bus.fanout import Fanout, QueueListener

log = logging.getLogger(__name__)

AWAY = (RedisError, OSError)  # a time-out is an OSError
ANSWERS_WITHIN = 2.0  # seconds; a Redis that does not is away
BEATS_EVERY = 1.0
CONNECTIONS = 8  # of each event loop, for the tails
LEFT_ALONE_FOR = 1.0  # when it was away, so that a turn is not slowed down by each of its deltas


class Hub:
    """What one event loop has: its channel, its listeners, its connection for the tails."""

    def __init__(self) -> None:
        self.layer: Any = get_channel_layer()
        # One that blocks: hundreds of readers that join at once want more connections than a pool gives.
        pool = BlockingConnectionPool.from_url(
            settings.PARACHUTE_REDIS,
            max_connections=CONNECTIONS,
            timeout=ANSWERS_WITHIN,
            decode_responses=True,
        )
        self.redis: Redis = Redis(connection_pool=pool)
        self.fanout = Fanout()
        self._channel: str | None = None
        self._pump: asyncio.Task[None] | None = None
        self._beating: asyncio.Task[None] | None = None
        self._last_beat: tuple[str, int] | None = None
        self._proofs: dict[str, asyncio.Event] = {}
        self._lock = asyncio.Lock()
        self._away_until = 0.0
        self._was_away = False
        self._was_cut_off = False

    @property
    def is_away(self) -> bool:
        return monotonic() < self._away_until

    @asynccontextmanager
    async def reaching(self, instead: str) -> AsyncIterator[None]:
        """Around whatever needs Redis. That it is away is said once, and what happens instead."""
        task = asyncio.current_task()
        assert task is not None
        cancelled = task.cancelling()
        try:
            async with asyncio.timeout(ANSWERS_WITHIN):
                yield
            self._was_away = False
        except AWAY as error:
            self._away_until = monotonic() + LEFT_ALONE_FOR
            if not self._was_away:
                log.warning("The bus is away (%s: %s): %s.", type(error).__name__, error, instead)
            self._was_away = True
            # A time-out may be our own: a process that is very busy has lost nothing.
            self._was_cut_off |= not isinstance(error, TimeoutError)
        if task.cancelling() > cancelled:
            # The Redis client loses a cancellation now and then (one in five, when it was tried).
            raise asyncio.CancelledError

    async def join(self, topic: str) -> None:
        """Returns once a probe that came back proves the subscription, or Redis is known to be away: then
        the readers live on their keep-alive, and `join` is tried again."""
        if self._beating is None:
            self._beating = asyncio.create_task(self._beat())
        proof = self._proofs.setdefault(topic, asyncio.Event())
        if proof.is_set() or self.is_away:
            return
        async with self.reaching("readers fall back to reading rows"):
            async with self._lock:
                await self.layer.group_add(_group(topic), await self._open_channel())
            await self.layer.group_send(_group(topic), {"topic": topic, "probe": True})
            await proof.wait()

    async def leave(self, topic: str) -> None:
        if topic in self.fanout or self._proofs.pop(topic, None) is None or self._channel is None:
            return
        async with self.reaching("a topic that nobody follows is still heard"), self._lock:
            if topic not in self._proofs:
                await self.layer.group_discard(_group(topic), self._channel)

    async def _open_channel(self) -> str:
        if self._channel is None:
            self._channel = await self.layer.new_channel()
            self._pump = asyncio.create_task(self._hear(self._channel))
        return self._channel

    async def _hear(self, channel: str) -> None:
        """When Redis comes back the layer subscribes again by itself; what was lost meanwhile is a gap."""
        while True:
            try:
                message = await self.layer.receive(channel)
                if "beat" in message:
                    self._hear_beat(message["server"], message["beat"])
                elif "probe" not in message:
                    self.fanout.hear(message["topic"], message["payload"])
                elif proof := self._proofs.get(message["topic"]):
                    proof.set()
            except Exception:
                log.exception("Something came over the bus that is not understood.")
                self.fanout.fell_behind()

    async def _beat(self) -> None:
        """While anybody listens, a message to ourselves each second. Where one does not come back, or comes
        from a Redis that was started anew, rings were lost on the same way, and the readers are told to look:
        the layer subscribes again without a word."""
        beat, group = 1, f"beat.{uuid4().hex}"
        while True:
            await asyncio.sleep(BEATS_EVERY)
            if not self.fanout or self.is_away:
                continue
            async with self.reaching("readers fall back to reading rows"):
                server = (await self.redis.info("server"))["run_id"]
                async with self._lock:
                    await self.layer.group_add(group, await self._open_channel())
                await self.layer.group_send(group, {"server": server, "beat": beat})
                beat += 1

    def _hear_beat(self, server: str, beat: int) -> None:
        was, last = self._last_beat or (server, beat)
        self._last_beat = (server, beat)
        if self._was_cut_off or server != was or beat > last + 1:
            self._was_cut_off = False
            self.fanout.fell_behind()
        else:
            for topic in [topic for topic, proof in self._proofs.items() if not proof.is_set()]:
                self.fanout.hear(topic, None)  # its readers join again


class ChannelLayerBus:
    def __init__(self) -> None:
        self._hubs: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = weakref.WeakKeyDictionary()

    async def publish(self, topic: str, payload: Payload) -> None:
        hub = self._hub()
        if not hub.is_away:
            async with hub.reaching("readers will read the rows"):
                await _keep_tail(hub.redis, topic, payload)
                await hub.layer.group_send(_group(topic), {"topic": topic, "payload": payload})

    @asynccontextmanager
    async def subscribe(self, topic: str) -> AsyncIterator["RejoiningListener"]:
        hub = self._hub()
        try:
            async with hub.fanout.listen(topic) as listener:
                await hub.join(topic)
                yield RejoiningListener(listener, hub, topic)
        finally:
            await asyncio.shield(hub.leave(topic))

    async def tail(self, topic: str) -> list[Payload]:
        hub = self._hub()
        kept: list[Any] = []
        if not hub.is_away:
            async with hub.reaching("a reader that joins waits for the finished block"):
                kept = await hub.redis.lrange(_tail(topic), 0, -1)
        return [tails.joined(json.loads(kept[0]), map(json.loads, kept[1:]))] if kept else []

    def _hub(self) -> Hub:
        loop = asyncio.get_running_loop()
        if loop not in self._hubs:
            self._hubs[loop] = Hub()
        return self._hubs[loop]


class RejoiningListener:
    """A listener that tries to join again whenever it was silent: after Redis was away it may be alone."""

    def __init__(self, inner: QueueListener, hub: Hub, topic: str) -> None:
        self._inner, self._hub, self._topic = inner, hub, topic

    async def next(self, timeout: float) -> Payload | None:
        payload = await self._inner.next(timeout)
        if payload is None:
            await self._hub.join(self._topic)
        return payload


async def _keep_tail(redis: Redis, topic: str, payload: Payload) -> None:
    key = _tail(topic)
    if tails.is_delta(payload) and payload["offset"]:
        await redis.rpushx(key, json.dumps(tails.piece(payload)))
    elif tails.is_delta(payload):
        async with redis.pipeline(transaction=True) as together:
            together.delete(key)
            together.rpush(key, json.dumps(payload))
            together.expire(key, tails.LIVES)
            await together.execute()
    elif payload.get("type") == tails.DELETED:
        await redis.delete(key)
    elif payload.get("type") in tails.ENDING:
        await _end_tail(redis, key, payload)


async def _end_tail(redis: Redis, key: str, row: Payload) -> None:
    """Its own tail only: deltas come on another connection, and the next block may have begun already."""
    async with redis.pipeline(transaction=True) as together:
        await together.watch(key)
        first = await together.lindex(key, 0)
        if first is None or not tails.ends(row, json.loads(first)):
            return
        together.multi()  # type: ignore[no-untyped-call]
        together.delete(key)
        try:
            await together.execute()
        except WatchError:
            return  # it began in this very moment


def _group(topic: str) -> str:
    return f"topic.{topic}"


def _tail(topic: str) -> str:
    return f"parachute:tail:{topic}"


bus = ChannelLayerBus()

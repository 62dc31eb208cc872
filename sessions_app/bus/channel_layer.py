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
from typing import Any

from channels.layers import get_channel_layer
from django.conf import settings
from redis.asyncio import Redis
from redis.exceptions import RedisError

from sessions_app.bus import tails
from sessions_app.bus.base import Payload
from sessions_app.bus.fanout import Fanout, QueueListener

log = logging.getLogger(__name__)

AWAY = (RedisError, OSError)
JOINED_WITHIN = 2.0  # seconds that we wait for the echo of our own probe
PAUSE_WHEN_AWAY = 1.0


class Hub:
    """What one event loop has: its channel, its listeners, its connection for the tails."""

    def __init__(self) -> None:
        self.layer: Any = get_channel_layer()
        self.redis: Redis = Redis.from_url(settings.PARACHUTE_REDIS, decode_responses=True)
        self.fanout = Fanout()
        self._channel: str | None = None
        self._pump: asyncio.Task[None] | None = None
        self._joined: dict[str, asyncio.Event] = {}
        self._lock = asyncio.Lock()

    async def join(self, topic: str) -> None:
        """Returns once the subscription is proven by a probe that came back, or Redis is known to be away:
        then the readers live on their keep-alive until `join` is tried again."""
        async with self._lock:
            known = self._joined.get(topic)
            if known is None:
                known = self._joined[topic] = asyncio.Event()
                try:
                    await self.layer.group_add(_group(topic), await self._open_channel())
                    await self.layer.group_send(_group(topic), {"topic": topic, "probe": True})
                except AWAY as error:
                    del self._joined[topic]
                    log.warning("The bus is away (%s); readers fall back to reading rows.", error)
                    return
        try:
            async with asyncio.timeout(JOINED_WITHIN):
                await known.wait()
        except TimeoutError:
            log.warning("The bus did not answer within %s s.", JOINED_WITHIN)

    async def leave(self, topic: str) -> None:
        async with self._lock:
            if topic in self.fanout.topics() or self._joined.pop(topic, None) is None:
                return
            try:
                await self.layer.group_discard(_group(topic), self._channel)
            except AWAY as error:
                log.warning("The bus is away (%s) while a topic was left.", error)

    async def _open_channel(self) -> str:
        if self._channel is None:
            self._channel = await self.layer.new_channel()
            self._pump = asyncio.create_task(self._hear())
        return self._channel

    async def _hear(self) -> None:
        while True:
            try:
                message = await self.layer.receive(self._channel)
            except AWAY as error:
                log.warning("The bus is away (%s); trying again.", error)
                self.fanout.fell_behind()
                await asyncio.sleep(PAUSE_WHEN_AWAY)
                continue
            if "probe" not in message:
                self.fanout.hear(message["topic"], message["payload"])
            elif joined := self._joined.get(message["topic"]):
                joined.set()


class ChannelLayerBus:
    def __init__(self) -> None:
        self._hubs: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = weakref.WeakKeyDictionary()

    async def publish(self, topic: str, payload: Payload) -> None:
        hub = self._hub()
        try:
            await self._keep_tail(hub.redis, topic, payload)
            await hub.layer.group_send(_group(topic), {"topic": topic, "payload": payload})
        except AWAY as error:
            log.warning("The bus is away (%s); readers will read the rows.", error)

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
        try:
            head, text = await self._hub().redis.mget(f"{_tail(topic)}:head", f"{_tail(topic)}:text")
        except AWAY as error:
            log.warning("The bus is away (%s); a joining reader waits for the finished block.", error)
            return []
        return [tails.joined(json.loads(head), str(text))] if head and text else []

    async def _keep_tail(self, redis: Redis, topic: str, payload: Payload) -> None:
        head, text = f"{_tail(topic)}:head", f"{_tail(topic)}:text"
        if tails.ends(payload):
            await redis.delete(head, text)
        elif tails.is_delta(payload) and payload["offset"]:
            await redis.append(text, payload["delta"])
        elif tails.is_delta(payload):
            async with redis.pipeline(transaction=True) as together:
                together.set(head, json.dumps(tails.head(payload)), ex=tails.LIVES)
                together.set(text, payload["delta"], ex=tails.LIVES)
                await together.execute()

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


def _group(topic: str) -> str:
    return f"topic.{topic}"


def _tail(topic: str) -> str:
    return f"parachute:tail:{topic}"


bus = ChannelLayerBus()

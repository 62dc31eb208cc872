"""Both platforms kept as people want them, each by itself: what breaks one does not touch the other."""

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from agents_app.sandboxes import walls
from bots_app.models import BotState, PlatformName
from bots_app.platforms import made
from bots_app.platforms.base import Platform, PlatformError, SlowDown, TokenRefused
from bots_app.relay.talking import Talk
from bots_app.services import bots, delivering, pairing, revoking, saying
from bots_app.services.bots import Order
from sessions_app.streaming import bus
from sessions_app.threads import in_thread

log = logging.getLogger(__name__)

LOOKS_EVERY = 5.0  # seconds: a ring comes at once, and may be lost
SWEEPS_EVERY = 600.0
LEAVES_AFTER = 60.0  # without any token
SHORTEST_WAIT, LONGEST_WAIT = 1.0, 60.0
LONG_ENOUGH = 15.0
UNFORESEEN = "Something failed that was not foreseen; the log says more."


@dataclass
class Keeper:
    """`jitter` is chance: servers that came back are not met by all at the same moment."""

    holder: str
    jitter: Callable[[], float] = random.random
    looks_every: float = LOOKS_EVERY
    leaves_after: float = LEAVES_AFTER
    _orders: dict[str, Order] = field(default_factory=dict)
    _news: dict[str, asyncio.Event] = field(default_factory=dict)

    async def run(self) -> None:
        """Ends by itself where there has been no token for a while."""
        self._news = {platform: asyncio.Event() for platform in PlatformName.values}
        watching = [self._watch(), self._sweep(), *map(self._keep, PlatformName.values)]
        tasks = [asyncio.ensure_future(each) for each in watching]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self) -> None:
        """The one reader of what is wanted. One query, also where nothing runs."""
        async with bus.current().subscribe(saying.TOPIC) as listener:
            idle_since = monotonic()
            while True:
                orders = await in_thread(bots.orders)()
                idle_since = monotonic() if any(order.token for order in orders) else idle_since
                if monotonic() - idle_since > self.leaves_after:
                    return
                for order in orders:
                    if self._orders.get(order.platform) != order:
                        self._orders[order.platform] = order
                        self._news[order.platform].set()
                await _for_orders(listener, self.looks_every)

    async def _sweep(self) -> None:
        while True:
            await in_thread(revoking.sweep)()
            await in_thread(pairing.sweep)()
            await in_thread(delivering.sweep)()
            await asyncio.sleep(SWEEPS_EVERY)

    async def _keep(self, platform: str) -> None:
        wait = SHORTEST_WAIT
        while True:
            order = self._orders.get(platform)
            self._news[platform].clear()
            if order is None or not order.is_wanted:
                await self._rest(platform, order)
                wait = SHORTEST_WAIT
                continue
            if not await in_thread(bots.hold)(platform, self.holder):
                await self._until_news(platform, self.looks_every)
                continue
            ended = await self._serve(order)
            if ended.is_final:
                await self._until_news(platform, None)
                wait = SHORTEST_WAIT
                continue
            wait = SHORTEST_WAIT if ended.has_run else min(wait * 2, LONGEST_WAIT)
            if not ended.is_ordered:
                await self._until_news(platform, max(wait * (0.5 + self.jitter()), ended.is_silent_for))

    async def _rest(self, platform: str, order: Order | None) -> None:
        if order is not None:
            await in_thread(_stopped)(platform, order.problem)
            await self._test(order)
        await self._until_news(platform, None)

    async def _test(self, order: Order) -> None:
        if order.test is None:
            return
        account, problem = await _looked_at(order) if order.token else ("", "It has no token yet.")
        await in_thread(bots.tested)(order.platform, order.test, account, problem)

    async def _until_news(self, platform: str, at_most: float | None) -> None:
        try:
            await asyncio.wait_for(self._news[platform].wait(), at_most)
        except TimeoutError:
            return
        order = self._orders[platform]
        if order.test is not None:
            await self._test(order)

    async def _serve(self, order: Order) -> "Ended":
        """One connection, from its beginning to whatever ends it."""
        ended = Ended()
        began = monotonic()
        platform: Platform | None = None
        try:
            platform = made(order.platform, order.token, order.url)
            account = await platform.open()
            await in_thread(walls.look)()  # who is linked by their first word is let in with what works here
            await in_thread(bots.is_now)(order.platform, BotState.RUNNING, "", account)
            await self._talk(platform, order)
            ended.is_ordered = True
        except TokenRefused as error:
            ended.is_final = True
            await in_thread(bots.is_now)(order.platform, BotState.FAILED, str(error))
        except PlatformError as error:
            log.warning("The bot on %s is away: %s", order.platform, error.__cause__ or error)
            ended.is_silent_for = error.after if isinstance(error, SlowDown) else 0.0
            await in_thread(bots.is_now)(order.platform, BotState.RECONNECTING, str(error))
        except Exception:
            log.exception("The bot on %s broke off; it tries again.", order.platform)
            await in_thread(bots.is_now)(order.platform, BotState.RECONNECTING, UNFORESEEN)
        finally:
            if platform is not None:
                await _closed(platform)
            await in_thread(bots.let_go)(order.platform, self.holder)
        ended.has_run = monotonic() - began >= LONG_ENOUGH
        return ended

    async def _talk(self, platform: Platform, order: Order) -> None:
        """Until it breaks, or something else is wanted."""
        talk = asyncio.ensure_future(Talk(platform).run())
        try:
            while not talk.done():
                await _first_of(talk, self._news[order.platform], bots.SAID_EVERY)
                self._news[order.platform].clear()
                now = self._orders[order.platform]
                state = BotState.RECONNECTING if platform.is_away else BotState.RUNNING
                await in_thread(bots.is_now)(order.platform, state)
                if now.test is not None:
                    await self._test(now)
                is_same = (now.number, now.token, now.is_on) == (order.number, order.token, order.is_on)
                if not is_same or not await in_thread(bots.hold)(order.platform, self.holder):
                    return
            talk.result()
        finally:
            talk.cancel()
            await asyncio.gather(talk, return_exceptions=True)


async def _first_of(task: "asyncio.Future[Any]", event: asyncio.Event, at_most: float | None = None) -> None:
    news = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({task, news}, timeout=at_most, return_when=asyncio.FIRST_COMPLETED)
    finally:
        news.cancel()


@dataclass
class Ended:
    has_run: bool = False  # long enough to have been well
    is_ordered: bool = False  # somebody wants something else
    is_final: bool = False  # until somebody does
    is_silent_for: float = 0.0  # seconds, as the platform asked for


async def _looked_at(order: Order) -> tuple[str, str]:
    """What it is called, or what is wrong."""
    platform: Platform | None = None
    try:
        platform = made(order.platform, order.token, order.url)
        return await platform.open(), ""
    except PlatformError as error:
        return "", str(error)
    except Exception:
        log.exception("The bot on %s could not be tested.", order.platform)
        return "", UNFORESEEN
    finally:
        if platform is not None:
            await _closed(platform)


async def _closed(platform: Platform) -> None:
    try:
        await platform.close()
    except Exception:
        log.exception("A connection to a platform could not be closed.")


def _stopped(platform: str, problem: str) -> None:
    state = BotState.FAILED if problem else BotState.STOPPED
    bots.is_now(platform, state, problem)


async def _for_orders(listener: Any, at_most: float) -> None:
    """Rings of chats are for others."""
    loop = asyncio.get_running_loop()
    until = loop.time() + at_most
    while (left := until - loop.time()) > 0:
        rung = await listener.next(left)
        if rung is None or "chat" not in rung:
            return

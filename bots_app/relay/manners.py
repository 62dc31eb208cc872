"""Silence, where a platform asked for it: in that chat nothing is asked of it until then, by nobody."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeVar

from bots_app.models import BotChat
from bots_app.platforms.base import SlowDown

R = TypeVar("R")


class Manners:
    def __init__(self) -> None:
        self._silent_until: dict[int, float] = {}

    def is_silent(self, chat: BotChat) -> bool:
        return self._silent_until.get(chat.pk, 0.0) > monotonic()

    def be_silent(self, chat: BotChat, seconds: float) -> None:
        until = monotonic() + seconds
        self._silent_until[chat.pk] = max(until, self._silent_until.get(chat.pk, 0.0))

    async def wait(self, chat: BotChat) -> None:
        while (left := self._silent_until.get(chat.pk, 0.0) - monotonic()) > 0:  # noqa: ASYNC110 - it may grow
            await asyncio.sleep(left)

    async def politely(self, chat: BotChat, call: Callable[[], Awaitable[R]]) -> R:
        """As often as it takes: to be told to wait is no failure."""
        while True:
            await self.wait(chat)
            try:
                return await call()
            except SlowDown as error:
                self.be_silent(chat, error.after)

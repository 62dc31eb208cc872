"""Where people live who speak to a bot: what they do and what they see, whatever platform lies between."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from bots_app.platforms.fake import Shown

PATIENCE = 15.0


@dataclass
class Town:
    url: str = ""
    calls: list[tuple[str, str, float]] = field(default_factory=list)  # method, chat, when
    marked: list[str] = field(default_factory=list)  # as the platform was told it, with its marks
    chats: Any = None

    _waiters: list[asyncio.Event] = field(default_factory=list)

    def changed(self) -> None:
        for each in self._waiters:
            each.set()

    def texts(self, chat: str) -> list[str]:
        return [each.text for each in self.chats[chat]]

    def shown(self, chat: str) -> list[Shown]:
        return list(self.chats[chat])

    async def until(self, holds: Callable[[], Any], patience: float = PATIENCE) -> Any:
        """What it gives, as soon as it is something. Looked at with each call that says something."""
        event = asyncio.Event()
        self._waiters.append(event)
        try:
            async with asyncio.timeout(patience):
                while not (found := holds()):
                    event.clear()
                    with suppress(TimeoutError):
                        await asyncio.wait_for(event.wait(), 0.05)
                return found
        except TimeoutError:
            raise AssertionError(f"it never came to that: {self.chats or self}") from None
        finally:
            self._waiters.remove(event)

    async def reads(self, chat: str, words: str) -> str:
        """Somebody in the chat waits until a message there holds these words."""

        def found() -> str | None:
            return next((text for text in reversed(self.texts(chat)) if words in text), None)

        read: str = await self.until(found)
        return read

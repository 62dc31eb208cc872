"""One answer as it comes: said as soon as there is something, and changed while it grows.

1. What stands already, from before a restart, is known by the ids in the row, and is changed, not said again.
2. While the turn runs: typing is shown; what there is is shown at most as often as the platform likes.
3. At the end all of it is shown, whatever was left out before. One that took long ends as a new message, so
   that a phone tells of it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from functools import partial
from hashlib import sha256
from time import monotonic
from typing import Any

from bots_app.models import Delivery
from bots_app.platforms.base import Platform, PlatformError, SlowDown, Undeliverable, Unreachable
from bots_app.relay.manners import Manners
from bots_app.relay.pictures import named_in, read_pictures
from bots_app.relay.splitting import split
from bots_app.relay.telling import Telling
from bots_app.services import delivering
from bots_app.services.places import place_of
from sessions_app.errors import NotFound
from sessions_app.streaming.stream import follow_turn
from sessions_app.threads import in_thread

TOOK_LONG = 20.0  # seconds


class Answer:
    def __init__(self, platform: Platform, delivery: Delivery, manners: Manners) -> None:
        self._platform = platform
        self._delivery = delivery
        self._chat = delivery.chat
        self._place = place_of(delivery.chat)
        self._manners = manners
        self._messages = [each for each in delivery.messages if "old" not in each]
        self._old = [each for each in delivery.messages if "old" in each]  # they go once the new ones stand
        self._telling = Telling()
        self._news = asyncio.Event()
        self._began: float | None = None
        in_group = self._chat.is_group
        self._every = platform.edits_every_in_groups if in_group else platform.edits_every

    async def deliver(self) -> None:
        turn = self._delivery.turn
        assert turn is not None
        listening = asyncio.ensure_future(self._listen(turn.session_id, turn.pk, turn.opened_seq - 2))
        typing = asyncio.ensure_future(self._type())
        try:
            await self._stream(listening)
            typing.cancel()
            await self._finish()
        except NotFound:
            pass  # the chat was deleted, and what it was to say with it
        finally:
            for task in (listening, typing):
                task.cancel()
            await asyncio.gather(listening, typing, return_exceptions=True)

    async def _listen(self, session_id: Any, turn_id: Any, after: int) -> None:
        async with aclosing(follow_turn(session_id, turn_id, max(after, 0), _may_always)) as frames:
            async for frame in frames:
                if frame is not None:
                    self._telling.take(frame)
                    self._news.set()

    async def _type(self) -> None:
        while True:
            if not self._manners.is_silent(self._chat):
                with suppress(PlatformError):
                    await self._platform.typing(self._place)
            await asyncio.sleep(self._platform.typing_lasts * 0.9)

    async def _stream(self, listening: asyncio.Task[None]) -> None:
        while not listening.done():
            news = asyncio.ensure_future(self._news.wait())
            try:
                await asyncio.wait({news, listening}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                news.cancel()
            self._news.clear()
            if listening.done():
                break
            await self._manners.wait(self._chat)
            if self._telling.text.strip():
                await self._show_what_there_is()
                await asyncio.wait({listening}, timeout=self._every)
        listening.result()

    async def _show_what_there_is(self) -> None:
        """Some of it may be left out: what comes next shows it."""
        try:
            await self._show(self._pieces(), lambda call: call())
        except SlowDown as error:
            self._manners.be_silent(self._chat, error.after)
        except (Undeliverable, Unreachable):
            await asyncio.sleep(max(self._every, 1.0))  # the end of it is said in any case

    async def _finish(self) -> None:
        pieces = self._pieces()
        took_long = self._began is not None and monotonic() - self._began > TOOK_LONG
        if took_long:
            self._old += [{**each, "old": True} for each in self._messages if "last" not in each]
            self._messages = [each for each in self._messages if "last" in each]
        await self._show(pieces, partial(self._manners.politely, self._chat), is_last=True)
        self._old += [{**each, "old": True} for each in self._messages[len(pieces) :]]
        self._messages = self._messages[: len(pieces)]
        await self._take_back_old()
        await self._send_pictures()

    async def _take_back_old(self) -> None:
        """The row keeps each until it is gone: the text stands there once, whoever goes on with it."""
        while self._old:
            with suppress(Undeliverable):
                delete = partial(self._platform.delete, self._place, self._old[0]["id"])
                await self._manners.politely(self._chat, delete)
            self._old.pop(0)
            await self._stands()

    async def _stands(self, card: dict[str, Any] | None = None) -> None:
        await in_thread(delivering.stands)(self._delivery, [*self._messages, *self._old], card)

    def _pieces(self) -> list[str]:
        return split(self._telling.text, self._platform.max_length, self._platform.length)

    async def _show(
        self,
        pieces: list[str],
        say: Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]],
        *,
        is_last: bool = False,
    ) -> None:
        for number, piece in enumerate(pieces):
            mark = sha256(piece.encode()).hexdigest()[:16]
            if number < len(self._messages):
                await self._change(number, piece, mark, say)
            else:
                await self._add(piece, mark, say, is_last=is_last)

    async def _add(self, piece: str, mark: str, say: Any, *, is_last: bool) -> None:
        reply_to = "" if self._messages else self._delivery.reply_to
        said = await say(partial(self._platform.send, self._place, piece, reply_to=reply_to))
        self._began = self._began or monotonic()
        self._messages.append({"id": said, "mark": mark, **({"last": True} if is_last else {})})
        await self._stands()

    async def _change(self, number: int, piece: str, mark: str, say: Any) -> None:
        held = self._messages[number]
        if held.get("mark") == mark:
            return
        try:
            await say(partial(self._platform.edit, self._place, held["id"], piece))
        except Undeliverable:  # somebody deleted it
            held["id"] = await say(partial(self._platform.send, self._place, piece))
        held["mark"] = mark
        await self._stands()

    async def _send_pictures(self) -> None:
        names = named_in(self._telling.words)
        turn = self._delivery.turn
        if not names or turn is None:
            return
        done = int(self._delivery.card.get("pictures", 0))
        for number, (name, content) in enumerate(await in_thread(read_pictures)(turn.session_id, names)):
            if number >= done:
                with suppress(Undeliverable):  # the words are there
                    send = partial(self._platform.send_file, self._place, name, content)
                    await self._manners.politely(self._chat, send)
                await self._stands({"pictures": number + 1})


async def _may_always() -> None:
    """It reads for its chat what its chat has asked."""

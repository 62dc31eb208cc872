"""One connection to a platform: what is heard becomes rows, and what is to be said is said.

In each chat what was heard is taken in its order, answers are given in theirs, and notices and cards go out
beside them: who waits for an answer can still be told something. The rows say what there is to do; a ring
only says that it is worth looking.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import aclosing, suppress
from functools import partial
from typing import Any

from django.db import DatabaseError, DataError

from bots_app.models import BotChat, Delivery, DeliveryKind
from bots_app.platforms.base import (
    Incoming,
    Platform,
    PlatformError,
    SentFile,
    TokenRefused,
    Undeliverable,
    Unreachable,
)
from bots_app.relay.answering import Answer
from bots_app.relay.manners import Manners
from bots_app.services import cards, commands, delivering, hearing, opening, saying
from bots_app.services.opening import Said
from bots_app.services.places import place_of
from permissions_app.services.telling import INBOX
from sessions_app.files.attachments import MOST, Given
from sessions_app.incidents import incident
from sessions_app.streaming import bus
from sessions_app.threads import in_thread

log = logging.getLogger(__name__)

LOOKS_EVERY = 2.0  # seconds: rings can be lost, rows cannot
CARDS_EVERY = 10.0
LARGEST_FILE = 20 << 20
FETCHES = (0.0, 1.0, 2.0, 4.0, 8.0)  # seconds before each: one file is no reason to sign in anew

Work = Callable[[int], Coroutine[Any, Any, None]]


class Talk:
    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._lanes: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._again: set[tuple[str, int]] = set()
        self._manners = Manners()
        self._broken: asyncio.Future[None] | None = None
        self._work: dict[str, Work] = {
            "heard": self._take_what_was_heard,
            DeliveryKind.ANSWER: partial(self._deliver, DeliveryKind.ANSWER),
            DeliveryKind.NOTICE: partial(self._deliver, DeliveryKind.NOTICE),
            DeliveryKind.CARD: partial(self._deliver, DeliveryKind.CARD),
        }

    async def run(self) -> None:
        """Until it breaks, or is cancelled. Raises what broke it."""
        self._broken = asyncio.get_running_loop().create_future()
        tasks = [asyncio.ensure_future(each) for each in (self._hear(), self._look(), self._ask())]
        try:
            await asyncio.wait([*tasks, self._broken], return_when=asyncio.FIRST_COMPLETED)
            for ended in [*tasks, self._broken]:
                if ended.done():
                    ended.result()
        finally:
            await _end([*tasks, *self._lanes.values()])
            self._broken.cancel()

    async def _hear(self) -> None:
        async with aclosing(self._platform.receive()) as batches:
            async for batch in batches:
                by_chat: dict[str, list[Incoming]] = {}
                for said in batch:
                    by_chat.setdefault(said.place.chat_id, []).append(said)
                await asyncio.gather(*map(self._hear_in_order, by_chat.values()))

    async def _hear_in_order(self, said: list[Incoming]) -> None:
        for each in said:
            try:
                await self._hear_one(each)
            except Exception as error:
                if isinstance(error, DatabaseError) and not isinstance(error, DataError):
                    raise  # it was not taken, and comes again
                log.exception("Update %s of %s is left out.", each.update_id, self._platform.name)

    async def _hear_one(self, said: Incoming) -> None:
        if said.press:
            await self._press(said)
            return
        chat = await in_thread(hearing.hear)(self._platform.name, said)
        if chat is not None:
            self._wake("heard", chat.pk)

    async def _press(self, said: Incoming) -> None:
        told = await in_thread(cards.press)(self._platform.name, said)
        with suppress(PlatformError):  # the button stops turning by itself
            await self._platform.answer_press(said.press_id, told)

    async def _look(self) -> None:
        """What waits, at first, at each ring, and in a silence."""
        async with bus.current().subscribe(saying.TOPIC) as listener:
            chat: int | None = None
            while True:
                if chat is None:
                    await in_thread(opening.answer_approved)(self._platform.name)
                    chats = await in_thread(delivering.chats_with_work)(self._platform.name)
                else:
                    mine = await in_thread(_is_of)(self._platform.name, chat)
                    chats = [chat] if mine else []
                    if mine:
                        await in_thread(opening.answer_approved)(self._platform.name)
                for each in chats:
                    for lane in self._work:
                        self._wake(lane, each)
                rung = await listener.next(LOOKS_EVERY)
                chat = rung.get("chat") if rung else None

    async def _ask(self) -> None:
        """Whoever may decide something, and has a chat with us, is asked there."""
        async with bus.current().subscribe(INBOX) as listener:
            while True:
                for chat in await in_thread(cards.sync)(self._platform.name):
                    self._wake(DeliveryKind.CARD, chat)
                await listener.next(CARDS_EVERY)
                await asyncio.sleep(0.05)

    def _wake(self, lane: str, chat: int) -> None:
        key = (str(lane), chat)
        if key in self._lanes:
            self._again.add(key)
        else:
            self._lanes[key] = asyncio.ensure_future(self._run_lane(key))

    async def _run_lane(self, key: tuple[str, int]) -> None:
        lane, chat = key
        try:
            self._again.add(key)
            while key in self._again:
                self._again.discard(key)
                await self._work[lane](chat)
        except (TokenRefused, Unreachable) as error:
            self._break(error)
        except Exception as error:
            log.exception("What waits in chat %s of %s could not be dealt with.", chat, self._platform.name)
            self._break(error)
        finally:
            self._lanes.pop(key, None)

    def _break(self, error: Exception) -> None:
        if self._broken is not None and not self._broken.done():
            self._broken.set_exception(error)

    async def _take_what_was_heard(self, chat: int) -> None:
        while (said := await in_thread(opening.next_said)(chat)) is not None:
            if said.waits:
                await asyncio.sleep(said.waits)
            else:
                await self._take_one(said)
        for kind in DeliveryKind:
            self._wake(kind, chat)

    async def _take_one(self, said: Said) -> None:
        try:
            if said.is_command and await in_thread(commands.run)(said):
                await in_thread(opening.done)(said)
            else:
                await self._say(said)
        except (PlatformError, DatabaseError):
            raise
        except Exception as error:  # noqa: BLE001 - it is logged as an incident
            told = incident(log, f"What was said in chat {said.lead.chat_id}", error)
            await in_thread(opening.refuse)(said, told.message)

    async def _say(self, said: Said) -> None:
        try:
            files = [await self._fetched(said.lead.chat, file) for file in said.files[:MOST]]
        except Undeliverable as error:
            await in_thread(opening.refuse)(said, str(error))
            return
        await in_thread(opening.say)(said, files)

    async def _fetched(self, chat: BotChat, file: dict[str, Any]) -> Given:
        if int(file["size"]) > LARGEST_FILE:
            raise Undeliverable(
                f"{file['name']} is larger than {LARGEST_FILE >> 20} MB, so I did not take it."
            )
        found = SentFile(str(file["id"]), str(file["name"]), int(file["size"]))
        for wait in FETCHES:
            await asyncio.sleep(wait)
            with suppress(Unreachable):
                fetch = partial(self._platform.fetch, found)
                return Given(found.name, await self._manners.politely(chat, fetch))
        raise Undeliverable(f"{found.name} could not be fetched, so I did not take it. Send it again.")

    async def _deliver(self, kind: DeliveryKind, chat: int) -> None:
        while (delivery := await in_thread(delivering.next_of)(chat, kind)) is not None:
            await self._delivered(delivery)

    async def _delivered(self, delivery: Delivery) -> None:
        """One that is tried again holds up those behind it: they were said later."""
        try:
            await self._say_it(delivery)
        except Undeliverable as error:
            await in_thread(delivering.failed)(delivery, str(error))
        except Unreachable as error:
            await self._try_again(delivery, str(error))
        except (TokenRefused, DatabaseError):
            raise
        except Exception as error:  # noqa: BLE001 - it is logged as an incident
            told = incident(log, f"Delivery {delivery.pk}", error)
            await self._try_again(delivery, told.message)
        else:
            await in_thread(delivering.sent)(delivery)

    async def _try_again(self, delivery: Delivery, why: str) -> None:
        wait = await in_thread(delivering.tried)(delivery, why)
        if wait is not None:
            await asyncio.sleep(wait)

    async def _say_it(self, delivery: Delivery) -> None:
        if delivery.kind == DeliveryKind.ANSWER:
            await Answer(self._platform, delivery, self._manners).deliver()
        elif delivery.kind == DeliveryKind.CARD:
            await self._show_card(delivery)
        else:
            await self._say_notice(delivery)

    async def _say_notice(self, delivery: Delivery) -> None:
        if delivery.messages:
            return  # it was said, and its end was not written down
        place = place_of(delivery.chat)
        say = partial(self._platform.send, place, delivery.text, reply_to=delivery.reply_to)
        said = await self._manners.politely(delivery.chat, say)
        await in_thread(delivering.stands)(delivery, [{"id": said}])

    async def _show_card(self, delivery: Delivery) -> None:
        shown = await in_thread(cards.shown)(delivery, self._platform.max_length)
        place = place_of(delivery.chat)
        if delivery.messages:
            at = delivery.messages[0]["id"]
            edit = partial(self._platform.edit, place, at, shown.text, buttons=shown.buttons)
            await self._manners.politely(delivery.chat, edit)
            messages = delivery.messages
        else:
            say = partial(self._platform.send, place, shown.text, buttons=shown.buttons)
            messages = [{"id": await self._manners.politely(delivery.chat, say)}]
        await in_thread(cards.was_shown)(delivery, messages, shown)


def _is_of(platform: str, chat: int) -> bool:
    return BotChat.objects.filter(pk=chat, platform=platform).exists()


async def _end(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

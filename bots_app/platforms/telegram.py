"""Telegram by long polling. The only importer of its library."""

import asyncio
import logging
import re
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import telegram
from telegram.constants import ChatAction, ChatType, MessageLimit, ParseMode
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    RetryAfter,
    TelegramError,
)
from telegram.request import HTTPXRequest
from telegram.warnings import PTBDeprecationWarning

from bots_app.platforms.base import (
    Buttons,
    Incoming,
    Place,
    PlatformError,
    SentFile,
    SlowDown,
    TokenRefused,
    Undeliverable,
    Unreachable,
    Who,
)
from bots_app.platforms.markdown import as_telegram

R = TypeVar("R")

log = logging.getLogger(__name__)

warnings.filterwarnings("ignore", category=PTBDeprecationWarning)  # it warns itself of its own attribute
warnings.filterwarnings("ignore", "Please use 'Bot.getUpdates'")  # but where that one can read nothing

OFFICIAL = "https://api.telegram.org"
HEARD = ["message", "callback_query"]
POLLS = 25  # seconds for which a poll may stay open
PATIENCE = 10.0
LONGEST_PRESS = 190


class TelegramPlatform:
    name = "telegram"
    max_length = MessageLimit.MAX_TEXT_LENGTH - 96  # our bullets may be longer than what they stand for
    edits_every = 1.5
    edits_every_in_groups = 3.0
    typing_lasts = 5.0
    is_away = False  # it raises instead

    def __init__(self, token: str, url: str = "") -> None:
        where = url.rstrip("/") or OFFICIAL
        calls = HTTPXRequest(connection_pool_size=16, read_timeout=PATIENCE, connect_timeout=PATIENCE)
        polls = HTTPXRequest(connection_pool_size=1, read_timeout=PATIENCE, connect_timeout=PATIENCE)
        try:
            self._bot = telegram.Bot(
                token,
                base_url=f"{where}/bot",
                base_file_url=f"{where}/file/bot",
                request=calls,
                get_updates_request=polls,
            )
        except InvalidToken as error:
            raise TokenRefused("This is no token of Telegram. @BotFather gives one.") from error
        self._offset = 0
        self._is_closed = asyncio.Event()

    @staticmethod
    def length(text: str) -> int:
        """Telegram counts in halves of what others count by: an emoji is two."""
        return len(text.encode("utf-16-le", errors="replace")) // 2

    async def open(self) -> str:
        with _explained():
            await self._bot.initialize()
        return str(self._bot.username)

    async def receive(self) -> AsyncGenerator[list[Incoming]]:
        while not self._is_closed.is_set():
            offset, heard = await self._polled()
            if heard:
                yield heard
            self._offset = offset

    async def _polled(self) -> tuple[int, list[Incoming]]:
        """What came, and from where to ask once it is taken."""
        with _explained():
            try:
                updates = await self._bot.get_updates(
                    offset=self._offset, timeout=POLLS, allowed_updates=HEARD
                )
            except (KeyError, TypeError, ValueError, AttributeError):
                return await self._polled_one_by_one()
        heard = [each for update in updates if (each := self._understood(update))]
        return max((each.update_id + 1 for each in updates), default=self._offset), heard

    async def _polled_one_by_one(self) -> tuple[int, list[Incoming]]:
        """The library takes all or none, so one that it cannot read would come again and again."""
        asked = {"offset": self._offset, "allowed_updates": HEARD}
        found, heard = await self._bot.do_api_request("getUpdates", asked), list[Incoming]()
        for each in found:
            try:
                update = telegram.Update.de_json(each, self._bot)
            except (KeyError, TypeError, ValueError, AttributeError):
                log.exception("Update %s of Telegram cannot be read, and is left out.", each["update_id"])
                continue
            if said := self._understood(update):
                heard.append(said)
        return max((int(each["update_id"]) + 1 for each in found), default=self._offset), heard

    async def send(self, place: Place, text: str, *, buttons: Buttons = (), reply_to: str = "") -> str:
        where: dict[str, Any] = _at(place)
        if reply_to:
            where["reply_parameters"] = telegram.ReplyParameters(
                int(reply_to), allow_sending_without_reply=True
            )
        sent = await self._formatted(
            text, lambda **said: self._bot.send_message(**where, **said, reply_markup=_keyboard(buttons))
        )
        return str(sent.message_id)

    async def edit(self, place: Place, message_id: str, text: str, *, buttons: Buttons = ()) -> None:
        try:
            await self._formatted(
                text,
                lambda **said: self._bot.edit_message_text(
                    chat_id=int(place.chat_id),
                    message_id=int(message_id),
                    reply_markup=_keyboard(buttons),
                    **said,
                ),
            )
        except Undeliverable as error:
            if "not modified" not in str(error):
                raise

    async def delete(self, place: Place, message_id: str) -> None:
        with _explained():
            await self._bot.delete_message(int(place.chat_id), int(message_id))

    async def typing(self, place: Place) -> None:
        with _explained():
            await self._bot.send_chat_action(action=ChatAction.TYPING, **_at(place))

    async def send_file(self, place: Place, name: str, content: bytes) -> str:
        is_picture = name.lower().endswith((".png", ".jpg", ".jpeg", ".webp")) and len(content) < 10 << 20
        with _explained():
            if is_picture:
                sent = await self._bot.send_photo(photo=content, filename=name, caption=name, **_at(place))
            else:
                sent = await self._bot.send_document(document=content, filename=name, **_at(place))
        return str(sent.message_id)

    async def fetch(self, file: SentFile) -> bytes:
        with _explained():
            found = await self._bot.get_file(file.id)
        try:
            with _explained():
                return bytes(await found.download_as_bytearray())
        except TokenRefused as error:  # so the library reads every 404
            raise Undeliverable(f"{file.name} is not there any more. Send it again.") from error

    async def answer_press(self, press_id: str, text: str) -> None:
        with _explained():
            await self._bot.answer_callback_query(press_id, text=text[:LONGEST_PRESS])

    async def close(self) -> None:
        self._is_closed.set()
        await self._bot.shutdown()

    async def _formatted(self, text: str, say: Callable[..., Awaitable[R]]) -> R:
        """As Telegram's own marks, and where it does not take these, as it was written."""
        quiet = telegram.LinkPreviewOptions(is_disabled=True)
        try:
            with _explained():
                marked = as_telegram(text) or text
                return await say(text=marked, parse_mode=ParseMode.HTML, link_preview_options=quiet)
        except Undeliverable as error:
            if "parse" not in str(error) and "too long" not in str(error):
                raise
        with _explained():
            return await say(text=text, link_preview_options=quiet)

    def _understood(self, update: telegram.Update) -> Incoming | None:
        if (press := update.callback_query) is not None:
            return self._pressed(update, press)
        message = update.message
        if message is None or message.from_user is None or message.chat.type == ChatType.CHANNEL:
            return None
        files = tuple(_files(message))
        text = message.text or message.caption or ""
        if not text and not files:
            return None
        is_private = message.chat.type == ChatType.PRIVATE
        return Incoming(
            update_id=str(update.update_id),
            place=_place(message),
            who=_who(message.from_user, hides=message.sender_chat is not None),
            message_id=str(message.message_id),
            at=message.date,
            text=text if is_private else self._without_our_name(text),
            is_to_us=is_private or self._is_to_us(message, text),
            files=files,
            album=message.media_group_id or "",
        )

    def _pressed(self, update: telegram.Update, press: telegram.CallbackQuery) -> Incoming | None:
        message = press.message
        if not isinstance(message, telegram.Message) or not press.data:
            return None
        return Incoming(
            update_id=str(update.update_id),
            place=_place(message),
            who=_who(press.from_user, hides=False),
            message_id=str(message.message_id),
            at=message.date,
            press=press.data,
            press_id=press.id,
        )

    def _is_to_us(self, message: telegram.Message, text: str) -> bool:
        replied = message.reply_to_message
        if replied is not None and replied.from_user is not None and replied.from_user.id == self._bot.id:
            return True
        return self._our_name().search(text) is not None

    def _without_our_name(self, text: str) -> str:
        return self._our_name().sub("", text).strip()

    def _our_name(self) -> re.Pattern[str]:
        """As a whole: other bots' names may begin with ours."""
        return re.compile(rf" ?@{re.escape(str(self._bot.username))}(?!\w)", re.IGNORECASE | re.ASCII)


def _files(message: telegram.Message) -> Iterator[SentFile]:
    if message.photo:
        largest = message.photo[-1]
        yield SentFile(largest.file_id, f"photo-{message.message_id}.jpg", largest.file_size or 0)
    if (document := message.document) is not None:
        name = document.file_name or f"file-{message.message_id}"
        yield SentFile(document.file_id, name, document.file_size or 0)


def _place(message: telegram.Message) -> Place:
    thread = message.message_thread_id if message.is_topic_message else None
    return Place(
        str(message.chat.id),
        str(thread or ""),
        is_group=message.chat.type != ChatType.PRIVATE,
        title=message.chat.title or "",
    )


def _who(user: telegram.User, *, hides: bool) -> Who:
    name = f"{user.full_name} (@{user.username})" if user.username else user.full_name
    return Who(str(user.id), name, is_person=not (user.is_bot or hides))


def _at(place: Place) -> dict[str, Any]:
    thread = int(place.thread_id) if place.thread_id else None
    return {"chat_id": int(place.chat_id), "message_thread_id": thread}


def _keyboard(buttons: Buttons) -> telegram.InlineKeyboardMarkup | None:
    rows = [[telegram.InlineKeyboardButton(each.label, callback_data=each.data)] for each in buttons]
    return telegram.InlineKeyboardMarkup(rows) if rows else None


def _seconds(error: RetryAfter) -> float:
    after = error.retry_after  # one or the other, by the version of the library
    return after.total_seconds() if isinstance(after, timedelta) else float(after)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except TelegramError as error:
        raise _meant(error) from error


def _meant(error: TelegramError) -> PlatformError:
    match error:
        case InvalidToken():
            return TokenRefused("Telegram does not accept this token. @BotFather shows the right one.")
        case RetryAfter():
            return SlowDown(_seconds(error))
        case Conflict():
            return Unreachable(
                "Another program reads the messages of this bot. Stop it, or make another bot."
            )
        case ChatMigrated():
            return Undeliverable("The group has become another one. Say something to the bot there.")
        case Forbidden() | BadRequest():
            return Undeliverable(f"Telegram refuses it: {error.message}.")
        case _:
            return Unreachable("Telegram does not answer.")

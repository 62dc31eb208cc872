"""Discord by its gateway, with slash commands. The only importer of its library.

The library comes back by itself after the connection broke, and takes up what was missed meanwhile; it waits
by itself, too, where it is told to be silent. What Discord has no way to send again is what came while nobody
was signed in.
"""

import asyncio
import io
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import aiohttp
import discord
import yarl
from discord import app_commands
from discord.gateway import DiscordWebSocket
from discord.http import Route

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
from bots_app.platforms.markdown import as_discord

discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False  # nobody speaks aloud here

OFFICIAL = "https://discord.com"
COMMANDS = {
    "help": "What I can do",
    "new": "Begin anew",
    "stop": "Stop what I am doing",
    "status": "What I am doing",
    "agent": "Who answers here, or choose another one",
    "journal": "The journal of today, or add to it",
    "link": "Show that this account is yours",
}
WITH_WORDS = ("agent", "journal", "link")
ORDINARY = (discord.MessageType.default, discord.MessageType.reply)
BAD_TOKEN, NO_INTENT = 4004, 4014


class DiscordPlatform:
    name = "discord"
    max_length = 1_950  # of 2,000: a table gets a fence of ours
    edits_every = 1.5
    edits_every_in_groups = 3.0
    typing_lasts = 10.0

    def __init__(self, token: str, url: str = "") -> None:
        self._token = token
        self._is_elsewhere = bool(url)
        Route.BASE = f"{url.rstrip('/') or OFFICIAL}/api/v10"
        self._client = _Client(self)
        self._connecting: asyncio.Task[None] | None = None
        self._heard: asyncio.Queue[Incoming] = asyncio.Queue()
        self._untaken: list[Incoming] = []
        self._presses: dict[str, discord.Interaction] = {}
        self.is_away = False

    @staticmethod
    def length(text: str) -> int:
        return len(text)

    async def open(self) -> str:
        with _explained():
            await self._client.login(self._token)
        return str(self._client.user)

    async def receive(self) -> AsyncGenerator[list[Incoming]]:
        if self._connecting is None:
            with _explained():
                await self._sign_in()
            self._connecting = asyncio.ensure_future(self._client.connect(reconnect=True))
        while True:
            if not self._untaken:
                self._untaken = await self._next()
            yield list(self._untaken)
            self._untaken = []

    async def _sign_in(self) -> None:
        if self._is_elsewhere:
            _shards, gateway, _limit = await self._client.http.get_bot_gateway()
            DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway)
        await self._client.tree.sync()

    async def _next(self) -> list[Incoming]:
        """What came, or whatever ended the connection for good."""
        assert self._connecting is not None
        waiting = asyncio.ensure_future(self._heard.get())
        try:
            await asyncio.wait({waiting, self._connecting}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                with _explained():
                    self._connecting.result()
                raise Unreachable("Discord ended the connection.")
            found = [waiting.result()]
        finally:
            waiting.cancel()
        while not self._heard.empty():
            found.append(self._heard.get_nowait())
        return found

    async def send(self, place: Place, text: str, *, buttons: Buttons = (), reply_to: str = "") -> str:
        channel = self._channel(place)
        more: dict[str, Any] = {}
        if reply_to.isdigit():
            about = channel.get_partial_message(int(reply_to))
            more["reference"] = about.to_reference(fail_if_not_exists=False)
        if view := _view(buttons):
            more["view"] = view
        with _explained():
            sent = await channel.send(self._fitting(text), suppress_embeds=True, **more)
        if view:
            view.stop()  # presses come to us, from before a restart too
        return str(sent.id)

    async def edit(self, place: Place, message_id: str, text: str, *, buttons: Buttons = ()) -> None:
        message = self._channel(place).get_partial_message(int(message_id))
        view = _view(buttons)
        with _explained():
            await message.edit(content=self._fitting(text), view=view)
        if view:
            view.stop()

    async def delete(self, place: Place, message_id: str) -> None:
        with _explained():
            await self._channel(place).get_partial_message(int(message_id)).delete()

    async def typing(self, place: Place) -> None:
        with _explained():
            await self._channel(place).typing()

    async def send_file(self, place: Place, name: str, content: bytes) -> str:
        with _explained():
            sent = await self._channel(place).send(file=discord.File(io.BytesIO(content), filename=name))
        return str(sent.id)

    async def fetch(self, file: SentFile) -> bytes:
        with _explained():
            return await self._client.http.get_from_cdn(file.id)

    async def answer_press(self, press_id: str, text: str) -> None:
        interaction = self._presses.pop(press_id, None)
        if interaction is None:
            return
        with _explained():
            if text:
                await interaction.response.send_message(text, ephemeral=True)
            else:
                await interaction.response.defer()

    async def close(self) -> None:
        await self._client.close()
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)

    def _channel(self, place: Place) -> discord.PartialMessageable:
        return self._client.get_partial_messageable(int(place.chat_id))

    def _fitting(self, text: str) -> str:
        """Its own marks where there is room for them."""
        marked = as_discord(text)
        return marked if len(marked) <= 2_000 else text

    # called by the client

    def hear(self, message: discord.Message) -> None:
        us = self._client.user
        if us is None or message.author.id == us.id or message.type not in ORDINARY:
            return
        is_private = isinstance(message.channel, discord.DMChannel)
        replied = message.reference.resolved if message.reference else None
        is_reply = isinstance(replied, discord.Message) and replied.author.id == us.id
        text = message.content
        if not is_private:
            text = re.sub(rf" ?<@!?{us.id}>", "", text).strip()
        self._heard.put_nowait(
            Incoming(
                update_id=str(message.id),
                place=_place(message.channel),
                who=_who(message.author, hides=message.webhook_id is not None),
                message_id=str(message.id),
                at=message.created_at,
                text=text,
                is_to_us=is_private or is_reply or us.id in {each.id for each in message.mentions},
                files=tuple(SentFile(each.url, each.filename, each.size) for each in message.attachments),
            )
        )

    def press(self, interaction: discord.Interaction) -> None:
        """Of a button. An interaction cannot be answered for long, so none is kept for long."""
        data: Any = interaction.data or {}
        if interaction.message is None or not data.get("custom_id"):
            return
        while len(self._presses) >= 100:
            self._presses.pop(next(iter(self._presses)))
        self._presses[str(interaction.id)] = interaction
        self._heard.put_nowait(
            Incoming(
                update_id=str(interaction.id),
                place=_place(interaction.channel, interaction.channel_id),
                who=_who(interaction.user, hides=False),
                message_id=str(interaction.message.id),
                at=interaction.created_at,
                press=data["custom_id"],
                press_id=str(interaction.id),
            )
        )

    async def command(self, name: str, interaction: discord.Interaction, words: str = "") -> None:
        with suppress(discord.HTTPException):  # it says that it was not answered, and we answer all the same
            await interaction.response.send_message(f"/{name}", ephemeral=True)
        self._heard.put_nowait(
            Incoming(
                update_id=str(interaction.id),
                place=_place(interaction.channel, interaction.channel_id),
                who=_who(interaction.user, hides=False),
                message_id="",
                at=interaction.created_at,
                text=f"/{name} {words}".strip(),
            )
        )


class _Client(discord.Client):
    def __init__(self, platform: DiscordPlatform) -> None:
        intents = discord.Intents.none()
        intents.guilds = intents.guild_messages = intents.dm_messages = intents.message_content = True
        super().__init__(
            intents=intents,
            allowed_mentions=discord.AllowedMentions.none(),
            max_messages=None,
            guild_ready_timeout=0,  # nobody here waits to know all members of all guilds
        )
        self._platform = platform
        self.tree: app_commands.CommandTree[Any] = app_commands.CommandTree(self)
        for name, about in COMMANDS.items():
            self.tree.add_command(_command(platform, name, about))

    async def on_message(self, message: discord.Message) -> None:
        self._platform.hear(message)

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        if interaction.type is discord.InteractionType.component:
            self._platform.press(interaction)

    async def on_disconnect(self) -> None:
        self._platform.is_away = True

    async def on_connect(self) -> None:
        self._platform.is_away = False

    async def on_resumed(self) -> None:
        self._platform.is_away = False


def _command(platform: DiscordPlatform, name: str, about: str) -> "app_commands.Command[Any, ..., Any]":
    say = partial(platform.command, name)

    async def plain(interaction: discord.Interaction) -> None:
        await say(interaction)

    async def with_words(interaction: discord.Interaction, words: str = "") -> None:
        await say(interaction, words)

    return app_commands.Command(
        name=name, description=about, callback=with_words if name in WITH_WORDS else plain
    )


def _place(channel: Any, channel_id: int | None = None) -> Place:
    is_group = not isinstance(channel, discord.DMChannel)
    title = str(getattr(channel, "name", "") or "") if is_group else ""
    return Place(str(channel.id if channel is not None else channel_id), is_group=is_group, title=title)


def _who(user: discord.abc.User, *, hides: bool) -> Who:
    return Who(str(user.id), f"{user.display_name} (@{user.name})", is_person=not (user.bot or hides))


def _view(buttons: Buttons) -> discord.ui.View | None:
    if not buttons:
        return None
    view = discord.ui.View(timeout=None)
    for each in buttons:
        view.add_item(discord.ui.Button(label=each.label[:80], custom_id=each.data))
    return view


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (discord.DiscordException, aiohttp.ClientError, OSError, TimeoutError) as error:
        raise _meant(error) from error


def _meant(error: Exception) -> PlatformError:
    match error:
        case discord.LoginFailure():
            return TokenRefused("Discord does not accept this token. discord.com/developers gives a new one.")
        case discord.PrivilegedIntentsRequired():
            return TokenRefused(
                "Discord lets this bot read no messages. Switch on “Message Content Intent” under Bot on "
                "discord.com/developers, then start it again."
            )
        case discord.ConnectionClosed(code=code) if code == BAD_TOKEN:
            return TokenRefused("Discord does not accept this token any more.")
        case discord.RateLimited():
            return SlowDown(error.retry_after)
        case discord.HTTPException(status=429):
            return SlowDown(5.0)
        case discord.HTTPException(status=status) if status < 500:
            return Undeliverable(f"Discord refuses it: {error.text or error.status}.")
        case _:
            return Unreachable("Discord does not answer.")

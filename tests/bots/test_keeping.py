"""How bots are kept: as people want them, each by itself."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from threading import Lock
from typing import Any

import pytest
from django.db import connection

from agents_app.sandboxes import walls
from agents_app.sandboxes.walls import WhatIsHere
from bots_app.models import Bot, BotUser, PlatformName
from bots_app.relay.keeping import Keeper
from bots_app.services import bots, linking
from parachute_site.env import BotAccess
from parachute_site.logs import without_tokens
from parachute_site.up import waiting
from sessions_app.access.caller import Caller
from sessions_app.errors import Conflict, Forbidden
from sessions_app.threads import in_thread
from tests.bots.conftest import EVE
from tests.bots.discord_server import DiscordServer
from tests.bots.telegram_server import TelegramServer

SEEMS_TO_WORK = walls.seems_to_work  # the real one: `boxes_work` puts another in its place

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bots_app.relay.keeping.SHORTEST_WAIT", 0.05)
    monkeypatch.setattr("bots_app.relay.keeping.LONGEST_WAIT", 0.1)


@asynccontextmanager
async def kept(holder: str = "bots-1") -> AsyncIterator[None]:
    keeping = asyncio.ensure_future(Keeper(holder, jitter=lambda: 0.0, looks_every=0.2).run())
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


async def until(platform: str, holds: Callable[[Bot], bool]) -> Bot:
    """Rows tell no test that they changed."""
    async with asyncio.timeout(15):
        while not holds(bot := await in_thread(bots.of)(platform)):
            await asyncio.sleep(0.02)
    return bot


def only_on_the_page(settings: Any, town: TelegramServer, discord: str = "") -> None:
    settings.PARACHUTE_BOTS = {
        PlatformName.TELEGRAM: BotAccess(url=town.url),
        PlatformName.DISCORD: BotAccess(url=discord),
    }


async def test_it_waits_for_a_token_and_runs_until_it_is_told_to_stop(
    town: TelegramServer, settings: Any, as_ada: Caller
) -> None:
    only_on_the_page(settings, town)
    async with kept():
        await until("telegram", lambda bot: bot.state == "stopped")
        bot = await in_thread(bots.save_token)(as_ada, "telegram", town.token)
        assert town.token not in bot.sealed
        bot = await until("telegram", lambda bot: bot.state == "running")
        assert (bot.account, bots.state_of(bot)[0]) == (town.account, "running")
        town.says(EVE, "hello")
        await town.reads(EVE, "somebody has decided")

        asked = await in_thread(bots.ask_for_test)(as_ada, "telegram")
        tested = await until("telegram", lambda bot: bot.test_done == asked)
        assert (tested.test_account, tested.test_problem) == (town.account, "")

        await in_thread(bots.stop)(as_ada, "telegram")
        await until("telegram", lambda bot: bot.state == "stopped" and not bot.holder)
        polls = town.polls
        town.says(EVE, "anybody?")
        await in_thread(bots.start)(as_ada, "telegram")
        await until("telegram", lambda bot: bot.state == "running")
        await town.until(lambda: town.polls > polls)


async def test_whoever_links_by_the_first_word_is_let_in_with_what_works_here(
    town: TelegramServer, as_ada: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = [
        WhatIsHere("vault", "bubblewrap", True, "", ""),
        WhatIsHere("sandboxed", "docker", False, "No.", ""),
    ]
    monkeypatch.setattr(walls, "what_is_here", lambda: here)
    monkeypatch.setattr(walls, "seems_to_work", SEEMS_TO_WORK)
    monkeypatch.setattr(walls, "_is_one_machine", lambda: True)
    monkeypatch.setattr(walls, "_found", {})
    monkeypatch.setattr(walls, "_looking", Lock())
    walls._looking.acquire()  # so what is known is what was looked at before anybody was heard
    code = (await in_thread(linking.make)(as_ada)).code
    async with kept():
        town.says(EVE, f"/link {code}")
        await town.reads(EVE, "is linked to ada")
    assert (await BotUser.objects.aget()).trust_level == "vault"


async def test_a_wrong_token_fails_at_once_and_says_so_and_the_other_platform_runs(
    town: TelegramServer, settings: Any, as_ada: Caller
) -> None:
    discord = DiscordServer()
    await discord.begin()
    only_on_the_page(settings, town, discord.url)
    async with kept():
        await in_thread(bots.save_token)(as_ada, "telegram", "123456:" + "w" * 35)
        await in_thread(bots.save_token)(as_ada, "discord", discord.token)
        failed = await until("telegram", lambda bot: bot.state == "failed")
        assert "does not accept this token" in failed.problem
        await until("discord", lambda bot: bot.state == "running")
        await in_thread(bots.save_token)(as_ada, "telegram", town.token)
        await until("telegram", lambda bot: bot.state == "running" and bot.problem == "")
    await discord.end()


async def test_an_intent_that_is_not_switched_on_is_named(
    town: TelegramServer, settings: Any, as_ada: Caller
) -> None:
    discord = DiscordServer()
    discord.refuses_intents = True
    await discord.begin()
    only_on_the_page(settings, town, discord.url)
    async with kept():
        await in_thread(bots.save_token)(as_ada, "discord", discord.token)
        failed = await until("discord", lambda bot: bot.state == "failed")
        assert "Message Content Intent" in failed.problem
    await discord.end()


async def test_a_platform_that_is_away_is_tried_again(town: TelegramServer) -> None:
    town.is_down = True
    async with kept():
        away = await until("telegram", lambda bot: bot.state == "reconnecting")
        assert "does not answer" in away.problem
        town.is_down = False
        await until("telegram", lambda bot: bot.state == "running")
        town.says(EVE, "hello")
        await town.reads(EVE, "somebody has decided")


async def test_who_asks_for_silence_is_not_asked_again_before(town: TelegramServer) -> None:
    town.silent_polls = 1  # second
    async with kept():
        away = await until("telegram", lambda bot: bot.state == "reconnecting")
        assert "silence" in away.problem
        told = asyncio.get_running_loop().time()
        await until("telegram", lambda bot: bot.state == "running")
        assert asyncio.get_running_loop().time() - told > 0.8


async def test_one_process_speaks_for_a_bot(town: TelegramServer) -> None:
    async with kept("here"):
        await until("telegram", lambda bot: bot.state == "running")
        assert not await in_thread(bots.hold)("telegram", "elsewhere")
        assert await in_thread(bots.hold)("telegram", "here")
    assert await in_thread(bots.hold)("telegram", "elsewhere")


async def test_without_any_token_it_leaves_and_what_is_small_waits(
    town: TelegramServer, settings: Any, as_ada: Caller
) -> None:
    only_on_the_page(settings, town)
    async with asyncio.timeout(10):
        await Keeper("bots-1", looks_every=0.01, leaves_after=0.05).run()
    environment = replace(
        settings.ENVIRONMENT, bots=settings.PARACHUTE_BOTS, database_url=await in_thread(_url)()
    )
    assert not await in_thread(waiting.has_token)(environment)
    await in_thread(bots.save_token)(as_ada, "telegram", town.token)
    assert await in_thread(waiting.has_token)(environment)
    given = {"telegram": BotAccess("t" * 30)}
    assert waiting.has_token(
        replace(environment, bots=given, database_url="postgresql://nobody@127.0.0.1:1/no")
    )


def _url() -> str:
    """Of the database of the test."""
    held = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{held['NAME']}"
    host = held["OPTIONS"].get("host") or held["HOST"]
    return f"postgresql://{held['USER']}:{held['PASSWORD']}@/{held['NAME']}?host={host}"


def test_only_operators_say_which_bots_there_are(as_ben: Caller, as_ada: Caller, settings: Any) -> None:
    for order in (bots.start, bots.stop, bots.ask_for_test):
        with pytest.raises(Forbidden):
            order(as_ben, "telegram")
    with pytest.raises(Forbidden):
        bots.save_token(as_ben, "telegram", "1" * 30)
    access = {**settings.PARACHUTE_BOTS, "telegram": BotAccess("t" * 30, "", "TELEGRAM_BOT_TOKEN")}
    settings.PARACHUTE_BOTS = access
    with pytest.raises(Conflict, match="TELEGRAM_BOT_TOKEN"):
        bots.save_token(as_ada, "telegram", "1" * 30)


async def test_no_line_of_a_log_has_a_token(
    town: TelegramServer, caplog: pytest.LogCaptureFixture, settings: Any
) -> None:
    """Libraries write addresses into their lines, and addresses of Telegram have the token in them."""
    caplog.set_level(logging.DEBUG)
    town.is_down = True
    async with kept():
        await until("telegram", lambda bot: bot.state == "reconnecting")
    written = "\n".join(without_tokens(logging.Formatter().format(record)) for record in caplog.records)
    assert town.token not in written
    assert "getMe" in written  # it was there to be seen
    discord = DiscordServer().token
    assert without_tokens(f"Bot {discord} was refused") == "Bot ••• was refused"
    assert settings.LOGGING["handlers"]["stdout"]["formatter"] == "line"
    assert settings.LOGGING["formatters"]["line"]["()"] == "parachute_site.logs.WithoutTokens"

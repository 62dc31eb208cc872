"""The same house over Discord: the library talks to a gateway and a REST API of ours."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from agents_app.runtimes.scripted import Say, ScriptedRuntime
from bots_app.models import PairingRequest, PlatformName
from parachute_site.env import BotAccess
from sessions_app.access.caller import Caller
from sessions_app.models import Message, Session, Turn
from tests.bots.conftest import EVE, PETE, let_in, talking
from tests.bots.discord_server import US, DiscordServer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def quick_edits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bots_app.platforms.discord.DiscordPlatform.edits_every", 0.05)
    monkeypatch.setattr("bots_app.platforms.discord.DiscordPlatform.edits_every_in_groups", 0.05)


@pytest.fixture
async def house(
    no_task_is_left: None, worker: ScriptedRuntime, behind_a_wall: None, settings: Any
) -> AsyncIterator[DiscordServer]:
    town = DiscordServer()
    await town.begin()
    settings.PARACHUTE_BOTS = {
        PlatformName.TELEGRAM: BotAccess(),
        PlatformName.DISCORD: BotAccess(town.token, town.url, "DISCORD_BOT_TOKEN"),
    }
    async with talking(town):
        await town.until(town.identified.is_set)
        yield town
    await town.end()


async def let_eve_in(town: DiscordServer, caller: Caller) -> None:
    town.says(EVE, "let me in")
    await town.reads(EVE, "somebody has decided")
    await let_in(caller, EVE)
    await town.reads(EVE, "You are let in")
    await town.reads(EVE, "ok")


async def test_from_a_strangers_first_message_to_a_streamed_answer(
    house: DiscordServer, as_ada: Caller, worker: ScriptedRuntime
) -> None:
    worker.scripts["quinces"] = [Say("| a | b |\n|---|---|\n| 1 | 2 |\n\nAll **ripe**.")]
    house.says(EVE, "let me in")
    await house.reads(EVE, "somebody has decided")
    assert await Turn.objects.acount() == 0
    await let_in(as_ada, EVE)
    await house.reads(EVE, "ok")
    house.says(EVE, "the quinces?")
    told = await house.reads(EVE, "All **ripe**.")
    assert told.startswith("```\n| a | b |")
    session = await Session.objects.aget()
    assert (session.source, session.bot_chat, session.visibility) == ("discord", EVE, "workspace")
    assert EVE in house.typed


@pytest.mark.parametrize("how", ["breaks", "sends_away"])
async def test_a_gateway_that_is_dropped_is_taken_up_and_nothing_is_lost(
    house: DiscordServer, as_ada: Caller, how: str
) -> None:
    await let_eve_in(house, as_ada)
    await getattr(house, how)()
    for number in range(3):
        house.says(EVE, f"said meanwhile {number}")
    await house.until(lambda: house.resumes == 1)
    await house.until(lambda: house.texts(EVE).count("ok") == 2)
    assert house.identifies == 1
    said = await Message.objects.alatest("created_at")
    assert said.content == "said meanwhile 0\nsaid meanwhile 1\nsaid meanwhile 2"


async def test_slash_commands_are_registered_and_answered(house: DiscordServer, as_ada: Caller) -> None:
    await let_eve_in(house, as_ada)
    assert {each["name"] for each in house.commands} >= {"new", "stop", "status", "agent", "journal", "help"}
    pressed = house.commands_us(EVE, "status")
    await house.reads(EVE, "Agent: default")
    assert house.pressed[pressed] == "/status"
    house.commands_us(EVE, "agent", "nobody")
    await house.reads(EVE, "no agent of that name")
    assert await Turn.objects.acount() == 1


async def test_in_a_channel_only_a_mention_by_somebody_let_in_is_answered(
    house: DiscordServer, as_ada: Caller
) -> None:
    await let_eve_in(house, as_ada)
    channel = "-5150"
    house.says(EVE, "not to you", chat=channel)
    house.says(PETE, f"<@{US}> beep", chat=channel, is_bot=True)
    house.says(PETE, f"<@{US}> hook", chat=channel, hides=True)
    house.says(EVE, f"<@{US}> hello all", chat=channel)
    await house.reads("5150", "ok")
    said = await Message.objects.alatest("created_at")
    assert said.content == "hello all"
    assert await PairingRequest.objects.acount() == 1
    assert (await Session.objects.aget(bot_chat="5150")).visibility == "workspace"

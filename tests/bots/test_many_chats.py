"""Fifty chats at once on the fake platform: nothing is lost, and nothing is said twice."""

import asyncio
from typing import Any

import pytest

from agents_app.runtimes.scripted import Say, ScriptedRuntime
from bots_app.models import BotUser, Delivery, Heard
from bots_app.platforms.base import Unreachable
from sessions_app.access.models import Workspace
from sessions_app.models import Message, Session, Turn
from tests.bots.conftest import talking
from tests.bots.fake_town import FakeTown

pytestmark = pytest.mark.django_db(transaction=True)

CHATS = [str(1_000 + number) for number in range(50)]


@pytest.fixture
async def guests(workspace: Workspace) -> None:
    await BotUser.objects.abulk_create(
        BotUser(
            platform="telegram", platform_user_id=who, display=who, workspace=workspace, trust_level="vault"
        )
        for who in CHATS
    )


async def test_fifty_chats_lose_and_double_nothing(
    guests: None, worker: ScriptedRuntime, behind_a_wall: None, settings: Any
) -> None:
    settings.PARACHUTE_BOTS = {}
    for who in CHATS:
        worker.scripts[f"first of {who}"] = [Say(f"Answer one to {who}.")]
        worker.scripts[f"second of {who}"] = [Say(f"Answer two to {who}. " + "And so on. " * 60)]
    town = FakeTown()
    async with talking(town):
        for who in CHATS:
            town.says(who, f"first of {who}")
            town.repeat_last()
        for number in range(40):
            if number % 4 == 0:
                town.world.faults.append(Unreachable("It does not answer."))
            else:
                town.slows_down(0.01)
        await town.until(lambda: all("Answer one" in " ".join(town.texts(who)) for who in CHATS), 40)
    async with talking(town):  # a restart between
        for who in CHATS:
            town.says(who, f"second of {who}")
            town.repeat_last()
        await town.until(lambda: all("Answer two" in " ".join(town.texts(who)) for who in CHATS), 40)
        async with asyncio.timeout(30):
            while await Delivery.objects.filter(state="waiting").aexists():
                await asyncio.sleep(0.05)
    for who in CHATS:
        said = " ".join(town.texts(who))
        assert said.count(f"Answer one to {who}.") == 1
        assert said.count(f"Answer two to {who}.") == 1
        assert said.count("And so on.") == 60
        assert said.index("Answer one") < said.index("Answer two")
        assert not any(f"to {other}." in said for other in CHATS if other != who)
    assert await Session.objects.acount() == 50
    assert await Turn.objects.filter(status="done").acount() == 100
    assert await Message.objects.acount() == await Heard.objects.acount() == 100
    assert await Delivery.objects.filter(state="failed").acount() == 0

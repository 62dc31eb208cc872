"""What every platform promises: the fake, and the real libraries over the wire of a server of ours."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from time import monotonic
from typing import Any

import pytest

from bots_app.platforms import made
from bots_app.platforms.base import (
    Button,
    Incoming,
    Place,
    SentFile,
    SlowDown,
    TokenRefused,
    Undeliverable,
    Unreachable,
)
from tests.bots.discord_server import DiscordServer
from tests.bots.fake_town import FakeTown
from tests.bots.telegram_server import TelegramServer
from tests.bots.town import Town

WHO = "4242"
HERE = Place(WHO)


@pytest.fixture(params=[FakeTown, TelegramServer, DiscordServer], ids=["fake", "telegram", "discord"])
async def town(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    town = request.param()
    await town.begin()
    yield town
    await town.end()


@pytest.fixture
async def platform(town: Any) -> AsyncIterator[Any]:
    opened = _made(town, town.token)
    assert await opened.open() == town.account
    yield opened
    await opened.close()


def _made(town: Any, token: str) -> Any:
    return town.platform(token) if isinstance(town, FakeTown) else made(town.name, token, town.url)


async def _next(batches: Any) -> Incoming:
    async with asyncio.timeout(10):
        batch: list[Incoming] = await anext(batches)
    assert len(batch) == 1
    return batch[0]


async def test_what_is_said_is_heard_until_it_counts_as_taken(town: Any, platform: Any) -> None:
    town.says(WHO, "hello")
    async with aclosing(platform.receive()) as batches:
        heard = await _next(batches)
    assert (heard.text, heard.place.chat_id, heard.who.user_id, heard.is_to_us) == ("hello", WHO, WHO, True)
    assert heard.who.is_person
    async with aclosing(platform.receive()) as batches:  # nobody asked for more: it comes again
        assert await _next(batches) == heard
        town.says(WHO, "more")
        assert (await _next(batches)).text == "more"


async def test_what_is_said_can_be_changed_and_taken_back(town: Town, platform: Any) -> None:
    first = await platform.send(HERE, "one")
    second = await platform.send(HERE, "two")
    await platform.edit(HERE, first, "**uno**")
    assert "uno" in town.texts(WHO)[0]
    await platform.edit(HERE, first, "**uno**")  # nothing new is no mistake
    await platform.delete(HERE, second)
    assert len(town.texts(WHO)) == 1
    with pytest.raises(Undeliverable):
        await platform.edit(HERE, second, "three")


async def test_a_button_comes_back_as_a_press(town: Any, platform: Any) -> None:
    said = await platform.send(HERE, "May it?", buttons=[Button("Yes", "c:1:y"), Button("No", "c:1:n")])
    press_id = town.presses(WHO, WHO, "No")
    async with aclosing(platform.receive()) as batches:
        heard = await _next(batches)
    assert (heard.press, heard.message_id, heard.who.user_id) == ("c:1:n", said, WHO)
    await platform.answer_press(heard.press_id, "Noted.")
    assert town.pressed[press_id] == "Noted."


async def test_files_come_and_go(town: Any, platform: Any) -> None:
    town.sends(WHO, "plan.md", b"# Plan", caption="look")
    async with aclosing(platform.receive()) as batches:
        heard = await _next(batches)
    assert heard.text == "look"
    assert [(each.name, each.size) for each in heard.files] == [("plan.md", 6)]
    assert await platform.fetch(SentFile(heard.files[0].id, "plan.md", 6)) == b"# Plan"
    await platform.send_file(HERE, "map.png", b"\x89PNG")
    assert [(chat, content) for chat, _name, content in town.sent_files] == [(WHO, b"\x89PNG")]


async def test_trouble_is_told_by_its_kind(town: Any, platform: Any) -> None:
    town.slows_down(1)
    began = monotonic()
    try:
        await platform.send(HERE, "x")
    except SlowDown as slow:
        assert slow.after == 1
    else:  # or it waits by itself
        assert monotonic() - began >= 1
    town.fails_once()
    with pytest.raises(Unreachable):
        await platform.send(HERE, "x")
    town.closed.add("77")
    with pytest.raises(Undeliverable):
        await platform.send(Place("77"), "x")
    refused = _made(town, "123456:" + "b" * 35)
    with pytest.raises(TokenRefused):
        await refused.open()
    await refused.close()


async def test_the_longest_text_arrives_whole(town: Town, platform: Any) -> None:
    piece = "🍐 and **more** of it. "
    text = piece * (platform.max_length // platform.length(piece))
    await platform.send(HERE, text)
    assert town.texts(WHO)[0].count("🍐") == text.count("🍐")

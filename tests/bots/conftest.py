import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agents_app.sandboxes import walls
from bots_app.models import PairingRequest, PlatformName
from bots_app.platforms import made
from bots_app.relay.talking import Talk
from bots_app.services import pairing
from bots_app.services.pairing import Approval
from parachute_site.env import BotAccess
from sessions_app.access.caller import Caller
from sessions_app.threads import in_thread
from tests.agents_app.conftest import behind_a_wall  # noqa: F401
from tests.api.conftest import (  # noqa: F401
    ada_browser,
    ada_calls,
    ben_browser,
    ben_calls,
    cy_browser,
    cy_calls,
    no_broker,
    no_task_is_left,
    nobody,
    vi_calls,
    worker,
)
from tests.bots.telegram_server import TelegramServer
from tests.pages.conftest import as_ada_in, enter  # noqa: F401

EVE = "4242"  # a stranger, by her number
PETE = "4343"


@pytest.fixture(autouse=True)
def boxes_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs here runs behind no wall: these tests are about who is let in, not about walls."""
    monkeypatch.setattr(walls, "seems_to_work", lambda *_: True)
    monkeypatch.setattr(walls, "never_available", lambda *_: None)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Platforms like fewer edits than a test has patience for."""
    monkeypatch.setattr("bots_app.platforms.telegram.TelegramPlatform.edits_every", 0.05)
    monkeypatch.setattr("bots_app.platforms.telegram.TelegramPlatform.edits_every_in_groups", 0.05)


@pytest.fixture
async def town(no_task_is_left: None, settings: Any) -> AsyncIterator[TelegramServer]:  # noqa: F811
    server = TelegramServer()
    await server.begin()
    settings.PARACHUTE_BOTS = {
        PlatformName.TELEGRAM: BotAccess(server.token, server.url, "TELEGRAM_BOT_TOKEN"),
        PlatformName.DISCORD: BotAccess(),
    }
    yield server
    await server.end()


@asynccontextmanager
async def talking(town: Any) -> AsyncIterator[asyncio.Task[None]]:
    """While a connection to the platform stands."""
    make = getattr(town, "platform", None)
    platform = make() if make else made(town.name, town.token, town.url)
    await platform.open()
    task = asyncio.ensure_future(Talk(platform).run())
    try:
        yield task
        if task.done():
            task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await platform.close()


@pytest.fixture
async def open_house(town: TelegramServer, worker: Any, behind_a_wall: None) -> AsyncIterator[TelegramServer]:  # noqa: F811
    """Somebody speaks for the bot, and a worker runs what is said."""
    async with talking(town):
        yield town


def request_of(who: str) -> PairingRequest:
    return PairingRequest.objects.filter(platform_user_id=who).latest("created_at")


async def let_in(caller: Caller, who: str, **more: Any) -> PairingRequest:
    request = await in_thread(request_of)(who)
    return await in_thread(pairing.approve)(caller, request.pk, Approval(**{"trust_level": "vault", **more}))

"""Whole conversations over the real wire: the library talks to a Bot API server of ours."""

import pytest

from agents_app.runtimes.scripted import Say, ScriptedRuntime
from sessions_app.access.caller import Caller
from sessions_app.models import Session, Turn
from tests.bots.conftest import EVE, let_in
from tests.bots.telegram_server import TelegramServer

pytestmark = pytest.mark.django_db(transaction=True)


async def test_from_a_strangers_first_message_to_a_streamed_answer(
    open_house: TelegramServer, as_ada: Caller, scripted: ScriptedRuntime
) -> None:
    scripted.scripts["hello"] = [Say("Good **day** to you, and welcome to the garden.")]
    open_house.says(EVE, "hello, may I come in?")
    await open_house.reads(EVE, "somebody has decided")
    assert await Turn.objects.acount() == 0

    await let_in(as_ada, EVE)
    await open_house.reads(EVE, "You are let in")
    await open_house.reads(EVE, "Good day to you")
    assert "<b>day</b>" in open_house.marked[-1]
    session = await Session.objects.aget()
    assert (session.source, session.visibility, session.has_read_strangers) == ("telegram", "workspace", True)
    assert session.metadata["permissions"]["trustMode"] is False

    open_house.says(EVE, "and hello again")
    await open_house.until(
        lambda: open_house.texts(EVE).count("Good day to you, and welcome to the garden.") == 2
    )
    assert await Session.objects.acount() == 1

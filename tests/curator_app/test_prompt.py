import pytest

from agents_app.runtimes.scripted import Say, Use
from curator_app.prompt import SYSTEM, exchange_of
from sessions_app.models import Session, Turn
from sessions_app.threads import in_thread
from tests.agents_app.engine import Engine

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]


async def test_an_exchange_is_told_in_short(engine: Engine) -> None:
    read = Use("Read", {"file_path": "Welcome.md"})
    engine.runtime.scripts = {"quince": [read, read, Use("Glob", {"pattern": "*"}), Say("b" * 3_000)]}
    opened = await engine.say("quince " + "a" * 3_000)
    await engine.run(opened)
    turn = await Turn.objects.aget(pk=opened.turn_id)
    session = await Session.objects.aget(pk=opened.session_id)
    told = (await in_thread(exchange_of)(turn, session, 3)).as_prompt()
    assert told.splitlines()[:3] == [
        f"Current title: {session.title} (not set by a person)",
        "Exchange number: 3",
        "Tools used: Read, Glob",
    ]
    assert f"<person>\nquince {'a' * 993}…\n</person>" in told
    assert f"<assistant>\n{'b' * 2_000}…\n</assistant>" in told


def test_it_is_told_of_each_of_its_tools() -> None:
    assert all(f"`{tool}`" in SYSTEM for tool in ("update_title", "update_summary", "log_activity"))

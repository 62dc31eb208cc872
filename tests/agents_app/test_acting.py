"""Act without asking, taken away and given again, as the next call and the next process know it."""

import asyncio

import pytest

from agents_app.rights.acting import let_act
from agents_app.rights.changing import change
from agents_app.runtimes.scripted import Say, Use
from permissions_app import services
from sessions_app.schemas import SessionChange
from sessions_app.threads import in_thread
from tests.agents_app.asked import pending
from tests.agents_app.engine import PATIENCE, Engine, events, pause, types

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("behind_a_wall"),
]

OFF = SessionChange.model_validate({"metadata": {"permissions": {"trustMode": False}}})
WRITE = {"file_path": "Notes.md", "content": "x"}


async def test_a_wall_opens_the_vault_with_the_next_process(engine: Engine) -> None:
    opened = await engine.say("one")
    await in_thread(change)(engine.caller, opened.session_id, OFF)
    await engine.run(opened)
    assert engine.runtime.requests[-1].writable == ("Chat/artifacts/*",)
    await in_thread(let_act)(engine.caller, opened.session_id)
    await engine.answer("two", session_id=opened.session_id)
    assert engine.runtime.requests[-1].writable is None


async def test_the_rules_know_it_from_the_next_call_on(engine: Engine) -> None:
    here = pause()
    reads = Use("Read", {"file_path": "Notes.md"}, at=here)
    engine.runtime.scripts["go"] = [reads, Use("Write", WRITE), Say("Done.")]
    opened = await engine.say("go")
    await in_thread(change)(engine.caller, opened.session_id, OFF)
    async with engine.paused(opened, here):
        await in_thread(let_act)(engine.caller, opened.session_id)
        here.go_on.set()
    assert "permission_request" not in types(await events(opened))


async def test_taken_away_the_next_call_asks(engine: Engine) -> None:
    here = pause()
    reads = Use("Read", {"file_path": "Notes.md"}, at=here)
    engine.runtime.scripts["go"] = [reads, Use("Write", WRITE), Say("Done.")]
    opened = await engine.say("go")
    async with engine.paused(opened, here):
        await in_thread(change)(engine.caller, opened.session_id, OFF)
        here.go_on.set()
        async with asyncio.timeout(PATIENCE):
            while not (requests := await pending(opened)):
                await asyncio.sleep(0.01)
        await in_thread(services.deny)(engine.caller, requests[0].pk)
    assert requests[0].rule == "write"

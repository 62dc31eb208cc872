"""One message through the engine, with the scripted runtime and the real rows."""

import pytest

from agents_app.runtimes.scripted import Say, ScriptedRuntime, Use
from agents_app.turns.opening import Opening, open_turn
from agents_app.turns.run import run_session
from agents_app.turns.worker import Holder
from sessions_app.access.caller import Caller
from sessions_app.models import SessionEvent
from sessions_app.threads import in_thread

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]


async def test_a_message_is_answered_once_and_in_order(as_ada: Caller, scripted: ScriptedRuntime) -> None:
    scripted.scripts["quinces"] = [
        Say("Let me look."),
        Use("Read", {"file_path": "Welcome.md"}),
        Say("In October."),
    ]
    opened = await in_thread(open_turn)(as_ada, Opening("When are the quinces ripe?"))
    await run_session(opened.session_id, Holder("w"), scripted)
    events = [e async for e in SessionEvent.objects.filter(turn_id=opened.turn_id).order_by("seq")]
    assert [e.type for e in events] == [
        "session",
        "user_message",
        "session",
        "prompt_metadata",
        "model",
        "init",
        "text",
        "tool_use",
        "tool_result",
        "text",
        "done",
    ]
    assert events[-1].payload["response"] == "In October."

"""A tool that a person decides about: asked, waited for, and made only if somebody allowed exactly this."""

import pytest

from agents_app.runtimes.scripted import Say
from permissions_app import services
from sessions_app.models import TurnStatus
from sessions_app.threads import in_thread
from tests.agents_app.asked import asked, decided, use
from tests.agents_app.engine import Engine, events, turn_of, types

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]


async def test_what_a_person_allows_runs(engine: Engine) -> None:
    tool = use()
    engine.runtime.scripts["hi"] = [tool, Say("It rains.")]
    opened = await engine.say("hi")
    async with asked(engine, opened) as request:
        assert (await turn_of(opened)).status == TurnStatus.WAITING
        await in_thread(services.grant)(engine.caller, request.pk)
    written = await events(opened)
    assert types(written)[6:] == [
        "tool_use",
        "permission_request",
        "permission_resolved",
        "tool_result",
        "text",
        "done",
    ]
    assert written[7].payload["toolName"] == tool.name
    assert written[8].payload == {
        "requestId": str(request.pk),
        "decision": "granted",
        "pattern": None,
        "scope": "once",
        "decidedBy": engine.caller.name,
    }
    assert [event.payload["content"] for event in written if event.type == "tool_result"] == ["done"]
    assert (await decided(request)).used_at

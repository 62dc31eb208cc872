"""A turn whose agent may write what its wall keeps read-only: the server writes it, and the rows say so."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agents_app.carrying.edits import NOT_FOUND
from agents_app.runtimes.scripted import Say, Use
from agents_app.turns.held import leases
from permissions_app import audit, services
from permissions_app.models import ToolRequest
from sessions_app.access.models import Workspace
from sessions_app.models import Session
from sessions_app.threads import in_thread
from tests.agents_app.asked import asked, decided
from tests.agents_app.engine import Engine, events, expire, last_words, pause, types
from tests.agents_app.test_asking import killed_while_asking
from tests.asked import asks

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("behind_a_wall"),
]


@pytest.fixture
def steering(vault: Path, workspace: Workspace) -> Path:
    (vault / "CLAUDE.md").write_text("Prune in May.")
    return vault / "CLAUDE.md"


def never() -> str:
    raise AssertionError("the agent made it itself")


def writes(path: Path, text: str = "Prune in June.") -> Use:
    return Use("Write", {"file_path": str(path), "content": text}, never)


async def test_what_a_person_allows_is_written_once_and_told_as_done(
    engine: Engine, steering: Path, audited: list[audit.Entry]
) -> None:
    engine.runtime.scripts["ask"] = [writes(steering), Say("Done.")]
    opened = await engine.say("ask")
    async with asked(engine, opened) as request:
        assert steering.read_text() == "Prune in May."
        await in_thread(services.grant)(engine.caller, request.pk)
    written = await events(opened)
    assert steering.read_text() == "Prune in June."
    told = ["tool_use", "permission_request", "permission_resolved", "tool_result", "text", "done"]
    assert types(written)[-6:] == told
    assert written[-3].payload["content"].startswith("Done: Parachute wrote CLAUDE.md for you")
    assert not written[-3].payload["isError"]
    assert last_words(written)["permissionDenials"] == []
    decided_so = [(entry.outcome, entry.rule) for entry in audited if entry.kind == audit.AuditKind.DECISION]
    assert decided_so == [("asked", "control_file"), ("allowed", "carried_out")]


async def test_the_same_call_asks_again(engine: Engine, steering: Path) -> None:
    engine.runtime.scripts["ask"] = [writes(steering), writes(steering)]
    opened = await engine.say("ask")
    async with asked(engine, opened) as first:
        await in_thread(services.grant)(engine.caller, first.pk)
        second = await next_asked(first)
        steering.write_text("A person wrote this.")
        await in_thread(services.deny)(engine.caller, second.pk)
    assert steering.read_text() == "A person wrote this."
    assert [each["isError"] for each in last_words(await events(opened))["toolCalls"]] == [False, True]


async def test_an_answer_that_nobody_took_is_good_for_it(engine: Engine, steering: Path) -> None:
    opened = await engine.say("ask")
    tool = writes(steering)
    digest = await in_thread(killed_while_asking)(opened.session_id, tool)
    request = await in_thread(asks)(opened.session_id, digest=digest)
    await in_thread(services.grant)(engine.caller, request.pk)
    await expire()
    assert await in_thread(leases.sweep)() == 1
    engine.runtime.scripts["ask"] = engine.runtime.scripts["interrupted"] = [tool]
    await engine.run(opened)
    assert steering.read_text() == "Prune in June."
    assert (await decided(request)).used_at


async def test_what_cannot_be_done_is_an_error_of_the_tool(engine: Engine, steering: Path) -> None:
    given = {"file_path": str(steering), "old_string": "Graft", "new_string": "Cut"}
    engine.runtime.scripts["ask"] = [Use("Edit", given, never)]
    opened = await engine.say("ask")
    async with asked(engine, opened) as request:
        await in_thread(services.grant)(engine.caller, request.pk)
    written = await events(opened)
    (answer,) = [event.payload for event in written if event.type == "tool_result"]
    assert answer["isError"]
    assert answer["content"].startswith(f"Parachute could not write CLAUDE.md for you. {NOT_FOUND}")
    assert "permission_denied" not in types(written)


async def test_a_pattern_granted_since_the_wall_was_built_asks_no_more(
    engine: Engine, vault: Path, workspace: Workspace
) -> None:
    at = pause()
    engine.runtime.scripts["ask"] = [
        Say("Hm."),
        at,
        writes(vault / "Plans/May.md"),
        writes(vault / "Plans/June.md"),
    ]
    opened = await engine.say("ask")
    await in_thread(acts_by_patterns)(opened.session_id)
    async with engine.paused(opened, at):
        session = await Session.objects.aget(pk=opened.session_id)
        session.metadata["permissions"]["write"] = ["Plans/*"]
        await session.asave(update_fields=["metadata"])
        at.go_on.set()
    assert (vault / "Plans/May.md").read_text() == (vault / "Plans/June.md").read_text() == "Prune in June."
    assert await ToolRequest.objects.acount() == 0
    assert [each["isError"] for each in last_words(await events(opened))["toolCalls"]] == [False, False]


def acts_by_patterns(session_id: Any) -> None:
    session = Session.objects.get(pk=session_id)
    session.metadata["permissions"] |= {"trustMode": False, "write": []}
    session.save(update_fields=["metadata"])


async def next_asked(first: ToolRequest) -> ToolRequest:
    async with asyncio.timeout(20):
        while True:
            found: ToolRequest | None = await ToolRequest.objects.pending().exclude(pk=first.pk).afirst()
            if found is not None:
                return found
            await asyncio.sleep(0.01)

"""The server `parachute`: what an agent finds with it, and the tags that it puts on its chat."""

import json
from pathlib import Path
from typing import Any

import pytest

from agents_app.runtimes.scripted import Use
from agents_app.turns.said.opening import Opening, open_turn
from sessions_app.access.caller import Caller
from sessions_app.models import Session
from sessions_app.search import indexing
from sessions_app.threads import in_thread
from tests.agents_app.engine import Engine
from tests.sharing import share

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]


async def used(engine: Engine, tool: str, **given: Any) -> tuple[bool, Any]:
    """Whether it is an error, and what it answers."""
    engine.runtime.scripts["use it"] = [Use(f"mcp__parachute__{tool}", given)]
    results = [each.payload for each in await engine.answer("use it") if each.type == "tool_result"]
    return results[-1]["isError"], json.loads(results[-1]["content"])


async def test_a_note_is_found(engine: Engine, vault: Path) -> None:
    (vault / "Quinces.md").write_text("# Quinces\n\nThey ripen in October.")
    (vault / ".env").write_text("OCTOBER=secret")
    await in_thread(indexing.index_changed)()
    is_error, said = await used(engine, "search_vault", query="october")
    assert (is_error, [each["path"] for each in said["results"]]) == (False, ["Quinces.md"])


async def test_chats_are_found_read_and_listed_as_far_as_its_reader_may_see_them(
    engine: Engine, as_ben: Caller
) -> None:
    own = await engine.say("medlars of mine")
    await engine.run(own)
    bens = await in_thread(open_turn)(as_ben, Opening("medlars of ben"))
    await in_thread(indexing.index_sessions)()
    _, found = await used(engine, "search_sessions", query="medlars")
    assert [each["session_id"] for each in found["results"]] == [str(own.session_id)]
    _, read = await used(engine, "get_session", session_id=str(own.session_id))
    assert [each["text"] for each in read["messages"]] == ["medlars of mine", "ok"]
    for unseen in (str(bens.session_id), "x"):
        is_error, said = await used(engine, "get_session", session_id=unseen)
        assert is_error and said["error"]["code"] in ("not_found", "invalid")
    await in_thread(share)(bens.session_id)
    _, listed = await used(engine, "list_recent_sessions", limit=50)
    assert {str(own.session_id), str(bens.session_id)} <= {each["session_id"] for each in listed["sessions"]}


async def test_half_of_a_sign_is_looked_for_and_tagged_as_any_other(engine: Engine, vault: Path) -> None:
    (vault / "Quinces.md").write_text("They ripen in October.")
    await in_thread(indexing.index_changed)()
    is_error, said = await used(engine, "search_vault", query="october \ud800")
    assert (is_error, len(said["results"])) == (False, 1)
    assert await used(engine, "add_tag", tag="a\ud800") == (False, {"tags": ["a\ufffd"]})


async def test_it_tags_its_own_chat(engine: Engine) -> None:
    assert await used(engine, "add_tag", tag="Garden") == (False, {"tags": ["garden"]})
    session = await Session.objects.aget()
    assert [label.tag async for label in session.labels.all()] == ["garden"]
    is_error, said = await used(engine, "remove_tag", tag="nothing")
    assert (is_error, said["error"]["code"]) == (True, "not_found")

"""One message through the engine, with the scripted runtime and the real rows."""

import os
from pathlib import Path
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents_app.errors import AgentError
from agents_app.runtimes.events import BlockKind
from agents_app.runtimes.scripted import Begin, Say, Use
from agents_app.turns.held.claim import claim
from agents_app.turns.held.holder import Holder
from agents_app.turns.running import prepare as preparing
from agents_app.turns.said.opening import Opening, open_turn
from permissions_app.audit import Entry
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.models import EventType, Session, SessionEvent, SessionStatus, TurnStatus
from sessions_app.streaming import bus
from sessions_app.streaming.log import record
from tests.agents_app.engine import (
    PATIENCE,
    Engine,
    events,
    has_no_gaps,
    last_words,
    message_of,
    turn_of,
    types,
)

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

ANNOUNCED = ["session", "user_message", "session", "prompt_metadata", "model", "init"]


async def test_a_message_is_answered_once_and_in_order(engine: Engine) -> None:
    look = Use("Read", {"file_path": "Welcome.md"})
    engine.runtime.scripts["quinces"] = [Say("Let me look."), look, Say("In October.")]
    written = await engine.answer("When are the quinces ripe?")
    assert types(written) == [*ANNOUNCED, "text", "tool_use", "tool_result", "text", "done"]
    assert last_words(written)["response"] == "In October."
    assert await has_no_gaps(written[0].session_id)


async def test_the_answer_tells_what_it_took(engine: Engine) -> None:
    engine.runtime.scripts["look"] = [Use("Read", {"file_path": "Welcome.md"}), Use("Read", {}), Say("Ok.")]
    done = last_words(await engine.answer("look"))
    assert [call["isError"] for call in done["toolCalls"]] == [False, True]
    assert [denial["toolName"] for denial in done["permissionDenials"]] == ["Read"]
    assert (done["messageCount"], done["usage"]) == (2, {"inputTokens": 1, "outputTokens": 1})
    assert done["sessionResume"]["method"] == "new"


async def test_the_turn_is_done_and_nobodys_and_the_session_runs(engine: Engine) -> None:
    opened = await engine.say("hi")
    await engine.run(opened)
    turn, session = await turn_of(opened), await Session.objects.aget(pk=opened.session_id)
    assert (turn.status, turn.boot, turn.leased_at, turn.attempt) == (TurnStatus.DONE, None, None, 1)
    assert (session.status, session.message_count) == (SessionStatus.RUNNING, 2)


@pytest.mark.parametrize("rests", [True, False])
async def test_where_its_agent_rests_is_known(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, rests: bool
) -> None:
    monkeypatch.setattr(type(engine.runtime), "rests", lambda *_: rests)
    opened = await engine.say("hi")
    await Session.objects.aupdate(warm_on="elsewhere")
    await engine.run(opened, Holder("w"))
    assert (await Session.objects.aget()).warm_on == ("w" if rests else "")


async def test_the_id_of_the_message_is_the_one_in_the_transcript(engine: Engine) -> None:
    opened = await engine.say("hi")
    await engine.run(opened)
    assert engine.runtime.requests[0].message_id == (await message_of(opened)).pk


async def test_the_second_turn_resumes_the_first(engine: Engine) -> None:
    first = await engine.say("hi")
    await engine.run(first)
    written = await engine.answer("and now?", session_id=first.session_id)
    assert [request.resume for request in engine.runtime.requests] == [False, True]
    assert engine.runtime.requests[1].text == "and now?"
    info = written[2].payload["resumeInfo"]
    assert (info["method"], info["isNewSession"], info["previousMessageCount"]) == ("sdk_resume", False, 2)


async def test_what_comes_with_the_first_message_is_said_with_it_and_never_again(engine: Engine) -> None:
    more = {"initial_context": "It is spring.", "prior_conversation": "We spoke of pears."}
    first = await engine.say("And now?", **more)
    await engine.say("Again?", session_id=first.session_id, **more)
    await engine.run(first)
    said, again = [request.text for request in engine.runtime.requests]
    assert said == (
        "## Prior conversation\n\nWe spoke of pears.\n\n---\n\n"
        "## Context\n\nIt is spring.\n\n---\n\n## Request\n\nAnd now?"
    )
    assert again == "Again?"


async def test_context_alone_is_a_message(engine: Engine) -> None:
    written = await engine.answer("", initial_context="It is spring.")
    assert engine.runtime.requests[0].text == written[1].payload["content"] == "It is spring."


async def test_an_own_system_prompt_stands_without_the_context_files(engine: Engine, vault: Path) -> None:
    (vault / "CLAUDE.md").write_text("Speak softly.")
    written = await engine.answer("hi", system_prompt="You are a pear.")
    request = engine.runtime.requests[0]
    assert (request.system_prompt, request.append) == ("You are a pear.", "")
    assert written[3].payload["promptSource"] == "custom"


async def test_the_context_files_are_appended_and_told(engine: Engine, vault: Path) -> None:
    (vault / "CLAUDE.md").write_text("Speak softly.")
    written = await engine.answer("hi")
    assert "Speak softly." in engine.runtime.requests[0].append
    assert written[3].payload["contextFiles"] == ["CLAUDE.md"]


async def test_a_directory_that_is_gone_becomes_the_vault_with_a_warning(engine: Engine, vault: Path) -> None:
    (vault / "Garden").mkdir()
    opened = await engine.say("hi", working_directory="Garden")
    (vault / "Garden").rmdir()
    await engine.run(opened)
    assert engine.runtime.requests[0].directory == vault
    assert "working_directory_gone" in [event.payload.get("code") for event in await events(opened)]


async def test_so_does_one_that_an_agent_closed(
    engine: Engine, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (vault / "Garden").mkdir()
    opened = await engine.say("hi", working_directory="Garden")
    monkeypatch.setattr(os, "access", lambda path, *_, **__: path != vault / "Garden")
    await engine.run(opened)
    assert engine.runtime.requests[0].directory == vault
    assert "working_directory_gone" in [event.payload.get("code") for event in await events(opened)]


async def test_a_vault_that_is_closed_is_said_plainly(
    engine: Engine, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = await engine.say("hi")
    monkeypatch.setattr(os, "access", lambda path, *_, **__: path != vault)
    await engine.run(opened)
    error = last_words(await events(opened))
    assert error["code"] == "vault_gone"
    assert "closed to the user that Parachute runs as" in error["message"]


async def test_a_directory_that_leads_out_by_now_becomes_the_vault(engine: Engine, vault: Path) -> None:
    (vault / "Garden").mkdir()
    opened = await engine.say("hi", working_directory="Garden")
    (vault / "Garden").rmdir()
    (vault / "Garden").symlink_to("/etc")
    await engine.run(opened)
    assert engine.runtime.requests[0].directory == vault


async def test_a_vault_that_is_gone_is_said_plainly_and_what_helps(engine: Engine, vault: Path) -> None:
    opened = await engine.say("hi")
    await Workspace.objects.aupdate(vault_path=f"{vault}-gone")
    await engine.run(opened)
    error = last_words(await events(opened))
    assert (error["code"], error["canRetry"]) == ("vault_gone", True)
    assert error["message"].startswith(f"The vault {vault}-gone is not there. Mount it again,")


async def test_without_a_wall_for_it_nothing_runs(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_wall(*_: object) -> None:
        raise AgentError("sandbox_unavailable", "No bubblewrap here.")

    monkeypatch.setattr(preparing, "wall_for", no_wall)
    assert last_words(await engine.answer("hi"))["code"] == "sandbox_unavailable"
    assert engine.runtime.requests == []


async def test_who_is_no_operator_any_more_does_nothing_with_the_whole_computer(
    engine: Engine, ada: User
) -> None:
    engine.runtime.scripts["look"] = [Use("Read", {"file_path": "Welcome.md"})]
    opened = await engine.say("look", trust_level="full")
    await User.objects.filter(pk=ada.pk).aupdate(is_staff=False)
    await engine.run(opened)
    assert [denial["toolName"] for denial in last_words(await events(opened))["permissionDenials"]] == [
        "Read"
    ]


async def test_text_that_no_database_stores_is_told_with_a_mark(engine: Engine) -> None:
    odd = Use("Read", {"file_path": "Welcome.md"}, does=lambda: "a\0b \ud83d")
    engine.runtime.scripts["odd"] = [odd, Say("c\0d \udc00")]
    written = await engine.answer("odd")
    result = next(event for event in written if event.type == EventType.TOOL_RESULT)
    assert result.payload["content"] == "a\ufffdb \ufffd"
    assert last_words(written)["response"] == "c\ufffdd \ufffd"


async def test_a_very_long_answer_is_one_row_and_a_long_result_is_cut(engine: Engine) -> None:
    long = Use("Read", {"file_path": "Welcome.md"}, does=lambda: "y" * 150_000)
    engine.runtime.scripts["long"] = [long, Say("x" * 200_000)]
    written = await engine.answer("long")
    texts = [event.payload for event in written if event.type == EventType.TEXT]
    result = next(event.payload for event in written if event.type == EventType.TOOL_RESULT)
    assert [len(text["content"]) for text in texts] == [200_000]
    assert (len(result["content"]), result["truncated"]) == (100_000, True)


async def test_deltas_join_to_their_block_and_a_block_that_was_begun_anew_has_a_new_number(
    engine: Engine,
) -> None:
    engine.runtime.scripts["try"] = [
        Say("Hm, quinces …", BlockKind.THINKING),
        Begin("In Septem"),
        Say("In October, I think."),
    ]
    opened = await engine.say("try")
    topic = bus.session_topic(opened.session_id)
    async with bus.current().subscribe(topic) as listener:
        await engine.run(opened)
        heard = [await next_of(listener)]
        while heard[-1]["type"] != "done":
            heard.append(await next_of(listener))
    live: dict[int, str] = {}
    for delta in (payload for payload in heard if "delta" in payload):
        assert delta["offset"] == len(live.get(delta["block"], ""))
        live[delta["block"]] = live.get(delta["block"], "") + delta["delta"]
    finished = {p["block"]: p["content"] for p in heard if "content" in p and "block" in p}
    assert live == {0: "Hm, quinces …", 1: "In Septem", 2: "In October, I think."}
    assert finished == {0: live[0], 2: live[2]}


async def test_an_answer_in_one_piece_takes_the_place_of_what_was_begun(engine: Engine) -> None:
    engine.runtime.scripts["cut"] = [Begin("In Septem"), Say("")]
    written = await engine.answer("cut")
    assert [e.payload["block"] for e in written if e.type == EventType.TEXT] == [1]


async def test_what_is_queued_runs_in_the_order_in_which_it_was_said(engine: Engine) -> None:
    first = await engine.say("one")
    for text in ("two", "three"):
        await engine.say(text, session_id=first.session_id)
    await engine.run(first)
    assert [request.text for request in engine.runtime.requests] == ["one", "two", "three"]
    ends = SessionEvent.objects.filter(session_id=first.session_id, type=EventType.DONE).order_by("seq")
    assert [end.payload["messageCount"] async for end in ends] == [2, 4, 6]


async def test_a_transcript_that_cannot_be_published_costs_the_copy_and_not_the_turn(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("a disk that is full of surprises")

    monkeypatch.setattr("sessions_app.history.transcripts.publish", fails)
    assert types(await engine.answer("hi"))[-1] == "done"


async def next_of(listener: bus.Listener) -> bus.Payload:
    payload = await listener.next(PATIENCE)
    assert payload is not None
    return payload


def statements(queries: CaptureQueriesContext) -> list[str]:
    """What was asked of the database, but for the marks of transactions."""
    words = [query["sql"].split()[0] for query in queries.captured_queries]
    return [word for word in words if word not in ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE")]


def test_recording_an_event_takes_three_queries(as_ada: Caller, rings: list[UUID]) -> None:
    opened = open_turn(as_ada, Opening("hi"))
    claimed = claim(opened.session_id, Holder("w"))
    assert claimed
    with CaptureQueriesContext(connection) as queries:
        record(opened.session_id, EventType.MODEL, {"model": "m"}, hold=claimed[1])
    assert statements(queries) == ["SELECT", "UPDATE", "INSERT"]


def test_opening_a_turn_takes_few_queries(as_ada: Caller, rings: list[UUID]) -> None:
    with CaptureQueriesContext(connection) as new:
        opened = open_turn(as_ada, Opening("hi"))
    with CaptureQueriesContext(connection) as existing:
        open_turn(as_ada, Opening("and now?", session_id=opened.session_id), key="k")
    # Each of them asks once for the rights of its agent.
    assert (len(statements(new)), len(statements(existing))) == (9, 13)


async def test_each_decision_of_the_gate_is_recorded_for_whoever_spoke(
    engine: Engine, audited: list[Entry], ada: User, workspace: Workspace
) -> None:
    engine.runtime.scripts["look"] = [Use("Read", {"file_path": "Welcome.md"}), Use("Read", {}), Say("Ok.")]
    opened = await engine.say("look")
    await engine.run(opened)
    assert [(each.tool, each.outcome) for each in audited] == [("Read", "allowed"), ("Read", "denied")]
    assert {(each.session_id, each.turn_id, each.who, each.workspace_id) for each in audited} == {
        (opened.session_id, opened.turn_id, f"user:{ada.pk}", workspace.pk)
    }

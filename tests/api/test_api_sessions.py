"""Reading: the list of sessions, one session whole, and what runs."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from agents_app.runtimes.scripted import Pause, Say, ScriptedRuntime, Use
from sessions_app.models import EventType, Session, SessionEvent, Turn
from sessions_app.streaming.log import record
from sessions_app.threads import in_thread
from tests.api.web import Web

pytestmark = pytest.mark.django_db(transaction=True)

SESSION = {
    "id",
    "title",
    "titleSource",
    "summary",
    "module",
    "source",
    "workspace",
    "agentSlug",
    "agentType",
    "kind",
    "model",
    "status",
    "activity",
    "trustLevel",
    "workingDirectory",
    "vaultRoot",
    "messageCount",
    "archived",
    "createdAt",
    "lastAccessed",
    "continuedFrom",
    "parentSessionId",
    "linkedBot",
    "tags",
    "costUsd",
    "metadata",
    "visibility",
    "author",
}
WHOLE = SESSION | {
    "messages",
    "replayFrom",
    "lastSeq",
    "pendingTurns",
    "children",
    "pendingPermissions",
    "pendingQuestions",
    "curatorLastRun",
}


def ids(answer: Any) -> list[str]:
    return [each["id"] for each in answer.json["sessions"]]


async def several(web: Web, count: int) -> list[str]:
    """Newest first."""
    return [(await web.say(f"chat {n}"))["sessionId"] for n in range(count)][::-1]


async def test_a_session_has_the_keys_of_the_contract(ada_calls: Web) -> None:
    await ada_calls.say("  \n When are the quinces ripe?\nAnd the medlars?")
    answer = await ada_calls.get("/api/chat")
    (session,) = answer.json["sessions"]
    assert session.keys() == SESSION
    assert (session["title"], session["titleSource"]) == ("When are the quinces ripe?", "default")
    assert (session["workspace"], session["agentSlug"], session["kind"]) == ("default", "default", "worker")
    assert (session["status"], session["activity"], session["trustLevel"]) == ("pending", "active", "vault")
    assert session["metadata"]["permissions"].keys() == {"read", "write", "bash", "trustMode"}
    assert datetime.fromisoformat(session["createdAt"]).tzinfo == UTC


async def test_the_list_is_newest_access_first(ada_calls: Web) -> None:
    first, second = (await several(ada_calls, 2))[::-1]
    assert ids(await ada_calls.get("/api/chat")) == [second, first]
    await ada_calls.say("again", sessionId=first)
    assert ids(await ada_calls.get("/api/chat")) == [first, second]


async def test_a_cursor_goes_on_where_it_was_though_rows_are_added(ada_calls: Web) -> None:
    all_of_them = await several(ada_calls, 5)
    page = await ada_calls.get("/api/chat?limit=2")
    seen = ids(page)
    while cursor := page.json["nextCursor"]:
        await ada_calls.say("a new one, meanwhile")
        page = await ada_calls.get(f"/api/chat?limit=2&cursor={cursor}")
        seen += ids(page)
    assert seen == all_of_them


async def test_a_cursor_tells_rows_of_one_moment_apart(ada_calls: Web) -> None:
    all_of_them = await several(ada_calls, 4)
    await Session.objects.aupdate(last_accessed=datetime.now(UTC))
    page = await ada_calls.get("/api/chat?limit=3")
    rest = await ada_calls.get(f"/api/chat?limit=3&cursor={page.json['nextCursor']}")
    assert sorted(ids(page) + ids(rest)) == sorted(all_of_them)


async def test_pages_by_offset_join_to_the_whole(ada_calls: Web) -> None:
    all_of_them = await several(ada_calls, 3)
    pages = [await ada_calls.get(f"/api/chat?limit=1&offset={n}") for n in range(4)]
    assert [found for page in pages for found in ids(page)] == all_of_them
    assert {page.json["total"] for page in pages} == {3}


@pytest.mark.parametrize(
    ("field", "column", "value"),
    [
        ("module", "module", "daily"),
        ("agent", "agent_slug", "gardener"),
        ("agentType", "agent_type", "helper"),
        ("source", "source", "telegram"),
        ("status", "status", "complete"),
        ("search", "title", "Medlars"),
        ("search", "summary", "about medlars"),
        ("archived", "archived", "true"),
    ],
)
async def test_a_filter_finds_what_fits(field: str, column: str, value: str, ada_calls: Web) -> None:
    _, wanted = await several(ada_calls, 2)
    await Session.objects.filter(pk=wanted).aupdate(**{column: value == "true" or value})
    asked = "medlars" if field == "search" else value
    assert ids(await ada_calls.get(f"/api/chat?{field}={asked}")) == [wanted]


async def test_the_archive_is_not_listed_but_where_it_is_asked_for(ada_calls: Web) -> None:
    live, archived = await several(ada_calls, 2)
    await Session.objects.filter(pk=archived).aupdate(archived=True)
    assert ids(await ada_calls.get("/api/chat")) == [live]
    assert ids(await ada_calls.get("/api/chat?archived=any")) == [live, archived]


async def test_children_are_listed_with_their_parent_only(ada_calls: Web) -> None:
    child, parent = await several(ada_calls, 2)
    await Session.objects.filter(pk=child).aupdate(parent=parent)
    assert ids(await ada_calls.get("/api/chat")) == [parent]
    assert ids(await ada_calls.get(f"/api/chat?parent={parent}")) == [child]
    whole = (await ada_calls.get(f"/api/chat/{parent}")).json
    assert [each["id"] for each in whole["children"]] == [child]
    assert whole["children"][0]["parentSessionId"] == parent


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=x",
        "limit=%D9%A1",
        "offset=-1",
        "offset=99999999999999999999",
        "archived=maybe",
        "parent=17",
        "cursor=nonsense",
        "cursor=%C3%A9",
        "cursor=MDAwMS0wMS0wMSAwMDAwMDAwMC0wMDAwLTAwMDAtMDAwMC0wMDAwMDAwMDAwMDA=",
        "search=%00",
        "module=%00",
    ],
)
async def test_a_query_that_cannot_be_meant_is_422_and_names_its_field(query: str, ada_calls: Web) -> None:
    answer = await ada_calls.get(f"/api/chat?{query}")
    assert answer.refused == (422, "invalid")
    assert answer.fields == [query.partition("=")[0]]


async def test_a_page_costs_the_same_however_long_it_is(ada_calls: Web, queries: Any) -> None:
    await several(ada_calls, 2)
    with queries() as few:
        await ada_calls.get("/api/chat")
    asked_for_few = len(few)
    await several(ada_calls, 10)
    with queries() as many:
        assert len(ids(await ada_calls.get("/api/chat"))) == 12
    assert len(many) == asked_for_few <= 4, many


async def test_a_session_that_is_over_is_told_whole(ada_calls: Web, worker: ScriptedRuntime) -> None:
    worker.scripts["x"] = [Use("Read", {"file_path": "Welcome.md"}), Say("Read it.")]
    done = await ada_calls.post("/api/chat", {"message": "x"}, {"accept": "application/json"})
    whole = (await ada_calls.get(f"/api/chat/{done.json['sessionId']}")).json
    assert whole.keys() == WHOLE
    assert whole["messages"][0]["content"] == [{"type": "text", "text": "x"}]
    assert whole["messages"][-1]["content"] == [{"type": "text", "text": "Read it."}]
    assert {said["turnId"] for said in whole["messages"]} == {done.json["turnId"]}
    assert all(
        said.keys() >= {"id", "role", "content", "timestamp", "turnId", "parentToolUseId"}
        for said in whole["messages"]
    )
    assert (whole["pendingTurns"], whole["replayFrom"]) == ([], whole["lastSeq"])
    assert (whole["activity"], whole["status"]) == ("quiescent", "running")


async def test_messages_and_what_follows_are_all_of_it(ada_calls: Web, worker: ScriptedRuntime) -> None:
    """The rule of readers: follow after `replayFrom`, drop rows of turns that are in `messages`."""
    here = Pause(asyncio.Event(), asyncio.Event())
    worker.scripts["second"] = [Say("Half"), here, Say("Whole")]
    first = (await ada_calls.post("/api/chat", {"message": "first"}, {"accept": "application/json"})).json
    session = first["sessionId"]
    second = await ada_calls.say("second", sessionId=session)
    await here.reached.wait()
    third = await ada_calls.say("third", sessionId=session)
    stopped = await ada_calls.say("never", sessionId=session)
    await ada_calls.post(f"/api/chat/{session}/abort", {"turnId": stopped["turnId"]})
    whole = (await ada_calls.get(f"/api/chat/{session}")).json
    assert [t["turnId"] for t in whole["pendingTurns"]] == [second["turnId"], third["turnId"]]
    assert [(t["message"], t["status"]) for t in whole["pendingTurns"]] == [
        ("second", "running"),
        ("third", "queued"),
    ]
    here.go_on.set()
    over = {said["turnId"] for said in whole["messages"]}
    assert over == {first["turnId"], stopped["turnId"]}
    followed = [
        event
        for event in await events_until(ada_calls, session, whole["replayFrom"], third["turnId"])
        if event["turnId"] not in over
    ]
    rows = [
        e async for e in SessionEvent.objects.filter(session_id=session).exclude(turn_id=None).order_by("seq")
    ]
    heard = [event["seq"] for event in followed if event["seq"] and event["turnId"]]
    assert heard == [row.seq for row in rows if str(row.turn_id) not in over]


async def events_until(web: Web, session: str, after: int, turn: str) -> list[dict[str, Any]]:
    heard: list[dict[str, Any]] = []
    async with web.streaming("GET", f"/api/chat/{session}/events?after={after}") as stream:
        while not heard or (heard[-1]["type"], heard[-1]["turnId"]) != ("done", turn):
            heard.append((await stream.next()).data)
    return heard


async def test_what_nobody_may_know_of_looks_like_what_is_not_there(ada_calls: Web, cy_calls: Web) -> None:
    foreign = (await ada_calls.say("x"))["sessionId"]
    paths = [f"/api/chat/{each}" for each in (foreign, uuid4(), "not-a-uuid", "17")]
    for end in ("", "/streaming-status", "/events"):
        answers = [await cy_calls.get(path + end) for path in paths]
        assert {(answer.status, answer.body) for answer in answers} == {(404, answers[0].body)}


async def test_what_runs_is_told_while_it_runs(ada_calls: Web, worker: ScriptedRuntime) -> None:
    reading = Pause(asyncio.Event(), asyncio.Event())
    worker.scripts["x"] = [reading]
    said = await ada_calls.say("x")
    await reading.reached.wait()
    await ada_calls.say("next", sessionId=said["sessionId"])
    streams = (await ada_calls.get("/api/chat/active-streams")).json
    assert streams["count"] == 1
    assert streams["streams"][0].keys() == {"sessionId", "turnId", "startedAt"}
    assert streams["streams"][0]["turnId"] == said["turnId"]
    status = (await ada_calls.get(f"/api/chat/{said['sessionId']}/streaming-status")).json
    nothing = {"currentTool": None, "currentToolSummary": None}
    assert status == {"isStreaming": True, "turnId": said["turnId"], "queued": 1, **nothing}
    reading.go_on.set()


async def test_the_tool_at_work_is_named(ada_calls: Web) -> None:
    said = await ada_calls.say("x")
    now = datetime.now(UTC)
    running = {"status": "running", "leased_at": now, "started_at": now, "boot": uuid4()}
    await Turn.objects.filter(pk=said["turnId"]).aupdate(**running)
    command = "make " + "x" * 300
    for number, name in ((1, "Read"), (2, "Bash")):
        tool = {"id": f"t{number}", "name": name, "input": {"command": command}}
        await written(said, "tool_use", {"tool": tool})
    await written(said, "tool_result", {"toolUseId": "t1", "content": "", "isError": False})
    status = (await ada_calls.get(f"/api/chat/{said['sessionId']}/streaming-status")).json
    assert (status["currentTool"], status["currentToolSummary"]) == ("Bash", command[:120])


async def written(said: dict[str, Any], kind: str, payload: dict[str, Any]) -> None:
    await in_thread(record)(UUID(said["sessionId"]), EventType(kind), payload, turn_id=UUID(said["turnId"]))


async def test_nothing_runs_where_nothing_runs(ada_calls: Web) -> None:
    said = await ada_calls.say("x")
    await ada_calls.post(f"/api/chat/{said['sessionId']}/abort", {})
    status = (await ada_calls.get(f"/api/chat/{said['sessionId']}/streaming-status")).json
    assert (status["isStreaming"], status["turnId"], status["queued"]) == (False, None, 0)
    assert (await ada_calls.get("/api/chat/active-streams")).json == {"streams": [], "count": 0}


@pytest.mark.parametrize("body", [b"", b"{}", b'{"turnId": null}', b"null"])
async def test_abort_takes_the_first_that_waits(body: bytes, ada_calls: Web) -> None:
    said = await ada_calls.say("x")
    answer = await ada_calls.post(f"/api/chat/{said['sessionId']}/abort", body=body)
    assert (answer.status, answer.json["turnId"]) == (200, said["turnId"])


async def test_abort_where_nothing_runs_is_404(ada_calls: Web) -> None:
    said = await ada_calls.say("x")
    where = f"/api/chat/{said['sessionId']}/abort"
    assert (await ada_calls.post(where, {"turnId": str(uuid4())})).refused == (404, "not_found")
    assert (await ada_calls.post(where, {})).status == 200
    assert (await ada_calls.post(where, {})).refused == (404, "not_found")


async def test_abort_of_a_turn_of_another_session_is_404(ada_calls: Web) -> None:
    one, other = await ada_calls.say("x"), await ada_calls.say("y")
    answer = await ada_calls.post(f"/api/chat/{one['sessionId']}/abort", {"turnId": other["turnId"]})
    assert answer.refused == (404, "not_found")


@pytest.mark.parametrize("body", [b"{", b'{"turnId": "17"}', b'{"why": "because"}', b"[]"])
async def test_an_abort_that_cannot_be_meant_is_422(body: bytes, ada_calls: Web) -> None:
    said = await ada_calls.say("x")
    answer = await ada_calls.post(f"/api/chat/{said['sessionId']}/abort", body=body)
    assert answer.refused == (422, "invalid")


async def test_what_is_continued_must_be_seen(ada_calls: Web, cy_calls: Web) -> None:
    before = await ada_calls.say("x")
    after = await ada_calls.say("y", continuedFrom=before["sessionId"])
    assert (await ada_calls.get(f"/api/chat/{after['sessionId']}")).json["continuedFrom"] == before[
        "sessionId"
    ]
    answer = await cy_calls.post("/api/chat", {"message": "y", "continuedFrom": before["sessionId"]})
    assert answer.refused == (404, "not_found")


async def test_an_old_session_is_as_quick_to_page_past(ada_calls: Web) -> None:
    old, *_ = await several(ada_calls, 1)
    await Session.objects.filter(pk=old).aupdate(last_accessed=datetime.now(UTC) - timedelta(days=9_000))
    assert ids(await ada_calls.get("/api/chat")) == [old]

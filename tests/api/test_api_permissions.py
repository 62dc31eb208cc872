"""What agents ask, over HTTP and over the sockets."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from agents_app.runtimes.scripted import Pause, Say, ScriptedRuntime, Use
from permissions_app.children import ChildRequests
from permissions_app.grants import request_grant
from permissions_app.models import GrantRequest, ToolRequest
from sessions_app.access.caller import Caller
from sessions_app.access.models import KeyScope, Workspace
from sessions_app.models import Session
from sessions_app.threads import in_thread
from tests.api.web import PATIENCE, Headers, Web
from tests.asked import asks

pytestmark = pytest.mark.django_db(transaction=True)

ASKS = Use("mcp__weather__today", {"place": "Graz"})
FIELDS = {
    *("id", "sessionId", "turnId", "toolName", "toolUseId", "permissionType", "filePath", "input"),
    *("suggestedGrants", "agentName", "createdAt", "expiresAt", "status", "subject", "reason", "onHost"),
}


@pytest.fixture
async def session(ada_calls: Web) -> str:
    said = await ada_calls.say("hello")
    return str(said["sessionId"])


@pytest.fixture
async def request_(session: str) -> ToolRequest:
    return await in_thread(asks)(session)


@pytest.fixture
async def question(session: str) -> ToolRequest:
    return await in_thread(asks)(session, is_question=True)


async def test_what_is_allowed_over_http_runs(ada_calls: Web, worker: ScriptedRuntime) -> None:
    worker.scripts["weather"] = [ASKS, Say("It rains.")]
    async with ada_calls.streaming("POST", "/api/chat", b'{"message": "the weather"}') as stream:
        asked = (await stream.until("permission_request"))[-1].data
        answer = await ada_calls.post(f"/api/permissions/{asked['id']}/grant")
        frames = await stream.rest()
    assert (answer.status, answer.json) == (200, {"id": asked["id"], "decision": "granted"})
    assert asked.keys() - {"type", "seq", "ts"} == FIELDS
    rows = [frame.type for frame in frames if frame.id]  # the others are pieces of text
    assert rows == ["permission_resolved", "tool_result", "text", "done"]


async def test_why_it_is_denied_reaches_the_agent_and_whoever_follows(
    ada_calls: Web, worker: ScriptedRuntime
) -> None:
    worker.scripts["weather"] = [ASKS, Say("Then not.")]
    async with ada_calls.streaming("POST", "/api/chat", b'{"message": "the weather"}') as stream:
        asked = (await stream.until("permission_request"))[-1].data
        await ada_calls.post(f"/api/permissions/{asked['id']}/deny", {"reason": "Look out."})
        over = {frame.type: frame.data for frame in await stream.rest()}
    assert over["permission_resolved"]["reason"] == "Look out."
    assert "They said: Look out." in over["tool_result"]["content"]


async def test_it_is_listed_in_every_place_until_it_is_decided(
    ada_calls: Web, session: str, request_: ToolRequest, question: ToolRequest
) -> None:
    async def places() -> list[Any]:
        inbox = (await ada_calls.get("/api/permissions")).json["pending"]
        of_session = (await ada_calls.get(f"/api/chat/{session}/permissions")).json
        questions = (await ada_calls.get(f"/api/chat/{session}/pending-questions")).json["pending"]
        whole = (await ada_calls.get(f"/api/chat/{session}")).json
        assert of_session["permissions"].keys() == {"read", "write", "bash", "trustMode"}
        return [
            [each["id"] for each in inbox],
            [each["id"] for each in of_session["pending"]],
            [each["requestId"] for each in questions],
            [each["id"] for each in whole["pendingPermissions"]],
            [each["requestId"] for each in whole["pendingQuestions"]],
            whole["activity"],
        ]

    one, other = str(request_.pk), str(question.pk)
    assert await places() == [[one], [one], [other], [one], [other], "waiting"]
    assert (await ada_calls.post(f"/api/chat/{session}/permissions/deny", {"requestId": one})).status == 200
    answers = {"requestId": other, "answers": {"Which?": "the small ones"}}
    answer = await ada_calls.post(f"/api/chat/{session}/answer", answers)
    assert answer.json == {"requestId": other, "answers": {"Which?": "the small ones"}}
    assert await places() == [[], [], [], [], [], "active"]


TOO_MUCH: list[Any] = [
    {"Which?": ["a" * 9_000] * 1_500},
    {"Which?": ["a"] * 51},
    {"Which?": ["a" * 9_000] * 12},
    {"Which?": "a" * 10_001},
    {"Which?": ["a", "a" * 10_001]},
    {str(number): "a" for number in range(21)},
    {"q" * 10_001: "a"},
]
NO_ANSWERS: list[Any] = [
    None,
    [],
    "a",
    {"Which?": 1},
    {"Which?": [["a"]]},
    {"Which?": {"a": "b"}},
    {"Which?": "\0"},
    {"Which?": ["\ud800"]},
    {"\0": "a"},
]


@pytest.mark.parametrize("answers", [*TOO_MUCH, *NO_ANSWERS], ids=lambda given: str(given)[:24])
async def test_what_is_no_answer_or_too_much_of_one_is_refused_by_the_name_of_its_field(
    ada_calls: Web, session: str, question: ToolRequest, answers: Any
) -> None:
    order = {"requestId": str(question.pk), "answers": answers}
    refused = await ada_calls.post(f"/api/chat/{session}/answer", order)
    assert (refused.refused, refused.fields) == ((422, "invalid"), ["answers"])
    async with ada_calls.socket() as socket:
        await socket.send({"type": "answer", **order})
        error = (await socket.next())["error"]
    assert (error["code"], [each["field"] for each in error["details"]["fields"]]) == ("invalid", ["answers"])
    assert (await in_thread(ToolRequest.objects.get)(pk=question.pk)).answers == {}


@pytest.mark.parametrize("answer", ["", "ö" * 10_000, [], ["small"], ["label"] * 50])
async def test_an_honest_answer_is_taken(
    ada_calls: Web, session: str, question: ToolRequest, answer: Any
) -> None:
    order = {"requestId": str(question.pk), "answers": {"Which?": answer}}
    taken = await ada_calls.post(f"/api/chat/{session}/answer", order)
    assert (taken.status, taken.json["answers"]) == (200, {"Which?": answer})


@pytest.mark.parametrize(
    ("act", "order"), [("grant", {"pattern": "x" * 501}), ("deny", {"reason": "x" * 2_001})]
)
async def test_what_is_too_long_is_told_in_characters(
    ada_calls: Web, request_: ToolRequest, act: str, order: dict[str, str]
) -> None:
    refused = await ada_calls.post(f"/api/permissions/{request_.pk}/{act}", order)
    assert (refused.refused, refused.fields) == ((422, "invalid"), list(order))
    assert "characters" in refused.json["error"]["details"]["fields"][0]["message"]


async def test_a_request_of_a_child_shows_at_its_parent_too(
    ada_calls: Web, session: str, request_: ToolRequest
) -> None:
    parent = (await ada_calls.say("I start others"))["sessionId"]
    await Session.objects.filter(pk=session).aupdate(parent=parent)
    whole = (await ada_calls.get(f"/api/chat/{parent}")).json
    assert [each["sessionId"] for each in whole["pendingPermissions"]] == [session]


ASKED, OVER = ("permission_request", "user_question"), ("permission_resolved", "question_answered")


def _end_of(request: ToolRequest, told: dict[str, Any], session: str, parent: str) -> bool:
    """As of one whose turn was stopped."""
    assert told["type"] == OVER[request.is_question]
    assert (told["requestId"], told["seq"]) == (str(request.pk), None)
    assert (told["sessionId"], told["turnId"]) == (session, str(request.turn_id))
    assert told["parentSessionId"] == parent
    if request.is_question:
        return (told["answers"], told["timedOut"], told["givenUp"]) == ({}, True, True)
    return (told["decision"], told["canStillBeAllowed"]) == ("expired", False)


class TestAChild:
    @pytest.fixture
    async def parent(self, ada_calls: Web, session: str) -> str:
        parent = str((await ada_calls.say("I start others"))["sessionId"])
        await Session.objects.filter(pk=session).aupdate(parent=parent)
        return parent

    async def test_its_request_and_its_end_come_in_the_stream_of_its_parent(
        self, ada_calls: Web, session: str, parent: str
    ) -> None:
        async with ada_calls.streaming("GET", f"/api/chat/{parent}/events?after=2") as stream:
            request = await in_thread(asks)(session)
            asked = await stream.next()
            assert (asked.type, asked.id, asked.data["id"]) == ("permission_request", "", str(request.pk))
            assert (asked.data["sessionId"], asked.data["parentSessionId"]) == (session, parent)
            await ada_calls.post(f"/api/permissions/{request.pk}/deny")
            over = await stream.next()
            assert (over.type, over.id, over.data["decision"]) == ("permission_resolved", "", "denied")
            assert over.data["requestId"] == str(request.pk)

    async def test_whoever_joins_is_told_what_is_pending_after_the_rows_and_once(
        self, ada_calls: Web, session: str, parent: str, question: ToolRequest
    ) -> None:
        async with ada_calls.socket() as socket:
            await socket.send({"type": "follow", "sessionId": parent, "after": 0})
            told = await socket.until("user_question")
            assert [each["seq"] for each in told] == [1, 2, None]
            other = await in_thread(asks)(session)
            assert (await socket.next())["id"] == str(other.pk)

    async def test_a_ring_that_was_lost_is_made_good_in_the_next_silence(
        self, ada_calls: Web, session: str, parent: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sessions_app.streaming.stream.KEEP_ALIVE", 0.05)
        async with ada_calls.streaming("GET", f"/api/chat/{parent}/events?after=2") as stream:
            with monkeypatch.context() as deaf:
                deaf.setattr("permissions_app.services.telling.bus.ring", lambda *given: None)
                request = await in_thread(asks)(session)
                assert (await stream.until("permission_request"))[-1].data["id"] == str(request.pk)
                await ada_calls.post(f"/api/permissions/{request.pk}/grant")
                over = (await stream.until("permission_resolved"))[-1].data
        assert (over["requestId"], over["decision"]) == (str(request.pk), "granted")

    @pytest.mark.parametrize("is_question", [False, True])
    async def test_where_it_is_deleted_its_parent_hears_the_end_of_what_it_asked(
        self,
        ada_calls: Web,
        session: str,
        parent: str,
        is_question: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("sessions_app.streaming.stream.KEEP_ALIVE", 3_600)
        async with ada_calls.streaming("GET", f"/api/chat/{parent}/events?after=2") as stream:
            request = await in_thread(asks)(session, is_question=is_question)
            await stream.next()
            assert (await ada_calls.delete(f"/api/chat/{session}")).status == 204
            over = await stream.next()
        assert _end_of(request, over.data, session, parent)

    @pytest.mark.parametrize("is_question", [False, True])
    async def test_where_it_is_deleted_and_the_ring_is_lost_its_parent_hears_it_in_the_next_silence(
        self,
        ada_calls: Web,
        session: str,
        parent: str,
        is_question: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("sessions_app.streaming.stream.KEEP_ALIVE", 0.05)
        before = await in_thread(asks)(session, is_question=is_question)
        async with ada_calls.streaming("GET", f"/api/chat/{parent}/events?after=2") as stream:
            await stream.until(ASKED[is_question])
            rung = await in_thread(asks)(session, is_question=is_question)
            await stream.until(ASKED[is_question])
            with monkeypatch.context() as deaf:
                deaf.setattr("permissions_app.services.telling.bus.ring", lambda *given: None)
                await ada_calls.delete(f"/api/chat/{session}")
            async with asyncio.timeout(PATIENCE):
                for request in (before, rung):
                    over = (await stream.until(OVER[is_question]))[-1]
                    assert _end_of(request, over.data, session, parent)

    async def test_a_large_one_is_read_from_the_rows(self, ada_calls: Web, session: str, parent: str) -> None:
        async with ada_calls.streaming("GET", f"/api/chat/{parent}/events?after=2") as stream:
            request = await in_thread(asks)(session, input={"text": "x" * 20_000})
            asked = await stream.next()
            assert (asked.data["id"], len(asked.data["input"]["text"])) == (str(request.pk), 20_000)

    async def test_a_child_in_another_workspace_is_none(
        self, ada_calls: Web, as_cy: Caller, session: str, parent: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sessions_app.streaming.stream.KEEP_ALIVE", 0.05)
        elsewhere = await Workspace.objects.aget(slug="elsewhere")
        await Session.objects.filter(pk=session).aupdate(workspace=elsewhere)
        async with ada_calls.streaming("GET", f"/api/chat/{parent}/events?after=2") as stream:
            await in_thread(asks)(session)
            assert [(await stream.next()).type for _ in range(2)] == [""] * 2

    async def test_its_readers_read_once_and_not_for_each_ring(
        self, ada_calls: Web, session: str, parent: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        reads, read = list[ChildRequests](), ChildRequests.read

        def counted(self: ChildRequests) -> Any:
            reads.append(self)
            return read(self)

        monkeypatch.setattr(ChildRequests, "read", counted)
        async with ada_calls.streaming("GET", f"/api/chat/{parent}/events?after=2") as stream:
            for _ in range(3):
                request = await in_thread(asks)(session)
                assert (await stream.next()).data["id"] == str(request.pk)
        assert len(reads) == 1


async def test_a_detail_takes_as_many_queries_however_many_are_asked(
    ada_calls: Web, session: str, request_: ToolRequest, queries: Any
) -> None:
    with queries() as asked:
        await ada_calls.get(f"/api/chat/{session}")
        few = len(asked)
    for _ in range(3):
        await in_thread(asks)(session)
    with queries() as asked:
        await ada_calls.get(f"/api/chat/{session}")
        assert len(asked) == few


async def test_who_comes_second_is_told_so(
    ada_calls: Web, ben_calls: Web, session: str, request_: ToolRequest
) -> None:
    await ada_calls.share(session)
    assert (await ada_calls.post(f"/api/permissions/{request_.pk}/deny", {"reason": "No."})).json == {
        "id": str(request_.pk),
        "decision": "denied",
    }
    for act in ("grant", "deny"):
        answer = await ben_calls.post(f"/api/permissions/{request_.pk}/{act}")
        assert answer.refused == (409, "already_decided")


async def test_after_a_stop_nobody_decides(
    ada_calls: Web, session: str, request_: ToolRequest, question: ToolRequest
) -> None:
    assert (await ada_calls.post(f"/api/chat/{session}/abort")).status == 200
    order = {"requestId": str(question.pk), "answers": {"Which?": "that"}}
    for path, given in (
        (f"/api/permissions/{request_.pk}/grant", {}),
        (f"/api/permissions/{request_.pk}/deny", {}),
        (f"/api/chat/{session}/answer", order),
    ):
        assert (await ada_calls.post(path, given)).refused == (409, "already_decided")


async def test_who_has_a_card_open_that_is_answered_in_that_moment_made_no_mistake(
    ada_calls: Web, ben_calls: Web, session: str, request_: ToolRequest
) -> None:
    await ada_calls.share(session)
    await ada_calls.post(f"/api/permissions/{request_.pk}/deny")
    for act in ("open", "close"):
        card = await ben_calls.post(f"/api/permissions/{request_.pk}/{act}")
        assert (card.status, card.json["status"]) == (200, "denied")


async def test_a_viewer_decides_nothing(
    ada_calls: Web, vi_calls: Web, session: str, request_: ToolRequest, question: ToolRequest
) -> None:
    await ada_calls.share(session)
    assert (await vi_calls.get("/api/permissions")).json == {"pending": []}
    assert (await vi_calls.get(f"/api/chat/{session}/permissions")).status == 200
    for path in (f"/api/permissions/{request_.pk}/{act}" for act in ("grant", "deny", "open", "close")):
        assert (await vi_calls.post(path)).refused == (403, "forbidden")
    answers = {"requestId": str(question.pk), "answers": {}}
    assert (await vi_calls.post(f"/api/chat/{session}/answer", answers)).refused == (403, "forbidden")


async def test_a_key_that_may_only_read_decides_nothing(
    ada: Any, key: Callable[..., Headers], request_: ToolRequest
) -> None:
    reader = Web(await in_thread(key)(ada, scopes=[KeyScope.READ]))
    assert len((await reader.get("/api/permissions")).json["pending"]) == 1
    assert (await reader.post(f"/api/permissions/{request_.pk}/grant")).refused == (403, "forbidden")


async def test_in_another_session_it_is_not_found(ada_calls: Web, request_: ToolRequest) -> None:
    other = (await ada_calls.say("another"))["sessionId"]
    order = {"requestId": str(request_.pk)}
    answer = await ada_calls.post(f"/api/chat/{other}/permissions/grant", order)
    assert answer.refused == (404, "not_found")


async def test_an_open_card_has_more_time(ada_calls: Web, request_: ToolRequest) -> None:
    before = request_.expires_at.isoformat().replace("+00:00", "Z")
    answer = await ada_calls.post(f"/api/permissions/{request_.pk}/open")
    assert answer.json["status"] == "pending"
    assert answer.json["expiresAt"] > before
    closed = await ada_calls.post(f"/api/permissions/{request_.pk}/close")
    assert closed.json["expiresAt"] < answer.json["expiresAt"]


async def test_a_pattern_that_was_granted_is_listed_and_can_be_taken_away(
    ada_calls: Web, session: str, vault: Any
) -> None:
    folder = {"file_path": "Plans/May.md", "content": "x"}
    asked = await in_thread(asks)(
        session, tool_name="Write", permission_type="write", input=folder, directory=str(vault)
    )
    order = {"requestId": str(asked.pk), "pattern": "Plans/*"}
    assert (await ada_calls.post(f"/api/chat/{session}/permissions/grant", order)).status == 200
    held = (await ada_calls.get(f"/api/chat/{session}/permissions")).json["permissions"]
    assert "Plans/*" in held["write"]
    less = {"metadata": {"permissions": {"write": ["Chat/artifacts/*"]}}}
    await ada_calls.patch(f"/api/chat/{session}", less)
    held = (await ada_calls.get(f"/api/chat/{session}/permissions")).json["permissions"]
    assert held["write"] == ["Chat/artifacts/*"]


async def test_a_preview_says_what_a_pattern_would_have_covered(
    ada_calls: Web, worker: ScriptedRuntime, vault: Any
) -> None:
    paths = [str(vault / name) for name in ("Plans/May.md", "Garden/May.md")]
    worker.scripts["write"] = [Use("Write", {"file_path": path, "content": "x"}) for path in paths]
    said = await ada_calls.post("/api/chat", {"message": "write"}, {"accept": "application/json"})
    here = Pause(asyncio.Event(), asyncio.Event())
    worker.scripts["again"] = [here]
    await ada_calls.say("again", sessionId=said.json["sessionId"])
    await here.reached.wait()
    asked = await in_thread(asks)(
        said.json["sessionId"], tool_name="Write", permission_type="write", directory=str(vault)
    )
    shown = await ada_calls.get(f"/api/permissions/{asked.pk}/preview?pattern=Plans/*")
    assert (len(shown.json["covered"]), len(shown.json["notCovered"])) == (1, 1)
    assert (await ada_calls.get(f"/api/permissions/{asked.pk}/preview")).refused == (422, "invalid")
    here.go_on.set()


async def test_a_preview_with_the_whole_computer_says_what_stays_denied(
    ada_calls: Web, worker: ScriptedRuntime, vault: Any, settings: Any
) -> None:
    settings.PARACHUTE_PERMISSION_TIMEOUT = 0  # nobody answers what these calls ask
    worker.scripts["run"] = [Use("Bash", {"command": each}) for each in ("git status", "ls", "sudo ls")]
    asking = Pause(asyncio.Event(), asyncio.Event())
    worker.scripts["run"].append(asking)
    session = (await ada_calls.say("run", trustLevel="full"))["sessionId"]
    await asking.reached.wait()
    asked = await in_thread(asks)(
        session, tool_name="Bash", permission_type="bash", directory=str(vault), on_host=True
    )
    shown = await ada_calls.get(f"/api/permissions/{asked.pk}/preview?pattern=git status")
    assert shown.json == {"covered": ["git status"], "notCovered": ["ls"], "denyListed": ["sudo ls"]}
    asking.go_on.set()


async def test_a_preview_of_a_host_looks_at_what_was_fetched(
    ada_calls: Web, worker: ScriptedRuntime, vault: Any, settings: Any
) -> None:
    settings.PARACHUTE_PERMISSION_TIMEOUT = 0  # nobody answers what the second one asks
    pages = ["https://pears.example/a", "https://plums.example/b"]
    asking = Pause(asyncio.Event(), asyncio.Event())
    worker.scripts["read"] = [*(Use("WebFetch", {"url": url, "prompt": "?"}) for url in pages), asking]
    session = (await ada_calls.say("read"))["sessionId"]
    await asking.reached.wait()
    asked = await in_thread(asks)(session, tool_name="Reach", permission_type="read", directory=str(vault))
    shown = await ada_calls.get(f"/api/permissions/{asked.pk}/preview?pattern=https://pears.example/")
    assert shown.json == {"covered": pages[:1], "notCovered": pages[1:], "denyListed": []}
    asking.go_on.set()


def _wants_another_agent(session_id: str) -> GrantRequest:
    return request_grant(Session.objects.select_related("workspace").get(pk=session_id), "writer")


class TestTheInbox:
    async def test_it_says_what_is_pending_and_then_what_comes_and_goes(
        self, ada_calls: Web, session: str, request_: ToolRequest
    ) -> None:
        async with ada_calls.streaming("GET", "/api/permissions/stream") as stream:
            first = await stream.next()
            assert (first.type, first.data["id"], first.id) == ("permission_request", str(request_.pk), "")
            other = await in_thread(asks)(session, is_question=True)
            asked = await stream.next()
            assert (asked.type, asked.data["requestId"]) == ("user_question", str(other.pk))
            await ada_calls.post(f"/api/permissions/{request_.pk}/deny")
            gone = (await stream.until("permission_resolved"))[-1].data
            assert (gone["requestId"], gone["decision"]) == (str(request_.pk), "denied")

    async def test_what_was_asked_goes_with_its_session(
        self, ada_calls: Web, session: str, request_: ToolRequest, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("permissions_app.inbox.KEEP_ALIVE", 3_600)
        wanted = await in_thread(_wants_another_agent)(session)
        async with ada_calls.streaming("GET", "/api/permissions/stream") as stream:
            await stream.until("grant_request")
            assert (await ada_calls.delete(f"/api/chat/{session}")).status == 204
            over = [await stream.next(), await stream.next()]
        ends = [(each.type, each.data["requestId"]) for each in over]
        assert ends == [("permission_resolved", str(request_.pk)), ("grant_resolved", str(wanted.pk))]

    async def test_what_waits_after_its_turn_goes_with_its_session_too(
        self, ada_calls: Web, session: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("permissions_app.inbox.KEEP_ALIVE", 3_600)
        await in_thread(_wants_another_agent)(session)
        async with ada_calls.streaming("GET", "/api/permissions/stream") as stream:
            await stream.until("grant_request")
            await ada_calls.delete(f"/api/chat/{session}")
            assert (await stream.next()).type == "grant_resolved"

    async def test_an_outsider_hears_nothing_of_it(
        self, ada_calls: Web, cy_calls: Web, request_: ToolRequest, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("permissions_app.inbox.KEEP_ALIVE", 0.05)
        async with cy_calls.streaming("GET", "/api/permissions/stream") as stream:
            await ada_calls.post(f"/api/permissions/{request_.pk}/deny")
            assert (await stream.next()).comment == ": keep-alive"

    async def test_nobody_gets_none(self, nobody: Web) -> None:
        assert (await nobody.get("/api/permissions/stream")).refused == (401, "unauthenticated")

    async def test_a_socket_follows_it_too_and_decides(
        self, ada_calls: Web, session: str, request_: ToolRequest, question: ToolRequest
    ) -> None:
        async with ada_calls.socket() as socket:
            await socket.send({"type": "follow", "inbox": True})
            heard = await socket.until("user_question")
            assert [each["type"] for each in heard] == ["permission_request", "user_question"]
            await socket.send({"type": "grant", "requestId": str(request_.pk)})
            assert (await socket.next())["decision"] == "granted"
            order = {"type": "answer", "requestId": str(question.pk), "answers": {"Which?": "this"}}
            await socket.send(order)
            assert (await socket.next())["answers"] == {"Which?": "this"}
            await socket.send({"type": "deny", "requestId": str(request_.pk)})
            assert (await socket.next())["error"]["code"] == "already_decided"
            await socket.send({"type": "follow", "inbox": "yes"})
            assert (await socket.next())["error"]["code"] == "invalid"

    async def test_over_the_socket_an_outsider_decides_nothing(
        self, cy_calls: Web, request_: ToolRequest, question: ToolRequest
    ) -> None:
        async with cy_calls.socket() as socket:
            for order in (
                {"type": "grant", "requestId": str(request_.pk)},
                {"type": "deny", "requestId": str(request_.pk)},
                {"type": "answer", "requestId": str(question.pk), "answers": {}},
            ):
                await socket.send(order)
                assert (await socket.next())["error"]["code"] == "not_found"

    async def test_an_inbox_of_any_length_takes_a_query_for_each_kind(
        self, ada_calls: Web, session: str, queries: Any, request_: ToolRequest
    ) -> None:
        for _ in range(3):
            await in_thread(asks)(session)
        with queries() as asked:
            async with ada_calls.streaming("GET", "/api/permissions/stream") as stream:
                await stream.next()
        for table in ("toolrequest", "grantrequest"):
            assert len([sql for sql in asked if table in sql]) == 1

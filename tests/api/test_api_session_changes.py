"""What people change about a session: its title, its model, what it may do, the archive, and its end."""

import asyncio
import logging
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import override_settings

from agents_app.runtimes.scripted import Pause, Say, ScriptedRuntime, Use
from permissions_app.audit import Entry
from sessions_app.access.models import Workspace
from sessions_app.errors import NotFound
from sessions_app.models import EventType, Message, Receipt, Session, SessionEvent, Turn
from sessions_app.streaming.stream import follow
from tests.api.web import Answer, Web

pytestmark = pytest.mark.django_db(transaction=True)

JSON = {"accept": "application/json"}


@pytest.fixture(autouse=True)
def several_models(settings: Any) -> None:
    settings.PARACHUTE_MODELS = ("sonnet", "opus")


async def new(web: Web, text: str = "When are the quinces ripe?") -> str:
    return str((await web.say(text))["sessionId"])


async def updates(session_id: str) -> list[dict[str, Any]]:
    rows = SessionEvent.objects.filter(session_id=session_id, type=EventType.SESSION_UPDATED).order_by("seq")
    return [payload async for payload in rows.values_list("payload", flat=True)]


class TestChanging:
    async def test_a_title_is_a_persons_from_then_on(self, ada_calls: Web) -> None:
        session = await new(ada_calls)
        answer = await ada_calls.patch(f"/api/chat/{session}", {"title": "  Quinces "})
        assert (answer.status, answer.json["title"], answer.json["titleSource"]) == (200, "Quinces", "user")
        assert answer.json == (await ada_calls.get("/api/chat")).json["sessions"][0]
        assert await updates(session) == [{"title": "Quinces", "titleSource": "user"}]

    async def test_a_summary_is_a_persons_once_it_is_another(self, ada_calls: Web) -> None:
        session = await new(ada_calls)
        path = f"/api/chat/{session}"
        claimed = {
            "summary": "",
            "metadata": {"summary_source": "user"},
        }  # as a client sends back what it read
        for order, source in ((claimed, None), ({"summary": "S"}, "user"), (claimed, "user")):
            shown = (await ada_calls.patch(path, order)).json
            assert (shown["summary"], shown["metadata"].get("summary_source")) == (order["summary"], source)

    async def test_all_that_changes_is_one_row(self, ada_calls: Web) -> None:
        session = await new(ada_calls)
        wanted = {"title": "T", "summary": "S", "model": "opus", "metadata": {"colour_of": {"lid": "red"}}}
        answer = await ada_calls.patch(f"/api/chat/{session}", wanted)
        (told,) = await updates(session)
        assert told.keys() == {*wanted, "titleSource"}
        assert {name: answer.json[name] for name in told} == told
        assert told["metadata"]["colour_of"] == {"lid": "red"}
        assert "permissions" in told["metadata"]

    async def test_where_nothing_changes_nothing_is_written(self, ada_calls: Web) -> None:
        session = await new(ada_calls)
        now = (await ada_calls.get(f"/api/chat/{session}")).json
        same = {name: now[name] for name in ("summary", "model", "trustLevel", "metadata")}
        for order in ({}, same, {"title": None, "model": None}):
            assert (await ada_calls.patch(f"/api/chat/{session}", order)).status == 200
        assert await updates(session) == []

    async def test_the_change_is_heard_by_who_follows(self, ada_calls: Web) -> None:
        session = await new(ada_calls)
        async with ada_calls.streaming("GET", f"/api/chat/{session}/events?after=1") as stream:
            await stream.until("user_message")
            await ada_calls.patch(f"/api/chat/{session}", {"title": "T"})
            assert (await stream.next()).data["title"] == "T"

    async def test_a_member_may_and_a_viewer_may_not(
        self, ada_calls: Web, ben_calls: Web, vi_calls: Web
    ) -> None:
        session = await new(ada_calls)
        await ada_calls.share(session)
        assert (await ben_calls.patch(f"/api/chat/{session}", {"title": "T"})).status == 200
        for ask in (
            vi_calls.patch(f"/api/chat/{session}", {"title": "V"}),
            vi_calls.post(f"/api/chat/{session}/archive"),
            vi_calls.delete(f"/api/chat/{session}"),
            vi_calls.delete(f"/api/chat/session/{session}"),
        ):
            assert (await ask).refused == (403, "forbidden")
        assert (await Session.objects.aget()).title == "T"

    @pytest.mark.parametrize(
        ("order", "field"),
        [
            ({"title": "   "}, "title"),
            ({"title": "x" * 201}, "title"),
            ({"title": "two\nlines"}, "title"),
            ({"title": "a\0b"}, "title"),
            ({"title": 17}, "title"),
            ({"summary": "x" * 10_001}, "summary"),
            ({"model": ""}, "model"),
            ({"trustLevel": "some"}, "trustLevel"),
            ({"status": "failed"}, "status"),
            ({"archived": True}, "archived"),
            ({"titleSource": "ai"}, "titleSource"),
            ({"metadata": []}, "metadata"),
            ({"metadata": {"x": "y" * 16_000}}, "metadata"),
            ({"metadata": {"x": ["\ud800"]}}, "metadata"),
            ({"metadata": {"permissions": {"trustMode": "no"}}}, "metadata.permissions.trustMode"),
            ({"metadata": {"permissions": {"sudo": True}}}, "metadata.permissions.sudo"),
            ([], "body"),
        ],
        ids=lambda value: str(value)[:40],
    )
    async def test_what_cannot_be_meant_is_refused_by_name(
        self, order: Any, field: str, ada_calls: Web
    ) -> None:
        session = await new(ada_calls)
        answer = await ada_calls.patch(f"/api/chat/{session}", order)
        assert answer.refused == (422, "invalid")
        assert answer.fields == [field]
        assert await updates(session) == []

    async def test_a_number_that_json_has_not_is_refused(self, ada_calls: Web) -> None:
        session = await new(ada_calls)
        answer = await ada_calls.ask("PATCH", f"/api/chat/{session}", b'{"metadata": {"x": NaN}}')
        assert answer.refused == (422, "invalid")

    async def test_a_title_of_200_characters_is_taken(self, ada_calls: Web) -> None:
        session = await new(ada_calls)
        answer = await ada_calls.patch(f"/api/chat/{session}", {"title": f" {'🍐' * 200} "})
        assert answer.json["title"] == "🍐" * 200

    async def test_a_model_that_is_not_allowed_changes_nothing(self, ada_calls: Web) -> None:
        session = await new(ada_calls)
        answer = await ada_calls.patch(f"/api/chat/{session}", {"title": "T", "model": "gpt"})
        assert answer.refused == (422, "model_not_allowed")
        assert await updates(session) == []

    async def test_a_model_counts_from_the_next_turn(self, ada_calls: Web, worker: ScriptedRuntime) -> None:
        here = Pause(asyncio.Event(), asyncio.Event())
        worker.scripts["quinces"] = [here]
        session = await new(ada_calls)
        await here.reached.wait()
        await ada_calls.patch(f"/api/chat/{session}", {"model": "opus"})
        here.go_on.set()
        await ada_calls.post("/api/chat", {"message": "and pears?", "sessionId": session}, JSON)
        assert [request.model for request in worker.requests] == ["sonnet", "opus"]

    @pytest.mark.database
    async def test_two_changes_at_once_both_hold(self, ada_calls: Web) -> None:
        session = await new(ada_calls)
        orders: list[dict[str, Any]] = [{"metadata": {f"key_{n}": n}} for n in range(8)]
        answers = await asyncio.gather(
            *(ada_calls.patch(f"/api/chat/{session}", order) for order in [*orders, {"title": "T"}])
        )
        assert {answer.status for answer in answers} == {200}
        after = (await ada_calls.get(f"/api/chat/{session}")).json
        assert (after["title"], *(after["metadata"][f"key_{n}"] for n in range(8))) == ("T", *range(8))
        assert len(await updates(session)) == 9


class TestTrust:
    async def test_it_is_taken_and_not_given_back(self, ada_calls: Web) -> None:
        session = (await ada_calls.say("x", trustLevel="full"))["sessionId"]
        less = await ada_calls.patch(f"/api/chat/{session}", {"trustLevel": "vault"})
        assert (less.status, less.json["trustLevel"]) == (200, "vault")
        more = await ada_calls.patch(f"/api/chat/{session}", {"trustLevel": "full", "title": "T"})
        assert more.refused == (422, "trust_too_high")
        assert await updates(session) == [{"trustLevel": "vault"}]

    async def test_nobody_takes_it_from_a_chat_of_somebody_else(self, ada_calls: Web, ben_calls: Web) -> None:
        """There is no way back. Its author, who is no operator for ever, may take it then too."""
        session = (await ada_calls.say("x", trustLevel="full"))["sessionId"]
        await ada_calls.share(session)
        less = {"trustLevel": "vault"}
        assert (await ben_calls.patch(f"/api/chat/{session}", less)).refused == (403, "forbidden")
        await User.objects.filter(username="ada").aupdate(is_staff=False)
        assert (await ada_calls.patch(f"/api/chat/{session}", less)).status == 200

    async def test_a_level_that_nothing_here_holds_is_refused(
        self, ada_calls: Web, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nobody could use it, and nobody could take it back."""
        monkeypatch.setattr("agents_app.sandboxes.walls.seems_to_work", lambda *_: False)
        session = await new(ada_calls)
        less = await ada_calls.patch(f"/api/chat/{session}", {"trustLevel": "sandboxed"})
        assert less.refused == (503, "sandbox_unavailable")

    @override_settings(PARACHUTE_ENGINE_ENVIRONMENT={"PATH": "/nowhere"})
    async def test_a_wall_that_never_works_here_is_refused(self, ada_calls: Web) -> None:
        session = await new(ada_calls)
        answer = await ada_calls.patch(f"/api/chat/{session}", {"trustLevel": "sandboxed"})
        assert answer.refused == (503, "sandbox_unavailable")

    async def test_the_floor_of_the_workspace_holds(self, ada_calls: Web) -> None:
        session = (await ada_calls.say("x", trustLevel="full"))["sessionId"]
        await Workspace.objects.aupdate(trust_floor="sandboxed")
        answer = await ada_calls.patch(f"/api/chat/{session}", {"trustLevel": "vault"})
        assert answer.refused == (422, "trust_too_high")


class TestMetadata:
    async def test_it_is_merged_and_null_takes_a_key_out(self, ada_calls: Web) -> None:
        session = await new(ada_calls)
        for given in ({"a": 1, "b_c": {"D_e": 1}}, {"b_c": None, "d": [None]}):
            answer = await ada_calls.patch(f"/api/chat/{session}", {"metadata": given})
        held = answer.json["metadata"]
        assert {name: held[name] for name in held.keys() - {"permissions"}} == {"a": 1, "d": [None]}

    async def test_what_the_server_keeps_there_is_left_alone(self, ada_calls: Web) -> None:
        session = await new(ada_calls)
        ours = {"permissions": {"read": ["a"]}, "curator_last_run": {"at": 1}}
        await Session.objects.aupdate(metadata=ours)
        given = {"curator_last_run": None, "curator_session_id": "mine", "permissions": None, "a": 1}
        answer = await ada_calls.patch(f"/api/chat/{session}", {"metadata": given})
        assert answer.json["metadata"] == {**ours, "a": 1}

    @pytest.mark.parametrize(
        ("held", "wanted", "kept"),
        [
            ({"trustMode": True}, {"trustMode": False}, {"trustMode": False}),
            ({"trustMode": True}, {"trust_mode": False}, {"trustMode": False}),
            ({"trustMode": False}, {"trustMode": True}, {"trustMode": False}),
            ({"write": ["a", "b"]}, {"write": ["b", "c"]}, {"write": ["b"]}),
            ({"write": ["a", "b"]}, {"write": []}, {"write": []}),
            ({"bash": True}, {"bash": ["ls"]}, {"bash": ["ls"]}),
            ({"bash": ["ls", "rm"]}, {"bash": ["ls", "dd"]}, {"bash": ["ls"]}),
            ({"bash": ["ls"]}, {"bash": True}, {"bash": ["ls"]}),
            ({"bash": ["ls"]}, {"bash": False}, {"bash": False}),
            ({"bash": False}, {"bash": ["ls"]}, {"bash": False}),
            ({"read": ["a"]}, {}, {"read": ["a"]}),
            ({"read": ["a"]}, {"bash": True}, {"read": ["a"]}),
        ],
        ids=str,
    )
    async def test_permissions_only_become_less(
        self, held: Any, wanted: Any, kept: Any, ada_calls: Web
    ) -> None:
        session = await new(ada_calls)
        await Session.objects.aupdate(metadata={"permissions": held})
        answer = await ada_calls.patch(f"/api/chat/{session}", {"metadata": {"permissions": wanted}})
        assert answer.json["metadata"]["permissions"] == kept

    async def test_what_was_taken_is_a_row_of_the_audit(
        self, ada_calls: Web, audited: list[Entry], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("agents_app.sandboxes.walls.seems_to_work", lambda *_: True)
        session = await new(ada_calls)
        held = {"write": ["a", "b"], "bash": ["ls"], "trustMode": False}
        await Session.objects.aupdate(metadata={"permissions": held})
        less = {"metadata": {"permissions": {"write": ["b"]}}, "trustLevel": "sandboxed"}
        for _ in range(2):  # the second time there is nothing to take
            await ada_calls.patch(f"/api/chat/{session}", less)
        rows = [each for each in audited if each.tool == "permissions"]
        assert [(each.outcome, dict(each.arguments)) for each in rows] == [
            ("revoked", {"write": ["a"], "trustLevel": "vault, now sandboxed"})
        ]

    @pytest.mark.parametrize("less", [{"trustMode": False}, {"write": []}, {"bash": ["git status"]}], ids=str)
    async def test_rights_are_taken_however_many_there_are(self, less: Any, ada_calls: Web) -> None:
        session = await new(ada_calls)
        held = {"read": [], "write": ["x" * 500] * 40, "bash": ["git status", "ls"], "trustMode": True}
        await Session.objects.aupdate(metadata={"permissions": held})
        answer = await ada_calls.patch(f"/api/chat/{session}", {"metadata": {"permissions": less}})
        assert (answer.status, answer.json["metadata"]["permissions"]) == (200, {**held, **less})


class TestArchive:
    async def test_in_and_out_and_each_once(self, ada_calls: Web) -> None:
        session = await new(ada_calls)
        for path, archived in (
            ("archive", True),
            ("archive", True),
            ("unarchive", False),
            ("unarchive", False),
        ):
            answer = await ada_calls.post(f"/api/chat/{session}/{path}")
            assert (answer.status, answer.json["archived"]) == (200, archived)
        assert await updates(session) == [{"archived": True}, {"archived": False}]

    async def test_a_message_takes_it_out_and_says_so(self, ada_calls: Web) -> None:
        session = await new(ada_calls)
        await ada_calls.post(f"/api/chat/{session}/archive")
        await ada_calls.say("again", sessionId=session)
        assert await updates(session) == [{"archived": True}, {"archived": False}]


class TestOlderPaths:
    async def test_they_are_other_names_of_the_same(self, ada_calls: Web) -> None:
        session = await new(ada_calls)
        for older, now in (("sessions", ""), (f"session/{session}", f"/{session}")):
            assert (await ada_calls.get(f"/api/chat/{older}")).json == (
                await ada_calls.get(f"/api/chat{now}")
            ).json
        for word, archived in (("archive", True), ("unarchive", False)):
            answer = await ada_calls.post(f"/api/chat/session/{session}/{word}")
            assert answer.json["archived"] is archived
        assert (await ada_calls.delete(f"/api/chat/session/{session}")).status == 204
        assert not await Session.objects.aexists()

    async def test_the_newest_that_one_began_is_archived(self, ada_calls: Web, ben_calls: Web) -> None:
        older, newer = await new(ada_calls), await new(ada_calls)
        bens = await new(ben_calls)
        await ben_calls.share(bens)
        archived = [(await ada_calls.delete("/api/chat/session")).json["id"] for _ in range(2)]
        assert archived == [newer, older]
        assert (await ada_calls.delete("/api/chat/session")).refused == (404, "not_found")
        assert [each["id"] for each in (await ada_calls.get("/api/chat")).json["sessions"]] == [bens]


class TestDeleting:
    async def test_nothing_of_it_is_left(self, ada_calls: Web) -> None:
        session = await new(ada_calls)
        answer = await ada_calls.delete(f"/api/chat/{session}")
        assert (answer.status, answer.body) == (204, b"")
        for model in (Session, Turn, Message, SessionEvent):
            assert not await model.objects.aexists()
        assert (await ada_calls.delete(f"/api/chat/{session}")).refused == (404, "not_found")

    async def test_a_key_that_said_something_to_it_is_told_that_it_is_gone(self, ada_calls: Web) -> None:
        key = {"idempotency-key": "k", "prefer": "respond-async"}
        session = await new(ada_calls)
        order = {"message": "x", "sessionId": session}
        await ada_calls.post("/api/chat", order, key)
        await ada_calls.delete(f"/api/chat/{session}")
        assert (await ada_calls.post("/api/chat", order, key)).refused == (404, "not_found")
        assert not await Receipt.objects.aexists()

    async def test_its_children_go_on_without_it(self, ada_calls: Web) -> None:
        parent, child, later = [await new(ada_calls) for _ in range(3)]
        await Session.objects.filter(pk=child).aupdate(parent=parent)
        await Session.objects.filter(pk=later).aupdate(continued_from=parent)
        assert (await ada_calls.delete(f"/api/chat/{parent}")).status == 204
        listed = (await ada_calls.get("/api/chat")).json["sessions"]
        assert {each["id"] for each in listed} == {child, later}
        assert all(each["parentSessionId"] is each["continuedFrom"] is None for each in listed)
        assert await updates(child) == [{"parentSessionId": None}]
        assert await updates(later) == [{"continuedFrom": None}]

    async def test_who_follows_is_told_and_the_stream_ends(
        self, ada_calls: Web, worker: ScriptedRuntime
    ) -> None:
        here = Pause(asyncio.Event(), asyncio.Event())
        worker.scripts["quinces"] = [Say("Half"), here]
        session = await new(ada_calls)
        other = await new(ada_calls, "other")
        await here.reached.wait()
        async with (
            ada_calls.streaming("GET", f"/api/chat/{session}/events") as stream,
            ada_calls.socket(f"/ws/chat/{session}") as alone,
            ada_calls.socket() as socket,
        ):
            await stream.until("text")
            await alone.until("text")
            for each in (session, other):
                await socket.send({"type": "follow", "sessionId": each})
                await socket.until("user_message")
            async with asyncio.timeout(5):
                assert (await ada_calls.delete(f"/api/chat/{session}")).status == 204
                await stream.rest()
                assert await alone.closed() == 4404
                refused = (await socket.until("refused"))[-1]
            assert (refused["sessionId"], refused["error"]["code"]) == (session, "not_found")
            await socket.send({"type": "message", "message": "still here?", "sessionId": other})
            assert (await socket.until("accepted"))[-1]["sessionId"] == other

    @pytest.mark.parametrize("headers", [JSON, {}], ids=["json", "sse"])
    async def test_who_waits_for_an_answer_is_told(
        self, headers: dict[str, str], ada_calls: Web, worker: ScriptedRuntime
    ) -> None:
        here = Pause(asyncio.Event(), asyncio.Event())
        worker.scripts["quinces"] = [here]
        asking = asyncio.create_task(ada_calls.post("/api/chat", {"message": "quinces"}, headers))
        await here.reached.wait()
        session = await Session.objects.aget()
        await ada_calls.delete(f"/api/chat/{session.pk}")
        answer: Answer = await asyncio.wait_for(asking, 5)
        assert (answer.status == 200) if not headers else (answer.refused == (404, "not_found"))

    async def test_a_reader_that_comes_too_late_to_hear_it_is_told_too(self, ada_calls: Web) -> None:
        session = await new(ada_calls)
        await ada_calls.delete(f"/api/chat/{session}")

        async def look() -> None:
            """It is not asked: there is nothing to see."""

        with pytest.raises(NotFound):
            await anext(follow(UUID(session), 0, look))

    @pytest.mark.database
    async def test_a_message_and_its_deletion_at_once(self, ada_calls: Web) -> None:
        session = await new(ada_calls)
        answers = await asyncio.gather(
            *(
                ada_calls.post(
                    "/api/chat", {"message": f"{n}", "sessionId": session}, {"prefer": "respond-async"}
                )
                for n in range(6)
            ),
            ada_calls.delete(f"/api/chat/{session}"),
            ada_calls.patch(f"/api/chat/{session}", {"title": "T"}),
            ada_calls.post(f"/api/chat/{session}/abort", {}),
        )
        assert {answer.status for answer in answers[:6]} <= {202, 404}
        assert answers[6].status == 204
        assert {answer.status for answer in answers[7:]} <= {200, 404}
        assert not await Session.objects.aexists()
        assert not await Message.objects.aexists()

    @pytest.mark.database
    async def test_whatever_their_workers_do_at_that_moment(
        self, ada_calls: Web, worker: ScriptedRuntime, caplog: pytest.LogCaptureFixture
    ) -> None:
        worker.scripts["look"] = [Say("One."), Use("Read", {"file_path": "Welcome.md"}), Say("Two.")]
        sessions = [await new(ada_calls, f"look {n}") for n in range(8)]

        async def delete(session: str, after: int) -> int:
            async with ada_calls.streaming("GET", f"/api/chat/{session}/events") as stream:
                for _ in range(after):
                    await stream.next()
                return (await ada_calls.delete(f"/api/chat/{session}")).status

        answers = await asyncio.gather(*(delete(each, 2 + n) for n, each in enumerate(sessions)))
        assert set(answers) == {204}
        assert not await Session.objects.aexists()
        assert not [each for each in caplog.records if each.levelno >= logging.WARNING]

"""`/ws` and `/ws/chat/{id}`."""

import asyncio
import json
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from pytest import MonkeyPatch

from agents_app.consumers import ChatSocket
from agents_app.runtimes.scripted import Pause, Say, ScriptedRuntime
from sessions_app.access.models import ApiKey, KeyScope
from sessions_app.models import Turn
from sessions_app.reading import Page
from tests.api.conftest import Key
from tests.api.web import Web

pytestmark = pytest.mark.django_db(transaction=True)

UNAUTHENTICATED, FORBIDDEN, NOT_FOUND = 4401, 4403, 4404


@pytest.fixture
def looks_at_once(monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr("sessions_app.streaming.watch.LOOKS_AGAIN_EVERY", 0.02)


def refused(heard: dict[str, Any], code: str) -> bool:
    assert heard.keys() == {"type", "sessionId", "error"}
    return bool((heard["type"], heard["error"]["code"]) == ("refused", code))


async def test_one_socket_follows_several_sessions(ada_calls: Web) -> None:
    one, other = await ada_calls.say("one"), await ada_calls.say("other")
    async with ada_calls.socket() as socket:
        for said in (one, other):
            await socket.send({"type": "follow", "sessionId": said["sessionId"], "after": 1})
            (heard,) = await socket.until("user_message")
            assert (heard["sessionId"], heard["seq"]) == (said["sessionId"], 2)


async def test_the_socket_of_one_session_begins_where_it_is_told(ada_calls: Web) -> None:
    said = await ada_calls.say("x")
    async with ada_calls.socket(f"/ws/chat/{said['sessionId']}?after=1") as socket:
        assert (await socket.next())["type"] == "user_message"


async def test_a_message_over_the_socket_is_heard_by_it(ada_calls: Web, worker: ScriptedRuntime) -> None:
    worker.scripts["x"] = [Say("Heard.")]
    async with ada_calls.socket() as socket:
        await socket.send({"type": "message", "message": "x"})
        accepted = await socket.next()
        assert accepted.keys() == {"type", "sessionId", "turnId", "seq"}
        await socket.send({"type": "follow", "sessionId": accepted["sessionId"]})
        assert (await socket.until("done"))[-1]["response"] == "Heard."


async def test_a_socket_of_one_session_speaks_to_that_session(ada_calls: Web) -> None:
    said, other = await ada_calls.say("x"), await ada_calls.say("other")
    async with ada_calls.socket(f"/ws/chat/{said['sessionId']}?after=2") as socket:
        await socket.send({"type": "message", "message": "y", "sessionId": other["sessionId"]})
        accepted = (await socket.until("accepted"))[-1]
    assert accepted["sessionId"] == said["sessionId"]


async def test_a_message_with_a_key_is_taken_once(ada_calls: Web) -> None:
    async with ada_calls.socket() as socket:
        for _ in range(2):
            await socket.send({"type": "message", "message": "x", "key": "k-1"})
        assert (await socket.next())["turnId"] == (await socket.next())["turnId"]


async def test_an_abort_stops_what_runs(ada_calls: Web, worker: ScriptedRuntime) -> None:
    here = Pause(asyncio.Event(), asyncio.Event())
    worker.scripts["x"] = [Say("Half"), here]
    said = await ada_calls.say("x")
    async with ada_calls.socket(f"/ws/chat/{said['sessionId']}") as socket:
        await here.reached.wait()
        await socket.send({"type": "abort", "turnId": said["turnId"]})
        assert (await socket.until("aborted"))[-1]["partialResponse"] == "Half"


async def test_what_is_not_followed_any_more_is_not_heard(ada_calls: Web) -> None:
    one, other = await ada_calls.say("one"), await ada_calls.say("other")
    async with ada_calls.socket() as socket:
        for said in (one, other):
            await socket.send({"type": "follow", "sessionId": said["sessionId"]})
            await socket.until("user_message")
        await socket.send({"type": "unfollow", "sessionId": one["sessionId"]})
        for said in (one, other):
            await socket.send({"type": "message", "message": "again", "sessionId": said["sessionId"]})
        heard = await socket.until("user_message")
    assert {h["sessionId"] for h in heard if h["type"] != "accepted"} == {other["sessionId"]}


async def test_who_follows_twice_hears_once(ada_calls: Web) -> None:
    said = await ada_calls.say("x")
    follow = {"type": "follow", "sessionId": said["sessionId"], "after": 2}
    async with ada_calls.socket() as socket:
        await socket.send(follow)
        await socket.send(follow)
        await socket.send({"type": "message", "message": "y", "sessionId": said["sessionId"]})
        heard = await socket.until("user_message")
    assert [h["seq"] for h in heard if h["type"] != "accepted"] == [3, 4]


@pytest.mark.parametrize(
    "order",
    [
        {},
        {"type": "dance"},
        {"type": None},
        {"type": ["follow"]},
        {"type": "follow"},
        {"type": "follow", "sessionId": "17"},
        {"type": "follow", "sessionId": 17},
        {"type": "follow", "sessionId": str(uuid4()), "after": -1},
        {"type": "follow", "sessionId": str(uuid4()), "after": 10**30},
        {"type": "follow", "sessionId": str(uuid4()), "after": True},
        {"type": "follow", "sessionId": str(uuid4()), "after": "1"},
        {"type": "unfollow"},
        {"type": "abort", "sessionId": str(uuid4()), "why": "because"},
        {"type": "abort", "sessionId": None},
        {"type": "message"},
        {"type": "message", "message": ""},
        {"type": "message", "message": "a\0b"},
        {"type": "message", "message": "x", "agent": "gardener"},
        {"type": "message", "message": "x", "key": "k" * 256},
        {"type": "message", "message": "x", "key": {"k": 1}},
        {"type": "message", "message": "x", "self": 1},
        [],
        "text",
        None,
    ],
    ids=lambda order: str(order)[:50],
)
async def test_an_order_that_cannot_be_meant_is_refused_and_the_socket_stays(
    order: Any, ada_calls: Web
) -> None:
    async with ada_calls.socket() as socket:
        await socket.send(order)
        assert refused(await socket.next(), "invalid")
        await socket.send({"type": "message", "message": "still here"})
        assert (await socket.next())["type"] == "accepted"
    assert await Turn.objects.acount() == 1


@pytest.mark.parametrize(
    "frame", [{"bytes": b"\x00\xff"}, {"text": "{"}, {"text": ""}, {"text": "[" * 100_000}]
)
async def test_a_frame_that_is_no_json_is_refused(frame: dict[str, Any], ada_calls: Web) -> None:
    async with ada_calls.socket() as socket:
        await socket.send_raw(**frame)
        assert refused(await socket.next(), "invalid")


async def test_a_message_that_is_too_long_is_refused(ada_calls: Web) -> None:
    async with ada_calls.socket() as socket:
        await socket.send({"type": "message", "message": "x" * 102_401})
        assert refused(await socket.next(), "too_large")


async def test_a_refusal_says_which_session_it_is_about(ada_calls: Web) -> None:
    unknown = str(uuid4())
    async with ada_calls.socket() as socket:
        for kind in ("follow", "abort"):
            await socket.send({"type": kind, "sessionId": unknown})
            heard = await socket.next()
            assert refused(heard, "not_found")
            assert heard["sessionId"] == unknown


async def test_the_51st_session_is_refused(ada_calls: Web) -> None:
    sessions = [(await ada_calls.say("x"))["sessionId"] for _ in range(51)]
    async with ada_calls.socket() as socket:
        for session in sessions:
            await socket.send({"type": "follow", "sessionId": session, "after": 2})
        assert refused(await socket.next(), "invalid")
        await socket.send({"type": "unfollow", "sessionId": sessions[0]})
        await socket.send({"type": "follow", "sessionId": sessions[50], "after": 1})
        assert (await socket.next())["sessionId"] == sessions[50]


async def test_what_breaks_is_refused_with_an_incident(
    ada_calls: Web, monkeypatch: MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr("agents_app.consumers.open_turn", breaks)
    async with ada_calls.socket() as socket:
        await socket.send({"type": "message", "message": "x"})
        heard = await socket.next()
    assert refused(heard, "internal")
    assert heard["error"]["details"]["incidentId"] in caplog.text
    assert "secret" not in json.dumps(heard)


# The list


LIST = {"type": "follow", "list": True}


async def test_the_list_is_what_the_api_lists_and_comes_again_when_it_changes(ada_calls: Web) -> None:
    session = (await ada_calls.say("Quinces"))["sessionId"]
    async with ada_calls.socket() as socket:
        await socket.send(LIST)
        first = await socket.next()
        listed = (await ada_calls.get("/api/chat")).json
        assert first == {"type": "sessions", "sessions": listed["sessions"], "total": listed["total"]}
        await ada_calls.say("Medlars")
        assert [each["title"] for each in (await socket.next())["sessions"]] == ["Medlars", "Quinces"]
        await ada_calls.patch(f"/api/chat/{session}", {"title": "Pears"})
        assert [each["title"] for each in (await socket.next())["sessions"]] == ["Medlars", "Pears"]
        await ada_calls.delete(f"/api/chat/{session}")
        assert (await socket.next())["total"] == 1


async def test_the_list_shows_when_a_turn_begins_and_ends(ada_calls: Web, worker: ScriptedRuntime) -> None:
    here = Pause(asyncio.Event(), asyncio.Event())
    worker.scripts["x"] = [here]
    async with ada_calls.socket() as socket:
        await socket.send(LIST)
        assert (await socket.next())["sessions"] == []
        await ada_calls.say("x")
        shown = (await socket.next())["sessions"][0]
        assert shown["activity"] == "active"
        here.go_on.set()
        while shown["activity"] == "active":
            shown = (await socket.next())["sessions"][0]
        assert (shown["activity"], shown["status"]) == ("quiescent", "running")


async def test_a_list_that_is_not_followed_any_more_is_not_heard(ada_calls: Web) -> None:
    async with ada_calls.socket() as socket:
        for _ in range(2):
            await socket.send(LIST)
            assert (await socket.next())["type"] == "sessions"
        await socket.send({"type": "unfollow", "list": True})
        await socket.send({"type": "unfollow", "list": True})
        said = await ada_calls.say("x")
        await socket.send({"type": "follow", "sessionId": said["sessionId"], "after": 1})
        assert (await socket.next())["type"] == "user_message"


@pytest.mark.parametrize("order", [{"list": False}, {"list": "true"}, {"list": 1}, {"list": None}], ids=str)
@pytest.mark.parametrize("kind", ["follow", "unfollow"])
async def test_a_list_is_asked_for_with_true(kind: str, order: dict[str, Any], ada_calls: Web) -> None:
    async with ada_calls.socket() as socket:
        await socket.send({"type": kind, **order})
        assert refused(await socket.next(), "invalid")


async def test_the_socket_of_one_session_has_no_list(ada_calls: Web) -> None:
    said = await ada_calls.say("x")
    async with ada_calls.socket(f"/ws/chat/{said['sessionId']}?after=2") as socket:
        await socket.send(LIST)
        assert refused(await socket.next(), "invalid")


async def test_cy_has_a_list_of_his_own(ada_calls: Web, cy_calls: Web) -> None:
    await ada_calls.say("Quinces")
    async with cy_calls.socket() as socket:
        await socket.send(LIST)
        assert await socket.next() == {"type": "sessions", "sessions": [], "total": 0}
        await ada_calls.say("Medlars")
        await cy_calls.say("Pears")
        assert [each["title"] for each in (await socket.next())["sessions"]] == ["Pears"]


async def test_one_who_is_put_out_loses_the_list_with_the_next_ring(
    ada_calls: Web, ben_calls: Web, ben: User
) -> None:
    await ada_calls.share((await ada_calls.say("Quinces"))["sessionId"])
    async with ben_calls.socket() as socket:
        await socket.send(LIST)
        assert (await socket.next())["total"] == 1
        await ben.memberships.all().adelete()
        await ada_calls.say("Medlars")
        assert await socket.next() == {"type": "sessions", "sessions": [], "total": 0}


async def test_a_key_that_is_revoked_ends_the_list(ada_calls: Web, looks_at_once: None) -> None:
    async with ada_calls.socket() as socket:
        await socket.send(LIST)
        await ApiKey.objects.all().adelete()
        assert await socket.closed() == UNAUTHENTICATED


async def test_a_subclass_may_say_the_list_otherwise(ada_calls: Web, monkeypatch: MonkeyPatch) -> None:
    async def say_list(socket: ChatSocket, page: Page) -> None:
        await socket.say({"type": "markup", "count": len(page.sessions)})

    monkeypatch.setattr(ChatSocket, "say_list", say_list)
    async with ada_calls.socket() as socket:
        await socket.send(LIST)
        assert await socket.next() == {"type": "markup", "count": 0}


# Who may


async def closes_with(web: Web, path: str = "/ws", headers: dict[str, str] | None = None) -> int:
    async with web.socket(path, headers) as socket:
        if not socket.accepted:
            return FORBIDDEN
        return await socket.closed()


async def test_nobody_is_closed_out(nobody: Web, ada_calls: Web) -> None:
    said = await ada_calls.say("x")
    for path in ("/ws", f"/ws/chat/{said['sessionId']}", f"/ws/chat/{uuid4()}"):
        assert await closes_with(nobody, path) == UNAUTHENTICATED


async def test_nobody_who_speaks_before_the_close_is_not_heard(nobody: Web) -> None:
    async with nobody.socket() as socket:
        for order in ({"type": "message", "message": "x"}, {"type": "follow", "sessionId": str(uuid4())}):
            await socket.send(order)
        assert await socket.closed() == UNAUTHENTICATED
    assert await Turn.objects.acount() == 0


async def test_cy_is_refused_what_is_not_his(ada_calls: Web, cy_calls: Web) -> None:
    said = await ada_calls.say("x")
    for known in (said["sessionId"], str(uuid4()), "17"):
        assert await closes_with(cy_calls, f"/ws/chat/{known}") == NOT_FOUND
    async with cy_calls.socket() as socket:
        for order in ({"type": "follow"}, {"type": "abort"}, {"type": "message", "message": "y"}):
            await socket.send({**order, "sessionId": said["sessionId"]})
            assert refused(await socket.next(), "not_found")


async def test_a_viewer_follows_and_does_not_speak(ada_calls: Web, vi_calls: Web) -> None:
    said = await ada_calls.say("x")
    await ada_calls.share(said["sessionId"])
    async with vi_calls.socket(f"/ws/chat/{said['sessionId']}?after=2") as socket:
        await socket.next()
        for order in ({"type": "message", "message": "y"}, {"type": "abort"}):
            await socket.send(order)
            assert refused(await socket.next(), "forbidden")


@pytest.fixture
def reads(ada: User, key: Key) -> Web:
    return Web(key(ada, scopes=[KeyScope.READ]))


@pytest.fixture
def chats(ada: User, key: Key) -> Web:
    return Web(key(ada, scopes=[KeyScope.CHAT]))


async def test_a_key_does_what_its_scopes_say(reads: Web, chats: Web) -> None:
    assert await closes_with(chats) == FORBIDDEN
    async with reads.socket() as socket:
        await socket.send({"type": "message", "message": "x"})
        assert refused(await socket.next(), "forbidden")


async def test_no_path_leads_to_nothing_but_a_close(ada_calls: Web) -> None:
    for path in ("/ws/", "/ws/chat", "/ws/chat/17", "/nowhere", "/"):
        assert await closes_with(ada_calls, path) == NOT_FOUND


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "",
        "http://localhost.evil.example",
        "http://[",
        "file://",
        "http://localhost:1",
        "localhost",
    ],
)
async def test_a_cookie_from_another_page_is_nobody(origin: str, ada_browser: Web) -> None:
    assert await closes_with(ada_browser, headers={"origin": origin}) == UNAUTHENTICATED


async def test_a_cookie_without_an_origin_is_nobody(ada_browser: Web) -> None:
    without = Web({"cookie": ada_browser.headers["cookie"]})
    assert await closes_with(without) == UNAUTHENTICATED


@pytest.mark.parametrize("origin", ["http://localhost", "https://localhost", "https://parachute.example"])
async def test_a_cookie_from_our_page_is_its_person(
    origin: str, ada_browser: Web, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.setattr("django.conf.settings.CSRF_TRUSTED_ORIGINS", ["https://*.example"])
    async with ada_browser.socket(headers={"origin": origin}) as socket:
        await socket.send({"type": "message", "message": "x"})
        assert (await socket.next())["type"] == "accepted"


async def test_a_key_needs_no_origin(ada_calls: Web) -> None:
    async with ada_calls.socket(headers={"origin": "http://evil.example"}) as socket:
        await socket.send({"type": "message", "message": "x"})
        assert (await socket.next())["type"] == "accepted"


@pytest.mark.parametrize("host", ["evil.example", "", "localhost,evil.example"])
async def test_a_host_that_is_not_served_gets_no_socket(host: str, ada_calls: Web) -> None:
    async with ada_calls.socket(headers={"host": host}) as socket:
        assert not socket.accepted


# Who may no longer


async def test_one_who_is_put_out_loses_that_session_and_keeps_the_others(
    ben_calls: Web, ben: User, looks_at_once: None, as_ben: object, vault: object
) -> None:
    said = await ben_calls.say("x")
    async with ben_calls.socket() as socket:
        await socket.send({"type": "follow", "sessionId": said["sessionId"], "after": 2})
        await ben.memberships.all().adelete()
        heard = await socket.next()
        assert refused(heard, "not_found")
        assert heard["sessionId"] == said["sessionId"]
        await socket.send({"type": "dance"})
        assert refused(await socket.next(), "invalid")


async def test_one_who_is_put_out_loses_the_socket_of_that_session(
    ben_calls: Web, ben: User, looks_at_once: None
) -> None:
    said = await ben_calls.say("x")
    async with ben_calls.socket(f"/ws/chat/{said['sessionId']}") as socket:
        await ben.memberships.all().adelete()
        assert await socket.closed() == NOT_FOUND


async def test_a_key_that_is_revoked_closes_even_a_socket_that_follows_nothing(
    ada_calls: Web, looks_at_once: None
) -> None:
    async with ada_calls.socket() as socket:
        await ApiKey.objects.all().adelete()
        assert await socket.closed() == UNAUTHENTICATED


async def test_a_key_that_loses_its_scope_closes_its_socket(ada_calls: Web, looks_at_once: None) -> None:
    async with ada_calls.socket() as socket:
        await ApiKey.objects.aupdate(scopes=["chat"])
        assert await socket.closed() == FORBIDDEN


async def test_a_new_password_closes_the_sockets_of_a_browser(
    ada_browser: Web, ada: User, looks_at_once: None
) -> None:
    async with ada_browser.socket() as socket:
        ada.set_password("another one")
        await ada.asave()
        assert await socket.closed() == UNAUTHENTICATED

"""`GET /api/chat/{id}/events`: server-sent events, for as long as the reader stays."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as Login
from django.test import AsyncClient

from agents_app.runtimes.scripted import Begin, Pause, Say, ScriptedRuntime
from sessions_app.access.models import ApiKey
from sessions_app.streaming.stream import KEEP_ALIVE
from sessions_app.streaming.watch import LOOKS_AGAIN_EVERY
from tests.api.web import Web

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sessions_app.streaming.watch.LOOKS_AGAIN_EVERY", 0)
    monkeypatch.setattr("sessions_app.streaming.stream.KEEP_ALIVE", 0.02)


async def test_it_begins_at_the_start(ada_calls: Web) -> None:
    said = await ada_calls.say("x")
    async with ada_calls.streaming("GET", f"/api/chat/{said['sessionId']}/events") as stream:
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        assert stream.headers["cache-control"] == "no-cache, no-transform"
        assert stream.headers["x-accel-buffering"] == "no"
        frames = await stream.until("user_message")
    assert [(f.type, f.id) for f in frames] == [("session", "1"), ("user_message", "2")]
    assert all(f.data.keys() >= {"type", "sessionId", "turnId", "seq", "ts"} for f in frames)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/chat/{id}/events?after=2"),
        ("GET", "/api/permissions/stream"),
        ("POST", "/api/chat"),
        ("POST", "/api/chat/stream"),
    ],
)
async def test_every_stream_answers_before_there_is_anything_to_say(
    method: str, path: str, ada_calls: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = await ada_calls.say("x")
    monkeypatch.setattr("sessions_app.streaming.bus.memory.bus.subscribe", _never)
    body = b'{"message": "x"}' if method == "POST" else b""
    async with ada_calls.streaming(method, path.format(id=said["sessionId"]), body) as stream:
        assert (stream.status, await stream.piece()) == (200, b": connected\n\n")


@asynccontextmanager
async def _never(topic: str) -> AsyncIterator[None]:
    await asyncio.Event().wait()
    yield


@pytest.mark.parametrize(
    ("query", "header", "first"),
    [
        ("?after=1", None, "2"),
        ("", "1", "2"),
        ("?after=0", "1", "2"),
        ("?after=1", "0", "1"),
        ("?after=", None, "1"),
    ],
)
async def test_last_event_id_wins_over_after(
    query: str, header: str | None, first: str, ada_calls: Web
) -> None:
    said = await ada_calls.say("x")
    sent = {"last-event-id": header} if header else {}
    async with ada_calls.streaming(
        "GET", f"/api/chat/{said['sessionId']}/events{query}", headers=sent
    ) as stream:
        assert (await stream.next()).id == first


@pytest.mark.parametrize("after", ["-1", "x", "1.0", "0x1", "9999999999", "%D9%A1", "%00", "1%20", "+1"])
async def test_an_after_that_is_no_seq_is_422(after: str, ada_calls: Web) -> None:
    said = await ada_calls.say("x")
    answer = await ada_calls.get(f"/api/chat/{said['sessionId']}/events?after={after}")
    assert answer.refused == (422, "invalid")
    assert answer.fields == ["after"]
    assert (
        await ada_calls.get(f"/api/chat/{said['sessionId']}/events", {"last-event-id": "x"})
    ).status == 422


async def test_who_may_not_read_learns_nothing_from_a_bad_after(nobody: Web, cy_calls: Web) -> None:
    where = f"/api/chat/{uuid4()}/events?after=x"
    assert (await nobody.get(where)).refused == (401, "unauthenticated")
    assert (await cy_calls.get(where)).refused == (404, "not_found")


async def test_what_comes_later_comes_at_once(ada_calls: Web, worker: ScriptedRuntime) -> None:
    here = Pause(asyncio.Event(), asyncio.Event())
    worker.scripts["x"] = [Begin("Lat"), here, Say("Later.")]
    said = await ada_calls.say("x")
    async with ada_calls.streaming("GET", f"/api/chat/{said['sessionId']}/events") as stream:
        frames = await stream.until("text")
        assert (frames[-1].id, frames[-1].data["delta"]) == ("", "Lat")
        here.go_on.set()
        frames += await stream.until("done")
    rows = [frame for frame in frames if frame.id]
    assert [int(row.id) for row in rows] == list(range(1, int(rows[-1].id) + 1))
    assert [row.data["content"] for row in rows if row.type == "text"] == ["Later."]


async def test_head_answers_and_ends(ada_calls: Web) -> None:
    said = await ada_calls.say("x")
    answer = await ada_calls.ask("HEAD", f"/api/chat/{said['sessionId']}/events")
    assert (answer.status, answer.body) == (200, b"")
    assert (await ada_calls.ask("HEAD", f"/api/chat/{uuid4()}/events")).status == 404


async def test_silence_is_kept_alive(ada_calls: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sessions_app.streaming.stream.KEEP_ALIVE", 0.02)
    said = await ada_calls.say("x")
    async with ada_calls.streaming("GET", f"/api/chat/{said['sessionId']}/events?after=2") as stream:
        assert [(await stream.next()).comment for _ in range(3)] == [": keep-alive"] * 3


async def test_a_hundred_readers_that_leave_leave_nothing(ada_calls: Web) -> None:
    said = await ada_calls.say("x")

    async def reads_and_leaves() -> None:
        async with ada_calls.streaming("GET", f"/api/chat/{said['sessionId']}/events") as stream:
            await stream.until("user_message")

    await asyncio.gather(*(reads_and_leaves() for _ in range(100)))


async def test_one_who_is_put_out_is_let_go(ben_calls: Web, ben: User, looks_at_once: None) -> None:
    said = await ben_calls.say("x")
    async with ben_calls.streaming("GET", f"/api/chat/{said['sessionId']}/events?after=2") as stream:
        await stream.next()
        await ben.memberships.all().adelete()
        await stream.rest()
    assert (await ben_calls.get(f"/api/chat/{said['sessionId']}/events")).refused == (404, "not_found")


async def test_a_key_that_is_revoked_ends_its_streams(ada_calls: Web, looks_at_once: None) -> None:
    said = await ada_calls.say("x")
    async with ada_calls.streaming("GET", f"/api/chat/{said['sessionId']}/events?after=2") as stream:
        await stream.next()
        await ApiKey.objects.all().adelete()
        await stream.rest()


async def test_a_new_password_ends_the_streams_of_a_browser(
    ada_browser: Web, ada: User, looks_at_once: None
) -> None:
    said = await ada_browser.say("x")
    async with ada_browser.streaming("GET", f"/api/chat/{said['sessionId']}/events?after=2") as stream:
        await stream.next()
        ada.set_password("another one")
        await ada.asave()
        await stream.rest()


async def test_a_password_set_on_the_settings_page_ends_the_streams_of_other_browsers(
    ada_browser: Web, ada: User, looks_at_once: None
) -> None:
    said = await ada_browser.say("x")
    form = {
        "old_password": "ada has a password",
        "new_password1": "quinces in October",
        "new_password2": "quinces in October",
    }
    elsewhere = AsyncClient()
    await elsewhere.aforce_login(ada)
    async with ada_browser.streaming("GET", f"/api/chat/{said['sessionId']}/events?after=2") as stream:
        await stream.next()
        assert (await elsewhere.post("/settings/password", form)).status_code == 302
        await stream.rest()
    assert (await ada_browser.get("/api/chat")).refused == (401, "unauthenticated")


async def test_who_was_looked_at_a_moment_ago_is_not_looked_at(
    ada_browser: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessions_app.streaming.stream.KEEP_ALIVE", 0.02)
    said = await ada_browser.say("x")
    async with ada_browser.streaming("GET", f"/api/chat/{said['sessionId']}/events?after=2") as stream:
        await stream.next()
        await Login.objects.all().adelete()
        assert (await stream.next()).comment  # within the minute


def test_the_look_comes_within_the_minute() -> None:
    assert LOOKS_AGAIN_EVERY + KEEP_ALIVE <= 60


async def test_a_stream_that_breaks_off_ends_and_says_so_in_the_log(
    ada_calls: Web, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def breaks(*args: object) -> None:
        raise ZeroDivisionError

    said = await ada_calls.say("x")
    monkeypatch.setattr("sessions_app.streaming.watch.Watch.check", breaks)
    async with ada_calls.streaming("GET", f"/api/chat/{said['sessionId']}/events") as stream:
        assert await stream.rest() == []
    assert "broke off" in caplog.text


async def test_what_fails_before_it_begins_is_500(ada_calls: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    async def breaks(*args: object) -> None:
        raise ZeroDivisionError

    said = await ada_calls.say("x")
    monkeypatch.setattr("sessions_app.streaming.watch.check_visible", breaks)
    answer = await ada_calls.get(f"/api/chat/{said['sessionId']}/events")
    assert answer.refused == (500, "internal")
    assert answer.json["error"]["details"]["incidentId"]

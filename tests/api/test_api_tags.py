"""Tags: put on and taken off, counted, and what is found by them. And searching over HTTP."""

import pytest

from sessions_app.search import indexing
from sessions_app.threads import in_thread
from tests.api.web import Web

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture
async def chat(ada_calls: Web) -> str:
    return str((await ada_calls.say("When are the medlars ripe?"))["sessionId"])


async def test_they_are_in_lower_case_once_and_told(ada_calls: Web, chat: str) -> None:
    where = f"/api/chat/{chat}/tags"
    for tag in ("Garden", " garden ", "Late  Fruit"):
        answer = await ada_calls.post(where, {"tag": tag})
    assert answer.json == {"tags": ["garden", "late fruit"]}
    assert (await ada_calls.get(f"/api/chat/{chat}")).json["tags"] == ["garden", "late fruit"]
    assert (await ada_calls.delete(f"{where}/Late%20fruit")).json == {"tags": ["garden"]}
    assert (await ada_calls.delete(f"{where}/late%20fruit")).refused == (404, "not_found")
    async with ada_calls.streaming("GET", f"/api/chat/{chat}/events?after=2") as stream:
        told = [(await stream.next()).data["tags"] for _ in range(3)]
    assert told == [["garden"], ["garden", "late fruit"], ["garden"]]


@pytest.mark.parametrize("tag", ["", "  ", "x" * 61, "a/b", "\0", ".", ".."])
async def test_what_is_no_tag_is_refused(ada_calls: Web, chat: str, tag: str) -> None:
    assert (await ada_calls.post(f"/api/chat/{chat}/tags", {"tag": tag})).refused == (422, "invalid")


async def test_sessions_are_found_by_them(ada_calls: Web, chat: str) -> None:
    other = (await ada_calls.say("pears"))["sessionId"]
    for session, tags in ((chat, ("garden", "late")), (other, ("garden",))):
        for tag in tags:
            await ada_calls.post(f"/api/chat/{session}/tags", {"tag": tag})
    counts = (await ada_calls.get("/api/chat/tags")).json["tags"]
    assert counts == [{"tag": "garden", "count": 2}, {"tag": "late", "count": 1}]
    for path in ("/api/chat/tags/Late", "/api/chat?tag=LATE"):
        assert [each["id"] for each in (await ada_calls.get(path)).json["sessions"]] == [chat]


async def test_a_search_says_what_fits_where_and_why(ada_calls: Web, chat: str) -> None:
    await in_thread(indexing.index_sessions)()
    (hit,) = (await ada_calls.get("/api/search?q=medlars&kind=session")).json["results"]
    assert (hit["sessionId"], hit["contentType"], hit["matched"]) == (chat, "session", "text")
    assert [hit["excerpt"][start:end] for start, end in hit["marks"]] == ["medlars"]
    assert (await ada_calls.get("/api/search?q=x&kind=song")).refused == (422, "invalid")
    before_all_time = await ada_calls.get("/api/search?q=x&since=0001-01-01T00:00:00%2B14:00")
    assert (before_all_time.refused, before_all_time.fields) == ((422, "invalid"), ["since"])

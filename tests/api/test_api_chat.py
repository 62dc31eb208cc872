"""`POST /api/chat` in its three forms, with the scripted runtime behind it."""

import asyncio
from typing import Any

import pytest

from agents_app.runtimes.scripted import Break, Fail, Pause, Say, ScriptedRuntime, Use
from sessions_app.models import Session, Turn
from tests.api.web import Web

pytestmark = pytest.mark.django_db(transaction=True)

JSON = {"accept": "application/json"}
ASYNC = {"prefer": "respond-async"}


def pause() -> Pause:
    return Pause(asyncio.Event(), asyncio.Event())


async def test_it_streams_the_events_of_its_turn_as_they_happen(
    ada_calls: Web, worker: ScriptedRuntime
) -> None:
    here = pause()
    worker.scripts["quinces"] = [Say("Let me look."), here, Say("In October.")]
    async with ada_calls.streaming("POST", "/api/chat", b'{"message": "quinces?"}') as stream:
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        first = await stream.until("text")
        assert not here.go_on.is_set()  # it came while the agent still stood
        here.go_on.set()
        frames = first + await stream.rest()
    rows = [frame for frame in frames if frame.id]
    assert [row.type for row in rows[:3]] == ["session", "user_message", "session"]
    assert [int(row.id) for row in rows] == sorted({row.data["seq"] for row in rows})
    assert rows[-1].type == "done"
    assert rows[-1].data["response"] == "In October."
    assert {frame.data["turnId"] for frame in frames} == {rows[0].data["turnId"]}


async def test_what_is_no_row_has_no_id(ada_calls: Web, worker: ScriptedRuntime) -> None:
    async with ada_calls.streaming("POST", "/api/chat/stream", b'{"message": "x"}') as stream:
        frames = await stream.rest()
    assert [f for f in frames if "delta" in f.data and f.id] == []
    assert all(f.id == str(f.data["seq"]) for f in frames if f.data.get("seq"))


async def test_it_streams_no_turn_but_its_own(ada_calls: Web, worker: ScriptedRuntime) -> None:
    before = await ada_calls.say("first")
    body = b'{"message": "second", "sessionId": "%s"}' % before["sessionId"].encode()
    async with ada_calls.streaming("POST", "/api/chat", body) as stream:
        frames = await stream.rest()
    assert before["turnId"] not in {frame.data["turnId"] for frame in frames}
    assert frames[-1].type == "done"


async def test_json_waits_for_the_done_payload(ada_calls: Web, worker: ScriptedRuntime) -> None:
    worker.scripts["x"] = [Use("Read", {"file_path": "Welcome.md"}), Say("Read it.")]
    answer = await ada_calls.post("/api/chat", {"message": "x"}, JSON)
    assert answer.status == 200
    assert (answer.json["type"], answer.json["response"]) == ("done", "Read it.")
    assert answer.json.keys() >= {
        "sessionId",
        "turnId",
        "messageCount",
        "toolCalls",
        "sessionResume",
        "usage",
    }
    assert [call["name"] for call in answer.json["toolCalls"]] == ["Read"]


@pytest.mark.parametrize("path", ["/api/chat/stream", "/api/chat"])
async def test_only_plain_chat_answers_json(path: str, ada_calls: Web, worker: ScriptedRuntime) -> None:
    answer = await ada_calls.post(path, {"message": "x"}, JSON)
    kind = answer.headers["content-type"]
    assert kind.startswith("text/event-stream" if path.endswith("stream") else "application/json")


async def test_an_accept_that_takes_events_gets_them(ada_calls: Web, worker: ScriptedRuntime) -> None:
    both = {"accept": "application/json, text/event-stream"}
    answer = await ada_calls.post("/api/chat", {"message": "x"}, both)
    assert answer.headers["content-type"].startswith("text/event-stream")


async def test_respond_async_answers_at_once(ada_calls: Web) -> None:
    answer = await ada_calls.post("/api/chat", {"message": "x"}, {**ASYNC, **JSON})
    assert answer.status == 202
    assert answer.json.keys() == {"sessionId", "turnId", "seq"}
    assert answer.json["seq"] == 2  # of the `user_message`


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("no_credentials", 503),
        ("rate_limited", 503),
        ("overloaded", 503),
        ("sandbox_unavailable", 503),
        ("vault_gone", 503),
        ("invalid_api_key", 502),
        ("billing_error", 502),
        ("network_error", 502),
        ("deadline_exceeded", 504),
        ("budget_exceeded", 429),
        ("context_exceeded", 422),
        ("model_not_allowed", 422),
        ("cli_crashed", 500),
        ("unknown_error", 500),
    ],
)
async def test_a_turn_that_fails_has_a_fitting_status(
    code: str, status: int, ada_calls: Web, worker: ScriptedRuntime
) -> None:
    worker.scripts["x"] = [Fail(code)]
    answer = await ada_calls.post("/api/chat", {"message": "x"}, JSON)
    assert answer.refused == (status, code)
    assert answer.json["error"]["details"]["type"] == "typed_error"


async def test_what_breaks_in_a_turn_is_told_without_its_traceback(
    ada_calls: Web, worker: ScriptedRuntime
) -> None:
    worker.scripts["x"] = [Break()]
    answer = await ada_calls.post("/api/chat", {"message": "x"}, JSON)
    assert answer.refused == (500, "internal")
    assert answer.json["error"]["details"]["incidentId"]
    assert not any(secret in answer.body for secret in (b"sk-ant", b"Traceback", b"ZeroDivision"))


async def test_a_turn_that_is_stopped_is_409_aborted(ada_calls: Web, worker: ScriptedRuntime) -> None:
    here = pause()
    worker.scripts["x"] = [here]
    asking = asyncio.create_task(ada_calls.post("/api/chat", {"message": "x"}, JSON))
    await here.reached.wait()
    turn = await Turn.objects.aget()
    stopped = await ada_calls.post(f"/api/chat/{turn.session_id}/abort", {"turnId": str(turn.pk)})
    assert stopped.status == 200
    assert stopped.json == {"success": True, "sessionId": str(turn.session_id), "turnId": str(turn.pk)}
    assert (await asking).refused == (409, "aborted")


async def test_a_reader_that_leaves_does_not_stop_the_turn(ada_calls: Web, worker: ScriptedRuntime) -> None:
    here = pause()
    worker.scripts["x"] = [here, Say("Still here.")]
    before = asyncio.all_tasks()
    async with ada_calls.streaming("POST", "/api/chat", b'{"message": "x"}') as stream:
        session = (await stream.next()).data["sessionId"]
        await here.reached.wait()
    assert {
        t for t in asyncio.all_tasks() - before if "application" in repr(t) or "follow" in repr(t)
    } == set()
    here.go_on.set()
    async with ada_calls.streaming("GET", f"/api/chat/{session}/events") as stream:
        assert (await stream.until("done"))[-1].data["response"] == "Still here."


async def test_one_who_is_put_out_hears_no_more_of_a_turn(
    ben_calls: Web, ben: object, worker: ScriptedRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessions_app.streaming.watch.LOOKS_AGAIN_EVERY", 0)
    here = pause()
    worker.scripts["x"] = [Say("For Ben."), here, Say("Not for Ben.")]
    async with ben_calls.streaming("POST", "/api/chat", b'{"message": "x"}') as stream:
        await stream.until("text")
        await here.reached.wait()
        await ben.memberships.all().adelete()  # type: ignore[attr-defined]
        here.go_on.set()
        assert "Not for Ben." not in str(await stream.rest())


async def test_the_same_key_gives_the_same_turn(ada_calls: Web) -> None:
    keyed = {**ASYNC, "idempotency-key": "k-1"}
    first = await ada_calls.post("/api/chat", {"message": "x"}, keyed)
    again = await ada_calls.post("/api/chat", {"message": "x"}, keyed)
    assert first.json == again.json
    assert await Turn.objects.acount() == 1


async def test_twins_with_one_key_open_one_turn(ada_calls: Web) -> None:
    keyed = {**ASYNC, "idempotency-key": "k-1"}
    posts = [ada_calls.post("/api/chat", {"message": "x"}, keyed) for _ in range(8)]
    turns = {answer.json["turnId"] for answer in await asyncio.gather(*posts)}
    assert len(turns) == await Turn.objects.acount() == 1


async def test_the_same_key_for_other_words_is_refused(ada_calls: Web) -> None:
    keyed = {**ASYNC, "idempotency-key": "k-1"}
    await ada_calls.post("/api/chat", {"message": "x"}, keyed)
    answer = await ada_calls.post("/api/chat", {"message": "y"}, keyed)
    assert answer.refused == (409, "idempotency_mismatch")


async def test_a_key_is_its_callers_own(ada_calls: Web, ben_calls: Web) -> None:
    keyed = {**ASYNC, "idempotency-key": "k-1"}
    first = await ada_calls.post("/api/chat", {"message": "x"}, keyed)
    other = await ben_calls.post("/api/chat", {"message": "x"}, keyed)
    assert first.json["turnId"] != other.json["turnId"]


async def test_a_key_that_failed_may_be_used_again(ada_calls: Web) -> None:
    keyed = {**ASYNC, "idempotency-key": "k-1"}
    assert (await ada_calls.post("/api/chat", {"message": ""}, keyed)).status == 422
    assert (await ada_calls.post("/api/chat", {"message": "x"}, keyed)).status == 202


async def test_a_huge_key_is_refused(ada_calls: Web) -> None:
    answer = await ada_calls.post("/api/chat", {"message": "x"}, {"idempotency-key": "k" * 256})
    assert answer.refused == (422, "invalid")
    assert answer.fields == ["Idempotency-Key"]


async def test_snake_case_is_taken_too(ada_calls: Web, vault: object) -> None:
    said = {"message": "x", "session_id": "new", "system_prompt": "Be brief.", "trust_level": "vault"}
    answer = await ada_calls.post("/api/chat", said, ASYNC)
    session = await Session.objects.aget(pk=answer.json["sessionId"])
    assert (session.system_prompt, session.trust_level) == ("Be brief.", "vault")


@pytest.mark.parametrize("given", [{}, {"sessionId": None}, {"sessionId": "new"}])
async def test_without_a_session_a_new_one_is_made(given: dict[str, object], ada_calls: Web) -> None:
    await ada_calls.say("x", **given)
    await ada_calls.say("x", **given)
    assert await Session.objects.acount() == 2


async def test_a_program_and_a_person_are_told_apart(ada_calls: Web, ada_browser: Web) -> None:
    said = await ada_calls.say("by key")
    await ada_browser.say("by hand", sessionId=said["sessionId"])
    async with ada_calls.streaming("GET", f"/api/chat/{said['sessionId']}/events") as stream:
        by_key, by_hand = (await stream.until("user_message"))[-1], (await stream.until("user_message"))[-1]
    assert (by_key.data["source"], by_hand.data["source"]) == ("api", "user")


async def test_sending_a_message_costs_few_queries(ada_calls: Web, queries: Any) -> None:
    await ada_calls.say("warm")
    with queries() as asked:
        await ada_calls.say("x")
    assert len(asked) <= 20, asked


class TestInject:
    async def test_it_says_whether_a_turn_runs_or_waits(
        self, ada_calls: Web, worker: ScriptedRuntime
    ) -> None:
        here = pause()
        worker.scripts["quinces"] = [here]
        said = await ada_calls.post("/api/chat", {"message": "quinces?"}, ASYNC)
        path = f"/api/chat/{said.json['sessionId']}/inject"
        await asyncio.wait_for(here.reached.wait(), 15)
        while_it_runs = await ada_calls.post(path, {"message": "and pears"})
        here.go_on.set()
        order = {"message": "over?", "sessionId": said.json["sessionId"]}
        done = (await ada_calls.post("/api/chat", order, JSON)).json
        afterwards = await ada_calls.post(path, {"message": "and plums"})
        assert (while_it_runs.status, afterwards.status) == (202, 202)
        assert while_it_runs.json == {"turnId": said.json["turnId"], "state": "running"}
        assert afterwards.json["state"] == "queued"
        assert afterwards.json["turnId"] not in (said.json["turnId"], done["turnId"])

    @pytest.mark.parametrize(("text", "status"), [("", 422), (" ", 422), ("x" * 32_001, 413), ("\0", 422)])
    async def test_what_cannot_be_said_is_refused(self, ada_calls: Web, text: str, status: int) -> None:
        said = await ada_calls.post("/api/chat", {"message": "x"}, ASYNC)
        answer = await ada_calls.post(f"/api/chat/{said.json['sessionId']}/inject", {"message": text})
        assert answer.status == status

    async def test_a_viewer_may_not(self, ada_calls: Web, vi_calls: Web) -> None:
        said = await ada_calls.post("/api/chat", {"message": "x"}, ASYNC)
        await ada_calls.share(said.json["sessionId"])
        answer = await vi_calls.post(f"/api/chat/{said.json['sessionId']}/inject", {"message": "y"})
        assert answer.status == 403

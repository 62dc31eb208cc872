"""What the API refuses: the code, the status and the shape of each error."""

import json
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError
from django.test import override_settings

from sessions_app.access.models import Workspace
from sessions_app.models import Session, Turn
from tests.api.web import Web

pytestmark = pytest.mark.django_db(transaction=True)

MIB = 1024 * 1024
NOT_YET = ["agent", "agentPath", "agentType", "recoveryMode", "nonsense"]


def fields_of(value: object) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"{", "body"),
        (b"[" * 100_000 + b"]" * 100_000, "body"),
        (b'{"message": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}", "body"),
        (b"\xff\xfe{}", "body"),
        (b"", "body"),
        (b"[]", "body"),
        (b'"text"', "body"),
        (b"null", "body"),
        (b"{}", "message"),
        (b'{"message": ""}', "message"),
        (b'{"message": " \\n "}', "message"),
        (b'{"message": 5}', "message"),
        (b'{"message": "a\\u0000b"}', "message"),
        (b'{"message": "\\ud800"}', "message"),
        (b'{"message": "x", "systemPrompt": "\\udfff"}', "systemPrompt"),
        (b'{"message": "x", "workspace": "\\u0000"}', "workspace"),
        (b'{"message": "x", "model": "\\u0000"}', "model"),
        (b'{"message": "x", "workingDirectory": "\\u0000"}', "workingDirectory"),
        (b'{"message": "x", "sessionId": "17"}', "sessionId"),
        (b'{"message": "x", "sessionId": 17}', "sessionId"),
        (b'{"message": "x", "continuedFrom": "17"}', "continuedFrom"),
        (b'{"message": "x", "module": "kitchen"}', "module"),
        (b'{"message": "x", "trustLevel": "absolute"}', "trustLevel"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_body_that_cannot_be_meant_is_422_and_names_its_field(
    body: bytes, field: str, ada_calls: Web
) -> None:
    answer = await ada_calls.post("/api/chat", body=body)
    assert answer.refused == (422, "invalid")
    assert field in answer.fields
    assert await Turn.objects.acount() == 0


@pytest.mark.parametrize("name", NOT_YET)
async def test_a_field_that_does_not_exist_yet_is_refused_by_name(name: str, ada_calls: Web) -> None:
    answer = await ada_calls.post("/api/chat", {"message": "x", name: []})
    assert answer.refused == (422, "invalid")
    assert answer.fields == [name]


async def test_json_is_read_whatever_it_is_called(ada_calls: Web) -> None:
    headers = {"content-type": "text/plain", "prefer": "respond-async"}
    assert (await ada_calls.post("/api/chat", {"message": "x"}, headers)).status == 202


async def test_a_form_is_no_json(ada_calls: Web) -> None:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    answer = await ada_calls.post("/api/chat", headers=headers, body=b"message=x")
    assert answer.refused == (422, "invalid")


async def test_a_message_may_be_as_long_as_it_may_be_and_no_longer(ada_calls: Web) -> None:
    assert await ada_calls.say("ä" * 102_400)
    answer = await ada_calls.post("/api/chat", {"message": "x" * 102_401})
    assert answer.refused == (413, "too_large")


async def test_a_body_over_30_mb_is_413_by_what_it_says(ada_calls: Web) -> None:
    answer = await ada_calls.post("/api/chat", body=b"{}", headers={"content-length": str(30 * MIB + 1)})
    assert answer.refused == (413, "too_large")


async def test_a_body_over_30_mb_is_413_though_it_says_nothing(ada_calls: Web) -> None:
    answer = await ada_calls.post("/api/chat", body=b" " * (30 * MIB + 1))
    assert answer.refused == (413, "too_large")


async def test_a_lie_about_the_length_helps_nobody(ada_calls: Web) -> None:
    answer = await ada_calls.post("/api/chat", body=b" " * (30 * MIB + 1), headers={"content-length": "2"})
    assert answer.refused == (413, "too_large")


async def test_a_body_without_an_end_is_not_read_to_its_end(ada_calls: Web) -> None:
    exchange = ada_calls.exchange("POST", "/api/chat")
    for _ in range(31):
        await exchange.send({"type": "http.request", "body": b" " * MIB, "more_body": True})
    assert (await exchange.hear())["status"] == 413
    await exchange.end({"type": "http.disconnect"})


async def test_outside_the_vault_is_its_own_refusal(ada_calls: Web) -> None:
    for there in ("..", "/etc", "Garden/../../elsewhere"):
        answer = await ada_calls.post("/api/chat", {"message": "x", "workingDirectory": there})
        assert answer.refused == (422, "outside_vault")


async def test_a_model_that_is_not_allowed_is_refused(ada_calls: Web) -> None:
    answer = await ada_calls.post("/api/chat", {"message": "x", "model": "gpt"})
    assert answer.refused == (422, "model_not_allowed")


async def test_trust_above_the_floor_is_refused(ada_calls: Web, workspace: Workspace) -> None:
    await Workspace.objects.filter(pk=workspace.pk).aupdate(trust_floor="vault")
    answer = await ada_calls.post("/api/chat", {"message": "x", "trustLevel": "full"})
    assert answer.refused == (422, "trust_too_high")


async def test_the_whole_computer_is_for_operators(ada_calls: Web, ben_calls: Web) -> None:
    wanted = {"message": "x", "trustLevel": "full"}
    assert (await ben_calls.post("/api/chat", wanted)).refused == (403, "forbidden")
    assert (await ada_calls.post("/api/chat", wanted, {"prefer": "respond-async"})).status == 202


@override_settings(PARACHUTE_ENGINE_ENVIRONMENT={"PATH": "/nowhere"})
async def test_a_box_that_is_not_there_is_503(ada_calls: Web) -> None:
    answer = await ada_calls.post("/api/chat", {"message": "x", "trustLevel": "sandboxed"})
    assert answer.refused == (503, "sandbox_unavailable")


async def test_the_21st_that_waits_is_429(ada_calls: Web) -> None:
    said = await ada_calls.say("x")
    for _ in range(19):
        await ada_calls.say("x", sessionId=said["sessionId"])
    answer = await ada_calls.post("/api/chat", {"message": "x", "sessionId": said["sessionId"]})
    assert answer.refused == (429, "queue_full")


async def test_a_failed_child_takes_no_more_messages(ada_calls: Web) -> None:
    parent, child = await ada_calls.say("parent"), await ada_calls.say("child")
    await Session.objects.filter(pk=child["sessionId"]).aupdate(status="failed", parent=parent["sessionId"])
    answer = await ada_calls.post("/api/chat", {"message": "x", "sessionId": child["sessionId"]})
    assert answer.refused == (409, "session_not_running")


async def test_an_unknown_session_to_write_to_is_404(ada_calls: Web) -> None:
    answer = await ada_calls.post("/api/chat", {"message": "x", "sessionId": str(uuid4())})
    assert answer.refused == (404, "not_found")


async def test_a_viewer_may_read_and_not_write(ada_calls: Web, vi_calls: Web) -> None:
    said = await ada_calls.say("x")
    where = f"/api/chat/{said['sessionId']}"
    await ada_calls.share(said["sessionId"])
    assert (await vi_calls.get(where)).status == 200
    assert (await vi_calls.post("/api/chat", {"message": "x"})).refused == (403, "forbidden")
    again = await vi_calls.post("/api/chat", {"message": "x", "sessionId": said["sessionId"]})
    assert again.refused == (403, "forbidden")
    assert (await vi_calls.post(f"{where}/abort", {})).refused == (403, "forbidden")


async def test_what_nobody_foresaw_is_500_with_an_incident_that_the_log_knows(
    ada_calls: Web, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(*args: object) -> None:
        raise DatabaseError("password=hunter2")

    monkeypatch.setattr("sessions_app.reading.page", breaks)
    answer = await ada_calls.get("/api/chat")
    assert answer.refused == (500, "internal")
    assert answer.json["error"]["details"]["incidentId"] in caplog.text
    assert b"hunter2" not in answer.body


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/api/chat", "GET, POST"),
        ("PUT", "/api/chat", "GET, POST"),
        ("OPTIONS", "/api/chat", "GET, POST"),
        ("GET", "/api/chat/stream", "POST"),
        ("POST", "/api/chat/active-streams", "GET"),
        ("POST", f"/api/chat/{uuid4()}/events", "GET, HEAD"),
        ("POST", "/api/health", "GET"),
    ],
)
async def test_a_method_that_a_path_does_not_take_is_405(
    method: str, path: str, allowed: str, ada_calls: Web
) -> None:
    answer = await ada_calls.ask(method, path)
    assert answer.refused == (405, "method_not_allowed")
    assert set(answer.headers["allow"].split(", ")) == set(allowed.split(", "))


@pytest.mark.parametrize("path", ["/api/chat", "/api/health", "/api/chat/active-streams"])
async def test_head_answers_as_get_does(path: str, ada_calls: Web) -> None:
    assert (await ada_calls.ask("HEAD", path)).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/api/",
        "/api/nothing",
        "/api/chat/",
        "/api//chat",
        "/api/chat/not-a-uuid",
        "/api/chat/../chat",
        "/api/chat/%00",
    ],
)
async def test_a_path_to_nowhere_is_404_in_json(path: str, ada_calls: Web) -> None:
    assert (await ada_calls.get(path)).refused == (404, "not_found")


async def test_a_host_that_is_not_served_is_refused_everywhere(ada_calls: Web) -> None:
    for path in ("/api/chat", f"/api/chat/{uuid4()}/events", "/api/health"):
        for host in ("evil.example", "", "localhost,evil.example", "localhost@evil.example"):
            assert (await ada_calls.get(path, {"host": host})).refused == (400, "invalid")


async def test_every_answer_has_a_policy(ada_calls: Web, ada: User) -> None:
    for path in ("/api/chat", "/api/nothing", "/api/health"):
        headers = (await ada_calls.get(path)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'self'" in headers["content-security-policy"]


@pytest.mark.parametrize(
    "body", [[1] * 6_000, {f"k{n}": n for n in range(6_000)}, "[[" + "],[" * 300_000 + "]]"]
)
async def test_what_holds_too_many_values_is_not_looked_at(ada_calls: Web, body: Any) -> None:
    """A megabyte of them froze the server for 5 s."""
    text = body if isinstance(body, str) else json.dumps({"message": "x", "attachments": body})
    answer = await ada_calls.post("/api/chat", body=text.encode())
    assert answer.refused == (422, "invalid") and len(answer.body) < 1_000
    async with ada_calls.socket() as socket:
        await socket.send_raw(text=text)
        assert (await socket.next())["error"]["code"] == "invalid"


async def test_of_many_wrong_fields_some_are_told(ada_calls: Web) -> None:
    answer = await ada_calls.post("/api/chat", {"message": "x", **{f"k{n}": n for n in range(100)}})
    assert answer.refused == (422, "invalid")
    told = answer.json["error"]["details"]["fields"]
    assert len(told) == 20
    assert answer.json["error"]["message"].endswith(f" {told[0]['field']}: {told[0]['message']}")

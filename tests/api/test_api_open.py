"""Health, and the documentation of the API."""

import json
from collections.abc import Iterator
from datetime import datetime
from enum import Enum
from typing import Any
from uuid import uuid4

import pytest
from django.db import DatabaseError
from django.db.backends.utils import CursorWrapper
from pydantic import BaseModel

from agents_app.workers import living
from parachute_site.api import api
from sessions_app.access.models import Workspace
from sessions_app.threads import in_thread
from tests.api.web import Web

pytestmark = pytest.mark.django_db(transaction=True)


async def test_health_is_three_words(nobody: Web) -> None:
    health = (await nobody.get("/api/health")).json
    assert health.keys() == {"status", "timestamp", "version"}
    assert health["status"] == "ok"
    assert datetime.fromisoformat(health["timestamp"]).tzinfo is not None


async def test_health_asks_the_database_nothing(nobody: Web, queries: object) -> None:
    with queries() as asked:  # type: ignore[operator]
        await nobody.get("/api/health")
    assert asked == []


async def test_not_ready_says_in_a_sentence_what_is_missing(nobody: Web) -> None:
    answer = await nobody.get("/api/health/ready")
    assert (answer.status, answer.json["status"]) == (503, "not_ready")
    assert answer.json["checks"] == {
        "database": "ok",
        "bus": "Redis does not answer.",
        "workers": "No worker serves: turns, background.",
        "model": "ok",
        "vault": "ok",
    }


async def test_workers_that_say_they_live_are_counted(nobody: Web) -> None:
    for queue in ("turns", "background"):
        await in_thread(living.say_alive)(f"{queue}-1", uuid4(), queue)
    assert (await nobody.get("/api/health/ready")).json["checks"]["workers"] == "ok"


async def test_a_vault_that_is_gone_is_said(nobody: Web, workspace: Workspace) -> None:
    await Workspace.objects.aupdate(vault_path="/nowhere/at/all")
    answer = (await nobody.get("/api/health/ready")).json["checks"]["vault"]
    assert answer == "The vault is not there or not writable."


async def test_a_database_that_is_away_is_said_and_not_raised(
    nobody: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*args: object) -> None:
        raise DatabaseError

    monkeypatch.setattr(CursorWrapper, "execute", away)
    answer = await nobody.get("/api/health/ready")
    monkeypatch.undo()
    assert answer.status == 503
    assert answer.json["checks"]["database"] == "The database does not answer."


async def test_a_bus_that_has_no_address_is_said_and_not_raised(
    nobody: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("django.conf.settings.PARACHUTE_REDIS", "")
    assert (await nobody.get("/api/health/ready")).json["checks"]["bus"] == "Redis does not answer."


async def test_the_documentation_asks_nobody_else(nobody: Web) -> None:
    page = await nobody.get("/api/docs")
    assert page.status == 200
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert b"//" not in page.body.replace(b"<!doctype", b"")
    for file in ("ninja/swagger-ui-bundle.js", "ninja/swagger-ui.css", "docs.js", "icon.svg"):
        assert f"/static/{file}".encode() in page.body
        assert (await nobody.get(f"/static/{file}")).status == 200


async def test_every_operation_is_described_with_its_refusals(nobody: Web) -> None:
    document = (await nobody.get("/api/openapi.json")).json
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert operation["summary"], path
            if operation.get("security"):
                assert operation["responses"].keys() >= {"401", "403"}, path
    error = document["components"]["schemas"]["ErrorDetails"]
    assert error["properties"].keys() == {"code", "message", "details"}
    assert all("examples" in error["properties"][name] for name in ("code", "message"))


async def test_the_documentation_shows_a_message_and_a_stream(nobody: Web) -> None:
    document = (await nobody.get("/api/openapi.json")).json
    chat = document["paths"]["/api/chat"]["post"]
    assert "text/event-stream" in chat["responses"]["200"]["content"]
    assert document["components"]["schemas"]["ChatRequest"]["properties"]["message"]["examples"]
    assert set(chat["responses"]) >= {"202", "401", "403", "404", "409", "413", "422", "429", "503"}
    assert "/ws" in json.dumps(document["info"])


def test_no_two_schemas_share_a_name() -> None:
    """In the document one would stand for both."""

    def below(kind: Any) -> Iterator[Any]:
        for each in type.__subclasses__(kind):
            yield each
            yield from below(each)

    named = api.get_openapi_schema()["components"]["schemas"]
    ours = {each for root in (BaseModel, Enum) for each in below(root) if "_app." in each.__module__}
    places: dict[str, set[str]] = {}
    for each in ours:
        places.setdefault(each.__name__, set()).add(each.__module__)
    assert {name: places[name] for name in named if len(places.get(name, ())) > 1} == {}

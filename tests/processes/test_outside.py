"""Programs of others, over `/mcp`: the protocol's own client looks, searches and chats with a key."""

import asyncio
import json
from typing import Any

import httpx
import httpx2
import pytest
from django.conf import settings
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from agents_app.model.demo.wire import say
from tests.processes.conftest import House

pytestmark = pytest.mark.processes


def asked(house: House, *uses: tuple[str, dict[str, Any]]) -> tuple[list[str], list[Any]]:
    """The names of the tools, and what each use answered."""

    async def ask() -> tuple[list[str], list[Any]]:
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {house.program.key}"}) as http:
            transport = streamable_http_client(f"{house.up.address}/mcp", http_client=http)
            async with Client(transport) as client:
                assert client.server_info and client.server_info.version == settings.VERSION
                tools = (await client.list_tools()).tools
                answers = [await client.call_tool(name, given) for name, given in uses]
                return [tool.name for tool in tools], [json.loads(_text(told)) for told in answers]

    return asyncio.run(ask())


def _text(told: Any) -> str:
    (said,) = told.content
    return str(said.text)


def test_a_client_chats_goes_on_and_finds_what_was_said(house: House) -> None:
    house.model.script("When are medlars", [say("In November.")])
    house.model.script("of the north", [say("After the frost.")])
    tools, (said,) = asked(house, ("chat", {"message": "When are medlars ripe?"}))
    assert tools == ["search_vault", "search_sessions", "get_session", "list_recent_sessions", "chat"]
    assert (said["status"], said["response"]) == ("done", "In November.")
    chat = {"session_id": said["session_id"]}
    _, (again, whole, recent) = asked(
        house,
        ("chat", {"message": "And those of the north?", **chat}),
        ("get_session", chat),
        ("list_recent_sessions", {"limit": 1}),
    )
    assert (again["session_id"], again["response"]) == (said["session_id"], "After the frost.")
    assert [each["text"] for each in whole["messages"]][-1] == "After the frost."
    assert [each["session_id"] for each in recent["sessions"]] == [said["session_id"]]


def test_what_does_not_fit_is_told_in_a_sentence(house: House) -> None:
    _, (nothing, unknown, foreign) = asked(
        house, ("search_vault", {}), ("sing", {}), ("get_session", {"session_id": "x"})
    )
    assert nothing["error"]["code"] == unknown["error"]["code"] == foreign["error"]["code"] == "invalid"
    assert "query" in nothing["error"]["message"]


def test_without_a_key_nobody_gets_in_and_a_login_is_none(house: House) -> None:
    address = f"{house.up.address}/mcp"
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for more in ({}, {"headers": {"Authorization": "Bearer para_x"}}, {"cookies": house.up.cookies}):
        answer = httpx.post(address, json=body, **more)  # type: ignore[arg-type]
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthenticated")
    headers = {"Authorization": f"Bearer {house.program.key}"}
    assert httpx.get(address, headers=headers).status_code == 405
    assert httpx.post(address, json=body, headers=headers | {"Host": "elsewhere.example"}).status_code == 400


def test_who_may_only_read_does_not_chat(house: House) -> None:
    made = httpx.post(
        f"{house.up.address}/api/auth/keys",
        json={"name": "reader", "scopes": ["read"]},
        cookies=house.up.cookies,
        headers={"X-CSRFToken": house.up.cookies["csrftoken"]},
    )
    call = {"name": "chat", "arguments": {"message": "x"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {
        "Authorization": f"Bearer {made.json()['key']}",
        "Accept": "application/json, text/event-stream",
    }
    told = httpx.post(f"{house.up.address}/mcp", json=body, headers=headers).json()["result"]
    assert json.loads(told["content"][0]["text"])["error"]["code"] == "forbidden"

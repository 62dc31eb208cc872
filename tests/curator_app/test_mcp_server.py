"""The process of the curator's tools, over stdio, with a web server that keeps what it is sent."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

from curator_app import gate, handed

ROOT = Path(__file__).resolve().parents[2]
SESSION = "7bb89502-11f0-4db7-9210-1644f2dec91d"

Sent = list[tuple[str, dict[str, str], dict[str, Any]]]


@contextmanager
def web(status: int = 200) -> Iterator[tuple[str, Sent]]:
    sent: Sent = []

    class Handler(BaseHTTPRequestHandler):
        def do_PATCH(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            sent.append((self.path, dict(self.headers), body))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps({"status": "ok"} if status == 200 else {"error": {}}).encode())

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", sent
    finally:
        server.shutdown()
        server.server_close()


def started(address: str, *arguments: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-P", "-m", handed.MODULE, "--session-id", SESSION, *arguments],
        env={handed.ADDRESS: address, handed.TOKEN: "a token", "PYTHONPATH": str(ROOT)},
    )


async def test_each_tool_changes_one_thing_of_its_session() -> None:
    with web() as (address, sent):
        async with stdio_client(started(address)) as streams, ClientSession(*streams) as client:
            await client.initialize()
            tools = (await client.list_tools()).tools
            assert tuple(tool.name for tool in tools) == gate.TOOLS
            for tool in tools:
                (argument,) = tool.input_schema["properties"]
                answer = await client.call_tool(tool.name, {argument: "x" * 10_000})
                assert not answer.is_error
            assert (await client.call_tool("update_title", {"title": 7})).is_error
    assert {path for path, _, _ in sent} == {f"/api/internal/sessions/{SESSION}"}
    assert [*map(list, (body for _, _, body in sent))] == [["title"], ["summary"], ["activity"]]
    assert max(len(text) for _, _, body in sent for text in body.values()) == 4_000
    assert {headers["Authorization"] for _, headers, _ in sent} == {"Bearer a token"}
    assert {headers["Host"] for _, headers, _ in sent} == {"localhost"}


@pytest.mark.parametrize(("what", "others"), [("title", "summary"), ("summary", "title")])
async def test_for_what_a_person_set_there_is_no_tool(what: str, others: str) -> None:
    with web() as (address, sent):
        parameters = started(address, f"--{what}-is-set")
        async with stdio_client(parameters) as streams, ClientSession(*streams) as client:
            await client.initialize()
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names == [f"update_{others}", "log_activity"]
            assert (await client.call_tool(f"update_{what}", {what: "Mine"})).is_error
    assert sent == []


@pytest.mark.parametrize("how", ["refused", "away"])
async def test_a_server_that_refuses_or_is_away_is_an_error_result(how: str) -> None:
    with web(status=503) as (address, _):
        there = address if how == "refused" else "http://127.0.0.1:9"
        async with stdio_client(started(there)) as streams, ClientSession(*streams) as client:
            await client.initialize()
            assert (await client.call_tool("update_summary", {"summary": "x"})).is_error


def test_it_knows_neither_the_server_nor_the_sdk() -> None:
    code = f"import sys, {handed.MODULE}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    environment = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
    loaded = subprocess.run(
        [sys.executable, "-P", "-c", code], env=environment, capture_output=True, text=True
    )
    modules = set(loaded.stdout.split())
    assert "curator_app" in modules, loaded.stderr
    assert not modules & {"django", "claude_agent_sdk", "sessions_app", "agents_app", "permissions_app"}

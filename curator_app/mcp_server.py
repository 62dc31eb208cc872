"""`python -m curator_app.mcp_server --session-id ID`: the curator's tools over stdio, for that session alone.

A process of the agent's, so it has nothing of the server's: no database, no model key, no Django. It speaks
to the web server with a token that is good for this session while its run lives, and finds both in its
environment: a command line is read by everybody.
"""

import argparse
import http.client
import json
import os
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from curator_app.handed import ADDRESS, TOKEN

PATIENCE = 15.0  # seconds, for an answer of the web server
LONGEST = 4_000  # characters that are sent on; what is kept of them is the server's to say
UNREACHABLE = "Parachute could not be reached. Go on without this tool."

# A tool: what it changes at the server, the name of its argument, and what it is for.
TOOLS = {
    "update_title": ("title", "title", "Give the conversation a title of 3 to 8 words."),
    "update_summary": ("summary", "summary", "Say in one to three sentences what the conversation is about."),
    "log_activity": ("activity", "summary", "Log in one sentence what was done in this exchange."),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="curator_app.mcp_server", description=__doc__)
    parser.add_argument("--session-id", required=True)
    parser.add_argument("--title-is-set", action="store_true", help="a person set it: no tool for that")
    parser.add_argument("--summary-is-set", action="store_true", help="the same")
    given = parser.parse_args()
    variables = os.environ  # noqa: TID251 - a process of its own, which imports nothing of the server
    client = Client(variables[ADDRESS], variables[TOKEN], given.session_id)
    is_set = {"update_title": given.title_is_set, "update_summary": given.summary_is_set}
    offered = [name for name in TOOLS if not is_set.get(name)]
    anyio.run(serve, client, offered)


class Client:
    def __init__(self, address: str, token: str, session_id: str) -> None:
        parts = urlsplit(address)
        self._host, self._port = parts.hostname or "", parts.port
        self._path = f"/api/internal/sessions/{session_id}"
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Host": "localhost",  # by which the server is always known, wherever it listens
        }

    def change(self, name: str, text: str) -> tuple[bool, dict[str, Any]]:
        """Whether it was done, and what to tell the model."""
        connection = http.client.HTTPConnection(self._host, self._port, timeout=PATIENCE)
        try:
            connection.request("PATCH", self._path, json.dumps({name: text}), self._headers)
            answer = connection.getresponse()
            body = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError):
            return False, {"error": {"code": "unreachable", "message": UNREACHABLE}}
        finally:
            connection.close()
        return answer.status == 200, body


async def serve(client: Client, offered: list[str]) -> None:
    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(name) for name in offered])

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in offered:
            return _told(False, {"error": {"code": "invalid", "message": "There is no such tool."}})
        changes, argument, _ = TOOLS[params.name]
        text = (params.arguments or {}).get(argument)
        if not isinstance(text, str):
            return _told(False, {"error": {"code": "invalid", "message": f"Give `{argument}` as text."}})
        return _told(*await anyio.to_thread.run_sync(client.change, changes, text[:LONGEST]))

    server: Server[Any] = Server("curator", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _described(name: str) -> types.Tool:
    _, argument, description = TOOLS[name]
    schema = {
        "type": "object",
        "properties": {argument: {"type": "string"}},
        "required": [argument],
        "additionalProperties": False,
    }
    return types.Tool(name=name, description=description, input_schema=schema)


def _told(is_done: bool, body: dict[str, Any]) -> types.CallToolResult:
    text = json.dumps(body, ensure_ascii=False)
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=not is_done)


if __name__ == "__main__":
    main()

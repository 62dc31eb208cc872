"""Our own tools, as the SDK wants them."""

import json
from collections import defaultdict, deque
from collections.abc import Mapping
from typing import Any

from claude_agent_sdk import McpSdkServerConfig, SdkMcpTool, create_sdk_mcp_server

from agents_app.tools.own import OwnServer, OwnTool
from permissions_app.rules.tools import ToolCall

Key = tuple[str, str]  # a tool's whole name, and its arguments


class Uses:
    """Which use a call of a tool is. The SDK hands its arguments over and no id; the gate has heard of each
    with its id a moment before. Of two that are alike in every word it does not matter which is which."""

    def __init__(self) -> None:
        self._allowed: defaultdict[Key, deque[str]] = defaultdict(deque)

    def allowed(self, call: ToolCall) -> None:
        if call.name.startswith("mcp__"):
            self._allowed[_key(call.name, call.input)].append(call.id)

    def take(self, name: str, arguments: Mapping[str, Any]) -> str:
        waiting = self._allowed.pop(key := _key(name, arguments), deque())
        use = waiting.popleft() if waiting else ""
        if waiting:
            self._allowed[key] = waiting
        return use


def as_sdk(servers: tuple[OwnServer, ...], uses: Uses) -> dict[str, McpSdkServerConfig]:
    return {
        server.name: create_sdk_mcp_server(
            server.name, tools=[_tool(server.full_name(tool), tool, uses) for tool in server.tools]
        )
        for server in servers
    }


def _tool(full_name: str, tool: OwnTool, uses: Uses) -> SdkMcpTool[Any]:
    async def answer(arguments: Mapping[str, Any]) -> dict[str, Any]:
        told = await tool.told(arguments, uses.take(full_name, arguments))
        return {"content": [{"type": "text", "text": told.text}], "is_error": told.is_error}

    return SdkMcpTool(tool.name, tool.description, dict(tool.schema), answer)


def _key(name: str, arguments: Mapping[str, Any]) -> Key:
    return name, json.dumps(arguments, sort_keys=True, default=str)

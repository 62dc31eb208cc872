"""The SDK by itself, as a program would use it with nothing of ours between: what ours is compared with."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    ResultMessage,
    StreamEvent,
)


class Alone:
    def __init__(self, url: str, vault: Path) -> None:
        self._url = url
        self._vault = vault

    @asynccontextmanager
    async def client(self) -> AsyncIterator[ClaudeSDKClient]:
        async def allow(*_: object) -> PermissionResultAllow:
            return PermissionResultAllow()

        with tempfile.TemporaryDirectory() as config:
            environment = {
                "ANTHROPIC_BASE_URL": self._url,
                "ANTHROPIC_API_KEY": "bench",
                "CLAUDE_CONFIG_DIR": config,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            }
            options = ClaudeAgentOptions(
                env=environment,
                cwd=self._vault,
                setting_sources=[],
                include_partial_messages=True,
                system_prompt={"type": "preset", "preset": "claude_code"},
                tools=["Read", "Write", "Edit", "Glob", "Grep", "Bash"],
                can_use_tool=allow,
                model="sonnet",
            )
            async with ClaudeSDKClient(options) as client:
                yield client

    async def new_chat(self, message: str) -> float:
        began = perf_counter()
        async with self.client() as client:
            return await first_text(client, message, began)

    async def next_messages(self, message: str, times: int) -> list[float]:
        async with self.client() as client:
            await first_text(client, message, perf_counter())
            return [await first_text(client, message, perf_counter()) for _ in range(times)]

    async def at_once(self, message: str, times: int) -> list[float]:
        return list(await asyncio.gather(*(self.new_chat(message) for _ in range(times))))


async def first_text(client: ClaudeSDKClient, message: str, began: float) -> float:
    """Seconds until the first piece of text; the answer is read to its end all the same."""
    await client.query(message)
    first = 0.0
    async for said in client.receive_messages():
        if isinstance(said, StreamEvent) and not first and _is_text(said):
            first = perf_counter() - began
        if isinstance(said, ResultMessage):
            return first
    raise AssertionError("The SDK's stream ended without a result.")


def _is_text(said: StreamEvent) -> bool:
    return bool(said.event.get("delta", {}).get("type") == "text_delta")

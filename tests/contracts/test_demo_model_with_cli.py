"""The real CLI, driven through the SDK, with the demo model behind a unix socket."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    ResultMessage,
    StreamEvent,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)

from agents_app.demo_model import server, talk

NOTE = "# Quinces\n\nThey ripen in October."


@dataclass
class Turn:
    """What one message led to."""

    text: str = ""
    deltas: int = 0
    tools: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    model: str = ""
    is_error: bool = False


class Chat:
    def __init__(self, client: ClaudeSDKClient, vault: Path) -> None:
        self.vault = vault
        self._client = client

    async def say(self, text: str) -> Turn:
        turn = Turn()
        await self._client.query(text)
        async for message in self._client.receive_response():
            _note(turn, message)
        return turn


def _note(turn: Turn, message: Any) -> None:
    match message:
        case StreamEvent(event={"type": "content_block_delta", "delta": {"type": "text_delta"}}):
            turn.deltas += 1
        case AssistantMessage(content=blocks, model=model):
            turn.model = model
            turn.text += "".join(block.text for block in blocks if isinstance(block, TextBlock))
            turn.tools += [block.name for block in blocks if isinstance(block, ToolUseBlock)]
            turn.thoughts += [block.thinking for block in blocks if isinstance(block, ThinkingBlock)]
        case ResultMessage(is_error=is_error):
            turn.is_error = is_error


async def _gate(given: Any, tool_use_id: str | None, context: Any) -> Any:
    denied = str(given["tool_input"].get("file_path", "")).endswith(".env")
    answer = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny" if denied else "allow",
        "permissionDecisionReason": "Files like .env are on the deny list." if denied else "allowed",
    }
    return {"hookSpecificOutput": answer}


@pytest.fixture
async def socket() -> AsyncIterator[Path]:
    # Not in tmp_path: the path of a unix socket ends at 108 bytes.
    with tempfile.TemporaryDirectory(prefix="demo") as folder:
        runner = server.runner(talk.answer)
        await runner.setup()
        await web.UnixSite(runner, Path(folder) / "m.sock").start()
        yield Path(folder) / "m.sock"
        await runner.cleanup()


@pytest.fixture
async def chat(tmp_path: Path, socket: Path) -> AsyncIterator[Chat]:
    vault = tmp_path / "vault"
    (vault / "Garden").mkdir(parents=True)
    (vault / "Garden/Quinces.md").write_text(NOTE)
    (vault / ".env").write_text("KEY=never-to-be-seen\n")
    options = ClaudeAgentOptions(
        cwd=vault,
        env={
            "ANTHROPIC_UNIX_SOCKET": str(socket),
            "ANTHROPIC_BASE_URL": "http://door.invalid",
            "ANTHROPIC_API_KEY": "any",
            "CLAUDE_CONFIG_DIR": str(tmp_path / "config"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
            "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
        },
        setting_sources=[],
        strict_mcp_config=True,
        verbatim_prompts=True,
        permission_mode="default",
        tools=["Read", "Write", "Bash", "Glob", "Grep"],
        system_prompt={"type": "preset", "preset": "claude_code"},
        include_partial_messages=True,
        hooks={"PreToolUse": [HookMatcher(hooks=[_gate], on_failure="block", timeout=30)]},
        model="sonnet",
    )
    async with asyncio.timeout(60), ClaudeSDKClient(options) as client:
        yield Chat(client, vault)


async def test_it_says_what_it_is(chat: Chat) -> None:
    turn = await chat.say("hello")
    assert (turn.model, turn.tools) == ("demo", [])
    assert "I am not Claude" in turn.text
    assert turn.deltas > 10


async def test_it_lists_reads_and_searches(chat: Chat) -> None:
    listed, read, searched = [
        await chat.say(text) for text in ("list my notes", "read Garden/Quinces.md", "search for october")
    ]
    assert (listed.tools, read.tools, searched.tools) == (["Glob"], ["Read"], ["Grep"])
    assert "- Garden/Quinces.md" in listed.text
    assert "> They ripen in October." in read.text
    assert read.thoughts
    assert "Garden/Quinces.md, line 3" in searched.text


async def test_it_writes_each_note_under_a_name_of_its_own(chat: Chat) -> None:
    first, second = [await chat.say("write a note about pears") for _ in range(2)]
    assert (first.tools, second.tools) == (["Glob", "Write"], ["Glob", "Write"])
    assert sorted(path.name for path in (chat.vault / "Notes").iterdir()) == ["pears-2.md", "pears.md"]
    assert (chat.vault / "Notes/pears.md").read_text().startswith("# Pears\n")


async def test_it_runs_a_command(chat: Chat) -> None:
    turn = await chat.say("run `echo it is $((40 + 2))`")
    assert turn.tools == ["Bash"]
    assert "it is 42" in turn.text


async def test_a_refusal_is_explained_and_the_secret_stays(chat: Chat) -> None:
    turn = await chat.say("read .env")
    assert turn.tools == ["Read"]
    assert "Files like .env are on the deny list." in turn.text
    assert "never-to-be-seen" not in turn.text


async def test_an_error_ends_one_turn_and_not_the_chat(chat: Chat) -> None:
    failed, after = [await chat.say(text) for text in ("show me an error", "hello")]
    assert failed.is_error
    assert not after.is_error
    assert "I am not Claude" in after.text

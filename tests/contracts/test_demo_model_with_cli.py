"""The real CLI, driven through the SDK, with the demo model behind a unix socket."""

import asyncio
import re
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    StreamEvent,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)

from agents_app.errors import AgentError
from agents_app.model.demo import server, story, talk
from agents_app.model.door import Door
from agents_app.model.endpoint import ModelEndpoint
from agents_app.runtimes.base import RunFailed
from agents_app.runtimes.claude.runtime import ClaudeRuntime
from agents_app.runtimes.events import Answered, BlockKind, Delta, Ended, Said, Used
from agents_app.tools.own import OwnServer, OwnTool
from tests.contracts.stage import Stage, sandbox_that_runs
from tests.depth import few_of

ROOT = Path(__file__).parents[2]
NOTE = "# Quinces\n\nThey ripen in October."


@dataclass
class Turn:
    """What one message led to."""

    text: str = ""
    deltas: int = 0
    tools: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    model: str = ""


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


# The story: each chip of an empty chat, played through the runtime, the door, the gate and a wall.


def sample(vault: Path) -> None:
    shutil.copytree(ROOT / "sample-vault", vault, dirs_exist_ok=True)


def of_ones_own(vault: Path) -> None:
    (vault / "Deep/er").mkdir(parents=True)
    (vault / "Deep/er/Thoughts.md").write_text("# Thoughts\n\nMine.\n")
    (vault / "Notes").mkdir()
    (vault / "Notes/pears.md").write_text("# Pears\n\nWhat I know of pears.\n")


def empty(vault: Path) -> None:
    pass


VAULTS = [sample, of_ones_own, empty]


@pytest.fixture
async def runtime(socket: Path) -> AsyncIterator[ClaudeRuntime]:
    door = Door(socket.with_name("door.sock"), ModelEndpoint("http://demo.invalid", socket=socket))
    await door.open()
    runtime = ClaudeRuntime(door)
    yield runtime
    await runtime.close()
    await door.close()


@pytest.fixture(params=few_of(VAULTS, sample))
def vault(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    request.param(tmp_path / "own")
    return tmp_path / "own"


@pytest.fixture
def stage(runtime: ClaudeRuntime, vault: Path, settings: Any) -> Stage:
    return Stage(runtime, sandbox_that_runs("bubblewrap"), vault, Path(settings.PARACHUTE_HOME))


def chip(label: str) -> str:
    return next(chip.text for chip in story.CHIPS if str(chip.label) == label)


@dataclass
class Seen:
    tools: list[str]
    text: str
    thoughts: str
    denied: list[str]
    problems: list[str]


async def played(stage: Stage, label: str, **more: Any) -> Seen:
    before = len(stage.gate.denied)
    heard = await stage.play(chip(label), **more)
    end = heard[-1]
    assert isinstance(end, Ended)
    assert end.model == "demo"
    said = [event for event in heard if isinstance(event, Said)]
    return Seen(
        tools=[event.name for event in heard if isinstance(event, Used)],
        text=end.response,
        thoughts="".join(event.content for event in said if event.kind is BlockKind.THINKING),
        denied=[call.name for call in stage.gate.denied[before:]],
        problems=[event.content for event in heard if isinstance(event, Answered) and event.is_error],
    )


def test_every_chip_is_played_below() -> None:
    played_below = set(re.findall(r'(?:played\(stage, |chip\()"([^"]+)"', Path(__file__).read_text()))
    assert played_below == {str(chip.label) for chip in story.CHIPS}


async def test_chip_reads_a_note(stage: Stage, vault: Path) -> None:
    for _ in range(2):
        seen = await played(stage, "Read a note")
        has_notes = any(vault.rglob("*.md"))
        assert seen.tools == (["Glob", "Read"] if has_notes else ["Glob"])
        assert seen.problems == []
        assert ("\n> #" if has_notes else "no note here yet") in seen.text


async def test_chips_write_a_note_and_change_it(stage: Stage, vault: Path) -> None:
    before = {path: path.read_text() for path in vault.rglob("*.md")}
    for _ in range(2):
        written = await played(stage, "Write a note")
        assert (written.tools, written.problems) == (["Glob", "Write"], [])
    for _ in range(2):
        changed = await played(stage, "Change a note")
        assert (changed.tools[-1], changed.problems) == ("Edit", [])
        assert "one line more" in changed.text
    assert any("They ripen" in path.read_text() for path in (vault / "Notes").iterdir())
    assert all(path.read_text() == text for path, text in before.items())


async def test_chip_changes_a_note_where_there_was_none(stage: Stage) -> None:
    for _ in range(2):
        changed = await played(stage, "Change a note")
        assert (changed.tools[-1], changed.problems) == ("Edit", [])


async def test_chip_runs_a_command(stage: Stage, vault: Path) -> None:
    for _ in range(2):
        seen = await played(stage, "Run a command")
        assert (seen.tools, seen.problems) == (["Bash"], [])
        assert all(path.name in seen.text for path in vault.iterdir() if not path.name.startswith("."))


async def test_chip_is_denied_a_secret_and_says_why(stage: Stage) -> None:
    for _ in range(2):
        seen = await played(stage, "Try to read a secret")
        assert (seen.tools, seen.denied) == (["Read"], ["Read"])
        assert "Your secrets stayed where they are" in seen.text
        assert "not-a-real-key" not in seen.text


@pytest.mark.parametrize("vault", [sample], indirect=True)
async def test_chip_thinks_first(stage: Stage) -> None:
    for _ in range(2):
        seen = await played(stage, "Think first")
        assert "they asked me to think" in seen.thoughts
        assert "Write down" in seen.text


@pytest.mark.parametrize("vault", [sample], indirect=True)
async def test_chip_answers_at_length(stage: Stage) -> None:
    heard = await stage.play(chip("A long answer"))
    assert sum(isinstance(event, Delta) for event in heard) > 100
    assert "```python" in next(event.content for event in heard if isinstance(event, Said))


@pytest.mark.parametrize("vault", [sample], indirect=True)
async def test_chip_starts_another_agent_and_says_who_may(stage: Stage) -> None:
    """Here nobody may: the tools come with the right. With them it is played in test_demo_helpers.py."""
    seen = await played(stage, "Let an agent start another")
    assert (seen.tools, "Can spawn" in seen.text) == ([], True)


@pytest.mark.parametrize("vault", [sample], indirect=True)
async def test_chips_share_a_report_and_show_a_heartbeat(stage: Stage) -> None:
    used: list[tuple[str, Any]] = []

    def tool(name: str) -> OwnTool:
        async def call(arguments: Mapping[str, Any], use_id: str) -> Any:
            used.append((name, arguments))
            return {"status": "ok"}

        return OwnTool(name, name, {"type": "object", "properties": {}}, call)

    server = OwnServer("parachute", (tool("share"), tool("agent_status")))
    stage.gate.setting = replace(stage.gate.setting, own_servers=frozenset({"parachute"}))
    shared = await played(stage, "A report for later", servers=(server,))
    beaten = await played(stage, "A heartbeat", servers=(server,))
    assert [name for name, _given in used] == ["share", "agent_status"]
    assert used[0][1]["title"].startswith("Report:") and used[1][1]["status"] == "quiescent"
    assert "on the page **Shares**" in shared.text and "nothing is paid for" in beaten.text


@pytest.mark.parametrize("vault", [sample], indirect=True)
async def test_chip_shows_an_error_and_the_same_again_is_answered(stage: Stage) -> None:
    """At once: a person waits for it. And once more, in the same chat."""
    for _ in range(2):
        began = time.monotonic()
        with pytest.raises(RunFailed) as failed:
            await stage.play(chip("An error, and what helps"))
        error = AgentError(failed.value.code, failed.value.message).as_payload()
        assert (error["code"], error["canRetry"]) == ("overloaded", True)
        assert [action["action"] for action in error["actions"]] == ["retry"]
        assert "asked to show what happens" in error["message"]
        seen = await played(stage, "An error, and what helps")
        assert "This time it worked" in seen.text
        assert time.monotonic() - began < 20

"""What every runtime promises, and what the real CLI promises besides, behind the real door and gate."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import pytest

from agents_app.launcher import MARK
from agents_app.model.demo.wire import Failure, Reply, Text, Thinking, say
from agents_app.runtimes.base import Run, RunFailed
from agents_app.runtimes.claude.runtime import ClaudeRuntime
from agents_app.runtimes.events import (
    Answered,
    BlockKind,
    Delta,
    Ended,
    Ready,
    RuntimeEvent,
    Said,
    Used,
)
from agents_app.runtimes.scripted import Begin, Fail, Pause, Say, ScriptedRuntime, Use
from agents_app.sandboxes.bubblewrap import CERTIFICATES_IN
from permissions_app.gate import Answer
from permissions_app.rules.decision import Decision, Verdict, allow
from permissions_app.rules.ladder import ToolCall
from permissions_app.rules.setting import Setting, Trust
from sessions_app.history import transcripts
from tests.contracts.stage import KEY, PATIENCE, Stage, door_to, sandbox_that_runs
from tests.depth import few_of
from tests.scripted_model import ScriptedModel, calls

NOTE = "Quinces ripen in October."


class Play(Protocol):
    """One small play that each runtime is given in its own words. Its texts: see the two below."""

    stage: Stage

    def says(self, key: str, *parts: str) -> None: ...

    def uses(self, key: str, tool: str, then: str, **given: Any) -> None: ...

    def stands_in_mid_text(self, key: str) -> None: ...

    def pauses_in_mid_text(self, key: str, begin: str, end: str) -> Callable[[], None]: ...

    def fails(self, key: str) -> None: ...


class ScriptedPlay:
    def __init__(self, stage: Stage, runtime: ScriptedRuntime) -> None:
        self.stage, self.scripts = stage, runtime.scripts

    def says(self, key: str, *parts: str) -> None:
        self.scripts[key] = [Say("Hm.", BlockKind.THINKING), *(Say(part) for part in parts)]

    def uses(self, key: str, tool: str, then: str, **given: Any) -> None:
        def does() -> str:
            if tool == "Write":
                Path(given["file_path"]).write_text(given["content"])
            return "1 file" if tool == "Write" else Path(given["file_path"]).read_text()

        self.scripts[key] = [Use(tool, given, does), Say(then)]

    def stands_in_mid_text(self, key: str) -> None:
        self.scripts[key] = [Begin("Half a "), Pause(asyncio.Event(), asyncio.Event())]

    def pauses_in_mid_text(self, key: str, begin: str, end: str) -> Callable[[], None]:
        go_on = asyncio.Event()
        self.scripts[key] = [Begin(begin), Pause(asyncio.Event(), go_on), Say(begin + end)]
        return go_on.set

    def fails(self, key: str) -> None:
        self.scripts[key] = [Fail("context_exceeded")]


class ClaudePlay:
    def __init__(self, stage: Stage, model: ScriptedModel) -> None:
        self.stage, self.model = stage, model

    def says(self, key: str, *parts: str) -> None:
        self.model.script(key, [Reply((Thinking("Hm."), *(Text(part) for part in parts)))])

    def uses(self, key: str, tool: str, then: str, **given: Any) -> None:
        self.model.script(key, [calls(tool, **given), say(then)])

    def stands_in_mid_text(self, key: str) -> None:
        self.model.script(key, [say("Half a ", self.model.hold(), "sentence.")])

    def pauses_in_mid_text(self, key: str, begin: str, end: str) -> Callable[[], None]:
        gate = self.model.hold()
        self.model.script(key, [say(begin, gate, end)])
        return gate.release

    def fails(self, key: str) -> None:
        too_long = Failure(400, "invalid_request_error", "prompt is too long: 9 tokens > 1 maximum")
        self.model.script(key, [too_long])


@pytest.fixture(scope="module")
def model() -> Any:
    with ScriptedModel() as model:
        yield model


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault/Note.md").write_text(NOTE)
    return tmp_path / "vault"


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
def home(settings: Any) -> Path:
    settings.PARACHUTE_AGENT_ENVIRONMENT |= {"CLAUDE_CODE_MAX_RETRIES": "1"}
    return Path(settings.PARACHUTE_HOME)


@pytest.fixture
async def claude(stack: AsyncExitStack, model: ScriptedModel) -> ClaudeRuntime:
    return ClaudeRuntime(await stack.enter_async_context(door_to(model.url)), most_warm=0)


@pytest.fixture(params=few_of(["none", "bubblewrap"], "bubblewrap"))
def stage(request: pytest.FixtureRequest, claude: ClaudeRuntime, vault: Path, home: Path) -> Stage:
    """The real CLI, where commands run: behind a wall, or without one for an operator."""
    sandbox = sandbox_that_runs(request.param)
    return Stage(claude, sandbox, vault, home, Trust.VAULT if sandbox.is_wall else Trust.FULL)


@pytest.fixture
def hostless(claude: ClaudeRuntime, vault: Path, home: Path) -> Stage:
    """The real CLI, where it does not matter behind what."""
    return Stage(claude, sandbox_that_runs("none"), vault, home, Trust.FULL)


PLAYS = ("scripted", "claude, no wall", "claude behind bubblewrap")


@pytest.fixture(params=few_of(PLAYS, "scripted", "claude behind bubblewrap"))
def play(
    request: pytest.FixtureRequest, claude: ClaudeRuntime, model: ScriptedModel, vault: Path, home: Path
) -> Play:
    sandbox = sandbox_that_runs("bubblewrap" if "bubblewrap" in request.param else "none")
    if request.param == "scripted":
        runtime = ScriptedRuntime()
        return ScriptedPlay(Stage(runtime, sandbox, vault, home), runtime)
    return ClaudePlay(Stage(claude, sandbox, vault, home), model)


def end_of(heard: list[RuntimeEvent]) -> Ended:
    end = heard[-1]
    assert isinstance(end, Ended)
    return end


def of(kind: type, heard: list[RuntimeEvent]) -> list[Any]:
    return [event for event in heard if isinstance(event, kind)]


# What every runtime promises.


async def test_what_is_said_while_a_tool_runs_is_read_with_its_answer(play: Play) -> None:
    """In the same answer: there is one end, and nothing is owed."""
    play.uses("look", "Read", "Both are answered.", file_path=str(play.stage.vault / "Note.md"))
    play.says("steer", "Steered.")
    said = uuid4()

    async def steer(call: ToolCall, directory: Path) -> None:
        await runs[0].inject(said, "steer")

    runs: list[Run] = []
    play.stage.gate.meanwhile = steer

    async def remember(run: Run) -> None:
        runs.append(run)

    heard = await play.stage.play("look", remember)
    assert len(of(Ended, heard)) == 1
    assert transcripts.holds(transcripts.raw(play.stage.session_id) or b"", said)


async def test_what_is_said_while_it_speaks_is_answered_after_it(play: Play) -> None:
    go_on = play.pauses_in_mid_text("first", "On", "e.")
    play.says("more", "Two.")
    said = uuid4()

    async def say_more(run: Run) -> None:
        await play.stage.has_heard_text.wait()
        await run.inject(said, "more")
        go_on()

    heard = await play.stage.play("first", say_more)
    assert [end.response for end in of(Ended, heard)] == ["One.", "Two."]
    assert transcripts.holds(transcripts.raw(play.stage.session_id) or b"", said)


async def test_it_is_ready_first_ends_once_and_last_and_its_deltas_join_to_their_blocks(play: Play) -> None:
    text = "  They ripen\n\nin *October*: 🍐.  \n"
    play.says("ripe", text, "And pears, too.")
    heard = await play.stage.play("when are they ripe?")
    assert isinstance(heard[0], Ready)
    assert [type(event) for event in (*of(Ready, heard), *of(Ended, heard), heard[-1])] == [
        Ready,
        Ended,
        Ended,
    ]
    assert blocks(heard) == [
        (BlockKind.THINKING, "Hm."),
        (BlockKind.TEXT, text),
        (BlockKind.TEXT, "And pears, too."),
    ]
    assert [(said.kind, said.content) for said in of(Said, heard)] == blocks(heard)
    assert (end_of(heard).interrupted, end_of(heard).response) == (False, "And pears, too.")


async def test_an_allowed_tool_runs_after_the_gate_and_a_denied_one_never(play: Play) -> None:
    inside, outside = play.stage.vault / "New.md", play.stage.vault.parent / "Out.md"
    play.uses("inside", "Write", "Written.", file_path=str(inside), content="new")
    play.uses("outside", "Write", "I may not.", file_path=str(outside), content="new")
    allowed, denied = [await play.stage.play(text) for text in ("write inside", "write outside")]
    assert (inside.exists(), outside.exists()) == (True, False)
    assert [answer.is_error for answer in of(Answered, allowed + denied)] == [False, True]
    assert [used.id for used in of(Used, allowed + denied)] == [call.id for call, _ in play.stage.gate.asked]
    assert [call.name for call in play.stage.gate.denied] == ["Write"]
    assert (end_of(allowed).response, end_of(denied).response) == ("Written.", "I may not.")


async def test_the_reason_of_a_denial_is_the_tools_answer(play: Play) -> None:
    play.uses("secret", "Read", "I may not.", file_path="/etc/hostname")
    (answer,) = of(Answered, await play.stage.play("the secret"))
    assert "outside the vault" in answer.content


@pytest.fixture(params=["scripted", "claude"])
def walled(
    request: pytest.FixtureRequest, claude: ClaudeRuntime, model: ScriptedModel, vault: Path, home: Path
) -> Play:
    wall = sandbox_that_runs("bubblewrap")
    if request.param == "scripted":
        runtime = ScriptedRuntime()
        return ScriptedPlay(Stage(runtime, wall, vault, home), runtime)
    return ClaudePlay(Stage(claude, wall, vault, home), model)


async def test_what_a_person_allows_and_the_wall_does_not_is_written_for_the_agent(walled: Play) -> None:
    async def allows(call: ToolCall, decision: Decision, setting: Setting) -> Answer:
        return Answer(allow("person", "Yes."))

    stage, path = walled.stage, walled.stage.vault / "AGENTS.md"
    stage.gate._asks = allows
    walled.uses("steer", "Write", "It is written.", file_path=str(path), content=NOTE)
    (answer,) = of(Answered, await stage.play("steer"))
    assert path.read_text() == NOTE
    assert (answer.is_error, "Parachute wrote AGENTS.md for you" in answer.content) == (False, True)
    assert stage.gate.denied == []


async def test_what_the_rules_allow_and_the_wall_does_not_is_too(walled: Play) -> None:
    stage, path = walled.stage, walled.stage.vault / "Pears.md"
    walled.uses("write", "Write", "It is written.", file_path=str(path), content=NOTE)
    (answer,) = of(Answered, await stage.play("write", writable=()))
    assert path.read_text() == NOTE
    assert (answer.is_error, "Parachute wrote Pears.md for you" in answer.content) == (False, True)
    assert [decision.verdict for _, decision in stage.gate.asked] == [Verdict.ASK]


async def test_interrupted_in_mid_text_it_ends_soon_and_says_so(play: Play) -> None:
    play.stands_in_mid_text("story")

    async def interrupt(run: Any) -> None:
        await play.stage.has_heard_text.wait()
        await run.interrupt()

    heard = await play.stage.play("a story", interrupt)
    assert end_of(heard).interrupted
    assert blocks(heard) == [(BlockKind.TEXT, "Half a ")]


async def test_what_fails_raises_with_a_code(play: Play) -> None:
    play.fails("too long")
    with pytest.raises(RunFailed) as failure:
        await play.stage.play("this is too long")
    assert failure.value.code == "context_exceeded"


async def test_the_message_is_in_the_transcript_under_its_id_and_the_session_goes_on(play: Play) -> None:
    play.says("first", "One.")
    play.says("second", "Two.")
    for text in ("the first", "the second"):
        await play.stage.play(text)
    transcript = transcripts.raw(play.stage.session_id) or b""
    assert [transcripts.holds(transcript, request.message_id) for request in play.stage.requests] == [
        True,
        True,
    ]
    said = [str(entry["message"]["content"]) for entry in transcripts.entries(transcript)]
    places = [
        next(i for i, text in enumerate(said) if word in text) for word in ("the first", "One.", "the second")
    ]
    assert places == sorted(places)


def blocks(heard: list[RuntimeEvent]) -> list[tuple[BlockKind, str]]:
    """The live text, as the deltas make it."""
    found: list[tuple[BlockKind, str]] = []
    for delta in of(Delta, heard):
        if delta.starts:
            found.append((delta.kind, ""))
        assert found[-1][0] is delta.kind
        found[-1] = (delta.kind, found[-1][1] + delta.text)
    return found


# What the real CLI promises besides.


class TestTools:
    async def test_interrupted_in_mid_tool_it_ends_soon(self, stage: Stage, model: ScriptedModel) -> None:
        model.script("wait", [calls("Bash", command="touch started; sleep 600; touch ended")])

        async def interrupt(run: Any) -> None:
            await until((stage.vault / "started").exists)
            await run.interrupt()

        heard = await stage.play("wait", interrupt)
        assert end_of(heard).interrupted
        assert not (stage.vault / "ended").exists()

    async def test_a_sub_agents_tools_meet_the_gate_too(self, stage: Stage, model: ScriptedModel) -> None:
        task = {"description": "look", "prompt": "subtask: look around", "subagent_type": "general-purpose"}
        model.script("delegate", [calls("Task", **task), say("It may not.")])
        files = [stage.vault / name for name in ("Plan.md", "CLAUDE.md")]
        writes = [calls("Write", file_path=str(file), content="x") for file in files]
        model.script("subtask", [*writes, say("Half of it.")])
        heard = await stage.play("delegate it")
        delegated, *inner = of(Used, heard)
        assert [used.parent_id for used in inner] == [delegated.id, delegated.id]
        assert [call.id for call, _ in stage.gate.asked] == [delegated.id, *(used.id for used in inner)]
        assert [call.id for call in stage.gate.denied] == [inner[-1].id]
        assert [file.exists() for file in files] == [True, False]
        assert [said.content for said in of(Said, heard)] == ["It may not."]

    async def test_what_the_cli_refuses_itself_is_told_to_the_gate(
        self, hostless: Stage, model: ScriptedModel
    ) -> None:
        (hostless.vault / ".env").write_text("KEY=never-to-be-seen")
        model.script("env", [calls("Read", file_path=str(hostless.vault / ".env")), say("I may not.")])
        (answer,) = of(Answered, await hostless.play("env"))
        assert (answer.is_error, "never-to-be-seen" in answer.content) == (True, False)
        assert [call.name for call in hostless.gate.denied] == ["Read"]

    async def test_a_search_does_not_find_what_is_secret(self, stage: Stage, model: ScriptedModel) -> None:
        (stage.vault / ".env").write_text("KEY=quinces-never-to-be-seen")
        model.script("search", [calls("Grep", pattern="uinces", output_mode="content"), say("Found.")])
        (answer,) = of(Answered, await stage.play("search"))
        assert NOTE in answer.content
        assert "never-to-be-seen" not in answer.content


class TestPrompts:
    async def test_they_reach_the_model_and_never_a_command_line(
        self, stage: Stage, model: ScriptedModel
    ) -> None:
        seen: list[str] = []

        def looks(asked: Any) -> Reply:
            seen.extend(command_lines(stage))
            return say("ok")

        model.script("hi", [looks])
        append = "The garden is large. " * 15_000 + "The append ends here."
        await stage.play("hi there", append=append)
        assert len(append) > 300_000
        system = model.asked("hi there")[-1].system
        assert "The append ends here." in system
        assert "Claude" in system
        assert seen
        assert not [line for line in seen if "garden" in line]

    async def test_an_own_system_prompt_takes_the_place_of_the_preset(
        self, hostless: Stage, model: ScriptedModel
    ) -> None:
        await hostless.play("hello pear", system_prompt="You are a pear.")
        system = model.asked("hello pear")[-1].system
        assert "You are a pear." in system
        assert "software engineering" not in system

    async def test_a_changed_prompt_counts_in_a_session_that_goes_on(
        self, hostless: Stage, model: ScriptedModel
    ) -> None:
        for number, text in enumerate(("hello one", "hello two")):
            await hostless.play(text, append=f"This is version {number}.")
        system = model.asked("hello two")[-1].system
        assert ("version 1" in system, "version 0" in system) == (True, False)

    async def test_an_at_path_stays_text(self, hostless: Stage, model: ScriptedModel) -> None:
        await hostless.play("what is in @Note.md and @/etc/hostname?")
        (asked,) = model.asked("@Note.md")
        assert NOTE not in str(asked.body)


class TestATranscriptThatWasOnlyBegun:
    @pytest.mark.parametrize("begun", ["", '{"type":"queue-operation"}\n', '{"type":"queue-op'])
    async def test_is_in_nobodys_way(self, hostless: Stage, model: ScriptedModel, begun: str) -> None:
        folder = hostless.config / "projects" / transcripts.encoded(hostless.vault)
        folder.mkdir(parents=True)
        (folder / f"{hostless.session_id}.jsonl").write_text(begun)
        await hostless.play("hi")
        transcript = transcripts.raw(hostless.session_id) or b""
        assert transcripts.holds(transcript, hostless.requests[0].message_id)


class TestWhatIsLeft:
    # One that has its session, its parent and its environment no more is found behind a wall only.
    LEAVES = "setsid sleep 4321 & (setsid sleep 4321 &) ; touch started; echo ok"

    HOW = {
        "to its end": "list",
        "by an exception": "ZeroDivisionError",
        "cancelled": "CancelledError",
        "cancelled twice": "CancelledError",
    }

    @pytest.mark.parametrize("how", few_of(HOW, "to its end", "cancelled"))
    async def test_nothing_is_left_however_it_is_left(
        self, stage: Stage, model: ScriptedModel, how: str
    ) -> None:
        at, may_leave = model.hold(), asyncio.Event()
        model.script("leave", [calls("Bash", command=self.LEAVES), say("Half a ", at, "sentence.")])

        async def leaves(run: Any) -> None:
            await may_leave.wait()
            at.release()
            if how == "by an exception":
                raise ZeroDivisionError

        running = asyncio.create_task(stage.play("leave", leaves))
        await asyncio.to_thread(at.reached.wait, PATIENCE)
        await until(lambda: len([each for each in command_lines(stage) if each.startswith("sleep")]) == 2)
        for _ in range({"cancelled": 1, "cancelled twice": 2}.get(how, 0)):
            running.cancel()
            await asyncio.sleep(0)
        may_leave.set()
        (left,) = await asyncio.gather(running, return_exceptions=True)
        assert type(left).__name__ == self.HOW[how]
        assert processes_of(stage) == []
        assert papers_of(stage) == []
        assert stage.runtime._door._issued == {}  # type: ignore[attr-defined]


class TestTheEnvironment:
    NAMED = frozenset(
        {"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TZ", "USER", "LOGNAME", "SHELL", "PWD"}
    ) | frozenset(CERTIFICATES_IN)
    OURS = ("ANTHROPIC_", "CLAUDE_", f"{MARK}=", "PARACHUTE_OWNER=")

    async def test_it_holds_a_token_of_the_door_and_nothing_of_the_worker(
        self, stage: Stage, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("DATABASE_URL", "SECRET_KEY", "ANTHROPIC_AUTH_TOKEN", "BASH_ENV", "NODE_OPTIONS"):
            monkeypatch.setenv(name, "of-the-worker")
        (stage.vault / "own.sh").write_text("tr '\\0' '\\n' < /proc/$1/environ\n")
        model.script("env", [calls("Bash", command="sh own.sh $PPID; echo ----; env"), say("ok")])
        (answer,) = of(Answered, await stage.play("env"))
        own = answer.content.partition("----")[0]
        assert "ANTHROPIC_API_KEY=" in own
        strange = [line for line in own.splitlines() if not line.startswith(self.OURS)]
        assert {line.partition("=")[0] for line in strange} <= self.NAMED
        assert not [word for word in (KEY, "of-the-worker") if word in answer.content]
        assert model.asked("env")[-1].headers["x-api-key"] == KEY


async def until(is_so: Callable[[], bool]) -> None:
    """What other processes do, nobody tells us."""
    async with asyncio.timeout(PATIENCE):
        while not is_so():
            await asyncio.sleep(0.01)


def processes_of(stage: Stage) -> list[int]:
    """Every process that runs for this stage: its CLI, and what stands in its vault."""
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if belongs(pid, stage)]


def belongs(pid: int, stage: Stage) -> bool:
    try:
        cwd = Path(f"/proc/{pid}/cwd").readlink()
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return cwd.is_relative_to(stage.vault) and state not in "ZX"


def command_lines(stage: Stage) -> list[str]:
    lines = []
    for pid in processes_of(stage):
        try:
            lines.append(Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return lines


def papers_of(stage: Stage) -> list[Path]:
    return list((stage.home / "papers").glob("*/run-*"))

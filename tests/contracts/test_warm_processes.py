"""A process that rests between two turns: it answers the next message of its session, and nothing else."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
from django.conf import settings

from agents_app import launcher
from agents_app.launcher.still import NOT_STILL
from agents_app.launcher.walled import locks
from agents_app.model.demo.wire import WRONG_KEY, say
from agents_app.runtimes.base import RunFailed
from agents_app.runtimes.claude import process, warm
from agents_app.runtimes.claude.runtime import ClaudeRuntime
from agents_app.runtimes.events import Ended, RuntimeEvent
from agents_app.sandboxes import neighbours
from agents_app.sandboxes.base import VaultChanged
from permissions_app.rules.setting import Trust
from sessions_app.history import transcripts
from tests.contracts.stage import Stage, door_to, sandbox_that_runs
from tests.depth import few_of
from tests.scripted_model import ScriptedModel, calls

SOON = 30.0  # seconds, on a busy machine


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as scripted:
        yield scripted


@pytest.fixture
async def claude(model: ScriptedModel) -> AsyncIterator[ClaudeRuntime]:
    async with AsyncExitStack() as stack:
        runtime = ClaudeRuntime(await stack.enter_async_context(door_to(model.url)), most_warm=2)
        yield runtime
        await runtime.close()
        assert runtime._door._issued == {}


# What a wall may change: how a process is reached, and how it ends.
with_and_without_a_wall = pytest.mark.parametrize("wall", few_of(["none", "bubblewrap"], "bubblewrap"))


@pytest.fixture
def wall() -> str:
    return "bubblewrap"


@pytest.fixture
def stage(wall: str, claude: ClaudeRuntime, vault: Path) -> Stage:
    sandbox = sandbox_that_runs(wall)
    trust = Trust.VAULT if sandbox.is_wall else Trust.FULL
    return Stage(claude, sandbox, vault, Path(settings.PARACHUTE_HOME), trust)


def resting(stage: Stage) -> set[int]:
    """The processes that rest for this stage's session."""
    assert isinstance(stage.runtime, ClaudeRuntime)
    kept = stage.runtime._warm._resting.get(stage.session_id)
    return {pid for pid, _ in kept.process._own} if kept else set()


def response(events: list[RuntimeEvent]) -> str:
    assert isinstance(events[-1], Ended)
    return events[-1].response


@with_and_without_a_wall
async def test_the_next_message_goes_to_the_process_that_rests(stage: Stage, model: ScriptedModel) -> None:
    model.script("first", [say("One.")])
    model.script("second", [say("Two.")])
    assert response(await stage.play("first")) == "One."
    before = resting(stage)
    assert response(await stage.play("second")) == "Two."
    assert before and resting(stage) == before
    assert "One." in str(model.asked("second")[0].body["messages"])


async def test_what_rests_behind_a_wall_does_nothing(stage: Stage) -> None:
    """Its agent can have had it do something else: its turn is over."""
    await stage.play("hi")
    assert {psutil.Process(pid).status() for pid in resting(stage)} == {psutil.STATUS_STOPPED}


async def test_one_that_has_run_meanwhile_is_not_taken(stage: Stage, model: ScriptedModel) -> None:
    model.script("second", [say("Two.")])
    await stage.play("hi")
    (told,) = neighbours.told(stage.vault, locks())
    before = resting(stage)
    for pid in before:
        psutil.Process(pid).resume()
    assert response(await stage.play("second")) == "Two."
    assert resting(stage).isdisjoint(before)
    assert not launcher.marked(told.mark)


@with_and_without_a_wall
async def test_one_that_has_no_room_ends_at_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on first, to end by itself."""
    assert isinstance(stage.runtime, ClaudeRuntime)
    stage.runtime._warm._room = 1 << 20
    monkeypatch.setattr(process, "CLOSES_WITHIN", SOON)
    async with asyncio.timeout(SOON):
        await stage.play("hi")


async def test_each_turn_costs_what_it_cost_itself(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CLI counts on from turn to turn. (What the demo model says costs nothing.)"""
    monkeypatch.setattr(settings, "PARACHUTE_MODEL", replace(settings.PARACHUTE_MODEL, socket=None))
    ends = [(await stage.play(words))[-1] for words in ("one", "two", "three")]
    costs = [end.cost_usd for end in ends if isinstance(end, Ended)]
    assert min(costs) > 0
    assert max(costs) < 1.5 * min(costs)


async def test_one_that_holds_too_much_does_not_rest(stage: Stage) -> None:
    assert isinstance(stage.runtime, ClaudeRuntime)
    stage.runtime._warm._room = 1 << 20
    await stage.play("hi")
    assert resting(stage) == set()


async def test_what_rests_gives_way_where_there_is_no_room_for_both(stage: Stage) -> None:
    assert isinstance(stage.runtime, ClaudeRuntime)
    await stage.play("hi")
    stage.runtime._warm._room = round(stage.runtime._warm._held() * 1.5)
    other = Stage(stage.runtime, stage.sandbox, stage.vault, stage.home, stage.trust)
    await other.play("hi")
    assert resting(stage) == set()
    assert resting(other)


async def test_one_that_rests_ends_where_another_could_not_start_beside_it(
    stage: Stage, model: ScriptedModel
) -> None:
    """What it put away it could take out again, for another that did not see what is secret in it. So the
    other starts only when it has ended; whom a person speaks to in another vault is not disturbed."""
    (stage.vault / "Project").mkdir()
    (stage.vault / "Project/.env").write_text("SECRET")
    away = "mkdir away && mv Project away/x && chmod 111 away; ls -a away/x"
    model.script("put it away", [calls("Bash", command=away), say("Done.")])
    assert response(await stage.play("put it away")) == "Done."
    elsewhere = stage.vault.parent / "elsewhere"
    elsewhere.mkdir()
    apart = Stage(stage.runtime, stage.sandbox, elsewhere, stage.home, stage.trust)
    await apart.play("hi")
    other = Stage(stage.runtime, stage.sandbox, stage.vault, stage.home, stage.trust)
    model.script("look", [calls("Bash", command="ls -A away; cat away/x/Project/.env"), say("Looked.")])
    events = await other.play("look")
    assert "SECRET" not in str(events) and response(events) == "Looked."
    assert resting(apart) and resting(other) and not resting(stage)


@pytest.mark.parametrize(("times", "ends"), [(1, False), (2, True)])
async def test_one_that_does_not_stand_still_twice_is_ended_where_it_rests(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, times: int, ends: bool
) -> None:
    """Once, it may have been on its way out."""
    await stage.play("hi")
    left = [VaultChanged(NOT_STILL)] * times

    def check() -> None:
        if left:
            raise left.pop()

    monkeypatch.setattr(launcher, "standing_still", lambda marks: nullcontext(check))
    other = Stage(stage.runtime, stage.sandbox, stage.vault, stage.home, stage.trust)
    assert response(await other.play("hi")) == "ok"
    assert resting(other) and (resting(stage) == set()) is ends


async def test_one_that_never_stands_still_is_told_of(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def check() -> None:
        raise VaultChanged(NOT_STILL)

    monkeypatch.setattr(launcher, "standing_still", lambda marks: nullcontext(check))
    with pytest.raises(RunFailed, match="does not stand still") as failed:
        await stage.play("hi")
    assert failed.value.code == "cli_crashed"


@pytest.mark.parametrize("waits", [30.0, 0.2])
async def test_one_ends_when_another_wall_has_been_built(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, waits: float
) -> None:
    """Or after a second: who ends while all stand still makes the other start again."""
    monkeypatch.setattr(neighbours, "WAITS_TO_END", waits)
    await stage.play("hi")
    assert isinstance(stage.runtime, ClaudeRuntime)
    mark = stage.runtime._warm._resting[stage.session_id].process._mark
    with ExitStack() as building:
        building.enter_context(neighbours.one_at_a_time(stage.vault, locks()))
        ending = asyncio.create_task(stage.runtime.forget(stage.session_id))
        await asyncio.wait({ending}, timeout=0.5 if waits > 1 else SOON)
        assert ending.done() is (waits < 1) is not bool(launcher.marked(mark))
        building.close()
        async with asyncio.timeout(SOON):
            await ending
    assert not launcher.marked(mark)


async def test_who_only_reads_is_brought_to_a_stand_as_well(stage: Stage) -> None:
    """Another one may have handed it a folder to move things in."""
    await stage.play("hi", writable=())
    (told,) = neighbours.told(stage.vault, locks())
    with launcher.standing_still([told.mark]) as check:
        assert resting(stage) == {each.pid for each in launcher.marked(told.mark)}
        check()


async def test_beside_one_that_works_it_does_not_start(stage: Stage, model: ScriptedModel) -> None:
    (stage.vault / "Project").mkdir()
    (stage.vault / "Project/.env").write_text("SECRET")
    away = "mkdir away && mv Project away/x && chmod 111 away; ls -a away/x"
    model.script("put it away", [calls("Bash", command=away), calls("Bash", command="sleep 60")])
    working = asyncio.create_task(stage.play("put it away"))
    try:
        async with asyncio.timeout(SOON):
            while (stage.vault / "Project").exists() or (
                stage.vault / "away"
            ).stat().st_mode & 0o777 != 0o111:
                await asyncio.sleep(0.05)
        other = Stage(stage.runtime, stage.sandbox, stage.vault, stage.home, stage.trust)
        with pytest.raises(RunFailed, match="is not where it was") as failed:
            await other.play("hi")
        assert failed.value.code == "cli_crashed"
    finally:
        working.cancel()
        await asyncio.wait({working})


@with_and_without_a_wall
async def test_what_a_turn_left_running_is_ended_and_the_process_is_not(
    stage: Stage, model: ScriptedModel
) -> None:
    model.script("leave", [calls("Bash", command="setsid sleep 300 & echo left"), say("Left.")])
    await stage.play("leave")
    before = resting(stage)
    assert response(await stage.play("and now?")) == "ok"
    assert resting(stage) == before
    commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in before]
    assert not [line for line in commands if line.startswith(b"sleep")]


async def test_another_prompt_or_model_gets_a_new_process(stage: Stage, model: ScriptedModel) -> None:
    await stage.play("first")
    before = resting(stage)
    assert response(await stage.play("second", append="Be brief.")) == "ok"
    assert resting(stage).isdisjoint(before)
    again = resting(stage)
    assert response(await stage.play("third", append="Be brief.", model="opus")) == "ok"
    assert resting(stage).isdisjoint(again)


async def test_a_session_that_went_on_elsewhere_gets_a_new_process(stage: Stage) -> None:
    await stage.play("first")
    before = resting(stage)
    (transcript,) = stage.config.glob("projects/*/*.jsonl")
    with transcript.open("a") as file:
        file.write('{"type":"note of another worker"}\n')
    assert response(await stage.play("second")) == "ok"
    assert resting(stage).isdisjoint(before)


@with_and_without_a_wall
async def test_a_process_that_died_while_it_rested_is_replaced(stage: Stage) -> None:
    await stage.play("first")
    processes = [psutil.Process(pid) for pid in resting(stage)]
    processes[0].kill()
    await asyncio.to_thread(psutil.wait_procs, processes[:1], 10)
    assert response(await stage.play("second")) == "ok"


async def test_only_so_many_rest_and_the_oldest_goes_first(stage: Stage, claude: ClaudeRuntime) -> None:
    sessions = []
    for _ in range(3):
        stage.session_id = uuid4()
        stage.requests.clear()
        sessions.append(stage.session_id)
        await stage.play("hello")
    assert list(claude._warm._resting) == sessions[1:]


async def test_none_rests_longer_than_it_may(
    stage: Stage, claude: ClaudeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm, "RESTS_AT_MOST", 0.0)
    await stage.play("hello")
    await claude.close()
    assert not claude._warm._resting


@with_and_without_a_wall
async def test_one_whose_session_is_deleted_is_ended(stage: Stage, claude: ClaudeRuntime) -> None:
    await stage.play("hello")
    processes = [psutil.Process(pid) for pid in resting(stage)]
    assert processes
    await claude.forget(uuid4())
    assert resting(stage)
    await claude.forget(stage.session_id)
    assert not claude.rests(stage.session_id)
    assert not [each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


async def test_a_turn_that_failed_leaves_no_process(stage: Stage, model: ScriptedModel) -> None:
    model.default = WRONG_KEY
    with pytest.raises(RunFailed):
        await stage.play("hello")
    assert resting(stage) == set()


async def test_between_turns_the_door_is_shut(stage: Stage, claude: ClaudeRuntime) -> None:
    await stage.play("hello")
    (issued,) = claude._door._issued.values()
    assert issued.turn is None


async def test_the_transcript_is_whole_when_the_turn_has_ended(stage: Stage, model: ScriptedModel) -> None:
    for number in range(5):
        model.script(f"number {number}", [say(f"This is {number}, to the end.")])
        await stage.play(f"number {number}")
        assert f"This is {number}, to the end.".encode() in (transcripts.raw(stage.session_id) or b"")

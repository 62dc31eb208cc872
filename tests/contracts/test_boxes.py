"""A read-only box with the real CLI: fresh for each message, with a scratch that lasts for the session, and
nothing of it left."""

import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from django.conf import settings

from agents_app.launcher import marked
from agents_app.model.demo.wire import say
from agents_app.runtimes.base import Run, RunFailed
from agents_app.runtimes.claude.runtime import ClaudeRuntime
from agents_app.runtimes.events import RuntimeEvent
from agents_app.sandboxes import ENGINES, engine
from agents_app.sandboxes.base import MARK, Launch, Sandbox
from agents_app.sandboxes.container import Container
from agents_app.sandboxes.container_engine import Engine
from permissions_app.rules.setting import Trust
from tests.contracts.conftest import Sandboxes
from tests.contracts.stage import PATIENCE, Stage, door_to
from tests.engines import engine_here
from tests.engines.daemon import Daemon
from tests.engines.fixtures import Engines
from tests.scripted_model import ScriptedModel, calls


@pytest.fixture(params=ENGINES)
def wall(request: pytest.FixtureRequest, sandboxes: Sandboxes) -> Sandbox:
    return sandboxes(request.param)


@pytest.fixture
def box(wall: Sandbox) -> str:
    return wall.name


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture
async def stage(wall: Sandbox, model: ScriptedModel, tmp_path: Path) -> AsyncIterator[Stage]:
    vault = tmp_path / "vault"
    vault.mkdir()
    with model:
        async with door_to(model.url) as door:
            home = Path(settings.PARACHUTE_HOME)
            yield Stage(ClaudeRuntime(door), wall, vault, home, Trust.SANDBOXED)


@pytest.fixture
def daemon(box: str, engines: Engines) -> Daemon:
    found = engines(box).daemon
    if found is None:
        pytest.skip(f"NOT TESTED: {box} that hangs. It is not ours to stop.")
    return found


def left(box: str) -> list[str]:
    return engine(box).left(of_worker=False)


async def test_each_message_has_a_new_one_and_the_scratch_lasts(
    stage: Stage, model: ScriptedModel, box: str
) -> None:
    writes = "echo kept > $TMPDIR/note; echo lost > /tmp/note; touch planted || echo refused"
    reads = "cat $TMPDIR/note /tmp/note 2>/dev/null; exit 0"
    model.script("first", [calls("Bash", command=writes), say("One.")])
    model.script("second", [calls("Bash", command=reads), say("Two.")])
    await stage.play("first")
    assert not stage.runtime.rests(stage.session_id)
    assert left(box) == []
    await stage.play("second")
    assert stage.scratch
    assert (stage.scratch / "note").read_text() == "kept\n"
    assert list(stage.vault.iterdir()) == []
    assert "refused" in model.asked("first")[-1].body["messages"][-1]["content"][0]["content"]
    assert model.asked("second")[-1].body["messages"][-1]["content"][0]["content"] == "kept"
    assert left(box) == []


async def in_mid_turn(stage: Stage, model: ScriptedModel) -> asyncio.Task[list[RuntimeEvent]]:
    """It has run a command that leaves another behind, and is about to say more."""
    at = model.hold()
    model.script(
        "work", [calls("Bash", command="setsid sleep 600 & echo ok"), say("Half a ", at, "sentence.")]
    )
    playing = asyncio.create_task(stage.play("work"))
    assert await asyncio.to_thread(at.reached.wait, PATIENCE)
    return playing


def mark_of_the_only_one(engine: Engine) -> str:
    (name,) = engine.run("ps", "--format", "{{.Names}}").stdout.decode().split()
    return name.removeprefix("parachute-")


@pytest.mark.depth
async def test_nothing_is_left_of_one_whose_turn_is_aborted(
    stage: Stage, model: ScriptedModel, box: str
) -> None:
    at = model.hold()
    model.script(
        "work", [calls("Bash", command="setsid sleep 600 & echo ok"), say("Half a ", at, "sentence.")]
    )

    async def aborts(run: Run) -> None:
        assert await asyncio.to_thread(at.reached.wait, PATIENCE)
        await run.interrupt()

    await stage.play("work", aborts)
    assert left(box) == []


@pytest.mark.depth
async def test_nothing_is_left_of_one_that_is_given_up(stage: Stage, model: ScriptedModel, box: str) -> None:
    playing = await in_mid_turn(stage, model)
    mark = mark_of_the_only_one(engine(box))
    playing.cancel()
    await asyncio.wait([playing])
    assert (left(box), marked(mark)) == ([], [])


@pytest.mark.depth
async def test_nothing_is_left_of_one_whose_program_is_killed(
    stage: Stage, model: ScriptedModel, box: str
) -> None:
    playing = await in_mid_turn(stage, model)
    mark = mark_of_the_only_one(engine(box))
    (client,) = (each for each in psutil.Process().children() if each.name() == box)
    client.kill()
    await asyncio.wait([playing])
    assert isinstance(playing.exception(), RunFailed)
    assert (left(box), marked(mark)) == ([], [])


@pytest.mark.depth
@pytest.mark.usefixtures("daemon")  # podman has none that could go
async def test_nothing_runs_on_of_one_whose_engine_is_gone(stage: Stage, model: ScriptedModel) -> None:
    with engine_here("docker", must_be_ours=True) as other:
        assert other.daemon
        stage.sandbox = other.container
        playing = await in_mid_turn(stage, model)
        mark = mark_of_the_only_one(other.engine)
        other.daemon.kill()
        await asyncio.wait([playing])
        assert isinstance(playing.exception(), RunFailed)
        assert marked(mark) == []


@pytest.mark.depth
async def test_nothing_runs_on_of_one_whose_engine_hangs(
    stage: Stage, model: ScriptedModel, box: str, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    playing = await in_mid_turn(stage, model)
    mark = mark_of_the_only_one(engine(box))
    with monkeypatch.context() as briefly, daemon.silent():
        briefly.setattr("agents_app.sandboxes.container_engine.PATIENCE", 0.2)
        playing.cancel()
        await asyncio.wait([playing])
        assert marked(mark) == []
    stage.sandbox.sweep()
    assert left(box) == []


@pytest.mark.depth
@pytest.mark.usefixtures("daemon")
def test_an_engine_that_never_answers_is_found_out(box: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents_app.sandboxes.container.ANSWERS_WITHIN", 0.2)
    monkeypatch.setattr("agents_app.sandboxes.container_engine.PATIENCE", 0.2)
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/s")
        listener.listen()
        deaf = replace(
            engine("docker"),
            environment={**engine("docker").environment, "DOCKER_HOST": f"unix://{folder}/s"},
        )
        assert "runs no container" in str(Container(deaf).unavailable())
        assert deaf.left(of_worker=False) == []


@pytest.mark.depth
def test_a_start_sweeps_what_its_worker_left_and_nobody_elses(box: str, tmp_path: Path) -> None:
    ours, theirs = (Engine(**{**vars(engine(box)), "owner": "tests", "worker": name}) for name in ("a", "b"))
    for number, each in enumerate((ours, theirs)):
        environment = {"PATH": "/usr/bin:/bin", MARK: f"{number:032}"}
        given = Launch(("/bin/sleep", "60"), environment, tmp_path, tmp_path)
        _, _, *words = Container(each).confine(given).argv
        started = each.run("run", "--detach", *(word for word in words if word != "--interactive"))
        assert started.returncode == 0, started.stderr
    try:
        Container(ours).sweep()
        assert (ours.left(of_worker=True), len(theirs.left(of_worker=True))) == ([], 1)
    finally:
        ours.remove(*ours.left(of_worker=False))
    assert theirs.left(of_worker=True) == []

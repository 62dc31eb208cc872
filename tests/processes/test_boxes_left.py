"""Read-only boxes of the real processes: whoever is killed, none of its containers is left.

A run has one engine, so this goes with those that need it too, and not with the others here.
"""

from typing import Any

import pytest

from agents_app.model.demo.wire import say
from agents_app.sandboxes.container_engine import Engine
from tests.engines.fixtures import Engines
from tests.processes.program import Program, of_type
from tests.processes.running import RunningUp, StartUp
from tests.scripted_model import ScriptedModel, calls, in_turn

pytestmark = pytest.mark.depth

PATIENCE = 60.0


@pytest.fixture
def engine(engines: Engines) -> Engine:
    return engines("docker").engine


@pytest.fixture
def variables(variables: dict[str, str], engine: Engine) -> dict[str, str]:
    boxes = {"PARACHUTE_SANDBOX": engine.program, "PARACHUTE_SANDBOX_IMAGE": engine.image}
    return {**variables, **engine.environment, **boxes}


def left(engine: Engine, up: RunningUp) -> set[str]:
    done = engine.run("ps", "--all", "--quiet", "--filter", f"label=parachute={up.environment.owner}")
    assert done.returncode == 0, done.stderr
    return set(done.stdout.decode().split())


def stops_in_its_box(model: ScriptedModel, program: Program, key: str) -> dict[str, Any]:
    """After a command that leaves another behind, in mid-sentence; whoever asks again is answered."""
    at, whole = model.hold(), say("A whole sentence.")
    leaves = calls("Bash", command="setsid sleep 600 & echo ok")
    model.script(key, [in_turn(leaves, whole), in_turn(say("A whole ", at, "sentence."), whole)])
    model.script("interrupted", [whole])
    accepted = program.post(f"{key}, please", trustLevel="sandboxed")
    assert at.reached.wait(PATIENCE)
    return accepted


def test_whoever_is_killed_leaves_none(
    up: RunningUp, start_up: StartUp, program: Program, model: ScriptedModel, engine: Engine
) -> None:
    accepted = stops_in_its_box(model, program, "slowly")
    (lost,) = left(engine, up)
    up.kill("turns")
    assert of_type(program.finished(accepted), "done")[-1]["response"] == "A whole sentence."
    assert lost not in left(engine, up)

    accepted = stops_in_its_box(model, program, "gently")
    lost_ones = left(engine, up)
    up.kill("up")
    for name in ("web", "turns", "background", "valkey"):
        up.kill(name)
    up.wait_exit()
    again = start_up({"ANTHROPIC_BASE_URL": model.url})
    assert lost_ones
    assert not lost_ones & left(engine, again)
    assert of_type(program.finished(accepted), "done")[-1]["response"] == "A whole sentence."

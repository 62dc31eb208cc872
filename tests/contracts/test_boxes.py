"""A read-only box with the real CLI: fresh for each message, with a scratch that lasts for the session, and
nothing of it left."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from django.conf import settings

from agents_app.demo_model.wire import say
from agents_app.engine import Engine
from agents_app.runtimes.claude.runtime import ClaudeRuntime
from agents_app.sandboxes import ENGINES, engine, named
from agents_app.sandboxes.base import MARK, Launch
from agents_app.sandboxes.container import Container
from permissions_app.rules.setting import Trust
from tests.contracts.conftest import Sandboxes
from tests.contracts.stage import Stage, door_to
from tests.scripted_model import ScriptedModel, calls


@pytest.fixture(params=ENGINES)
def box(request: pytest.FixtureRequest, sandboxes: Sandboxes) -> str:
    return sandboxes(request.param).name


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture
async def stage(box: str, model: ScriptedModel, tmp_path: Path) -> AsyncIterator[Stage]:
    vault = tmp_path / "vault"
    vault.mkdir()
    with model:
        async with door_to(model.url) as door:
            home = Path(settings.PARACHUTE_HOME)
            yield Stage(ClaudeRuntime(door), named(box), vault, home, Trust.SANDBOXED)


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

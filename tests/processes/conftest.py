"""Fixtures of the tests that run the real processes."""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.processes.program import Program
from tests.processes.running import REAL, ROOT, RunningUp, StartUp, free_port, of_whoever_runs_it
from tests.scripted_model import ScriptedModel


@dataclass(frozen=True)
class House:
    """One running Parachute for many tests."""

    up: RunningUp
    model: ScriptedModel
    program: Program


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    return variables_for(tmp_path)


def variables_for(folder: Path) -> dict[str, str]:
    """A small environment: a home, a vault and a port of its own, and nothing of whoever runs it."""
    vault = folder / "vault"
    vault.mkdir()
    ours = {"PARACHUTE_HOME": str(folder / "home"), "VAULT_PATH": str(vault), "PORT": str(free_port())}
    ours["PARACHUTE_CURATOR"] = "0"  # but for the tests of it: the model is asked by nobody else
    return of_whoever_runs_it() | ours


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with its tables and nobody in it. It takes seconds to make, and next to nothing to copy."""
    variables = variables_for(tmp_path_factory.mktemp("tables"))
    made = Path(variables["PARACHUTE_HOME"]) / "db.sqlite3"
    made.parent.mkdir(mode=0o700)
    argv = (sys.executable, str(ROOT / "manage.py"), "migrate", "--verbosity=0")
    subprocess.run(argv, env=variables, check=True)
    return made


def furnish(variables: Mapping[str, str], tables: Path) -> None:
    home = Path(variables["PARACHUTE_HOME"])
    home.mkdir(mode=0o700)
    shutil.copy(tables, home)


@pytest.fixture
def start_up(tmp_path: Path, variables: dict[str, str]) -> Iterator[StartUp]:
    with starting(tmp_path, variables) as start:
        yield start


@contextmanager
def starting(folder: Path, variables: Mapping[str, str]) -> Iterator[StartUp]:
    """Start `up`, again and again if a test likes: `start_up(extra_env={...}, argv=…, wait=True)`.

    After the test each of them is stopped, and nothing may be left of them.
    """
    started: list[RunningUp] = []

    def start(
        extra_env: Mapping[str, str] | None = None, *, argv: Sequence[str] = REAL, wait: bool = True
    ) -> RunningUp:
        up = RunningUp(argv, folder, {**variables, **(extra_env or {})})
        started.append(up)
        if wait:
            up.wait_ready()
        return up

    try:
        yield start
        for up in started:
            up.stop()
        assert [up.left() for up in started] == [{}] * len(started)
    finally:
        for up in started:
            up.end_at_any_price()


@pytest.fixture
def running_up(start_up: StartUp) -> RunningUp:
    """The real thing, ready."""
    return start_up()


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as scripted:
        yield scripted


@pytest.fixture
def up(start_up: StartUp, model: ScriptedModel, variables: dict[str, str], tables: Path) -> RunningUp:
    """The real thing, with a model that says what the test scripted."""
    furnish(variables, tables)
    return start_up({"ANTHROPIC_BASE_URL": model.url})


@pytest.fixture
def program(up: RunningUp) -> Program:
    return Program(up)


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory, tables: Path) -> Iterator[House]:
    """For tests that kill nothing."""
    with furnished(tmp_path_factory.mktemp("house"), tables) as house:
        yield house


@pytest.fixture(scope="session")
def shaken(tmp_path_factory: pytest.TempPathFactory, tables: Path) -> Iterator[House]:
    """For tests that kill what `up` starts again."""
    with furnished(tmp_path_factory.mktemp("shaken"), tables) as house:
        yield house


@contextmanager
def furnished(folder: Path, tables: Path) -> Iterator[House]:
    variables = variables_for(folder)
    furnish(variables, tables)
    with ScriptedModel() as model, starting(folder, variables) as start:
        up = start({"ANTHROPIC_BASE_URL": model.url})
        yield House(up, model, Program(up))

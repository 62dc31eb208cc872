"""Fixtures of the tests that run the real processes."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.processes.program import Program
from tests.processes.running import REAL, RunningUp, StartUp, free_port, of_whoever_runs_it
from tests.scripted_model import ScriptedModel


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    """A small environment: a home, a vault and a port of this test's own, and nothing of whoever runs it."""
    vault = tmp_path / "vault"
    vault.mkdir()
    ours = {"PARACHUTE_HOME": str(tmp_path / "home"), "VAULT_PATH": str(vault), "PORT": str(free_port())}
    return of_whoever_runs_it() | ours


@pytest.fixture
def start_up(tmp_path: Path, variables: dict[str, str]) -> Iterator[StartUp]:
    """Start `up`, again and again if a test likes: `start_up(extra_env={...}, argv=…, wait=True)`.

    After the test each of them is stopped, and nothing may be left of them.
    """
    started: list[RunningUp] = []

    def start(
        extra_env: Mapping[str, str] | None = None, *, argv: Sequence[str] = REAL, wait: bool = True
    ) -> RunningUp:
        up = RunningUp(argv, tmp_path, variables | dict(extra_env or {}))
        started.append(up)
        if wait:
            up.wait_ready()
        return up

    yield start
    try:
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
def up(start_up: StartUp, model: ScriptedModel) -> RunningUp:
    """The real thing, with a model that says what the test scripted."""
    return start_up({"ANTHROPIC_BASE_URL": model.url})


@pytest.fixture
def program(up: RunningUp, variables: dict[str, str]) -> Program:
    return Program(up, variables)

from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, settings

from agents_app.runtimes.scripted import ScriptedRuntime
from agents_app.sandboxes import walls
from agents_app.sandboxes.recorded import Recorded
from sessions_app.access.caller import Caller
from tests.agents_app.engine import Engine

settings.register_profile(
    "soak",
    derandomize=False,
    max_examples=2_000,
    stateful_step_count=80,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


class Rings(list[UUID]):
    """The sessions that workers were rung for, and the queue of each ring."""

    def __init__(self) -> None:
        super().__init__()
        self.queues: list[str] = []

    def ring(self, args: tuple[str], queue: str) -> None:
        self.append(UUID(args[0]))
        self.queues.append(queue)


@pytest.fixture
def rings(monkeypatch: pytest.MonkeyPatch) -> Rings:
    """No broker stands behind the tests."""
    rung = Rings()
    monkeypatch.setattr("agents_app.turns.held.ringing.send", rung.ring)
    return rung


@pytest.fixture
def engine(as_ada: Caller, scripted: ScriptedRuntime, rings: list[UUID]) -> Engine:
    return Engine(as_ada, scripted)


@pytest.fixture
def behind_a_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    """On each machine, because the script runs behind none."""
    sandbox = Recorded()
    sandbox.is_wall = True
    monkeypatch.setattr(walls, "wall_for", lambda *_: walls.Wall(sandbox))
    monkeypatch.setattr("agents_app.turns.running.prepare.wall_for", walls.wall_for)

from uuid import UUID

import pytest
from hypothesis import HealthCheck, settings

from agents_app import tasks
from agents_app.runtimes.scripted import ScriptedRuntime
from sessions_app.access.caller import Caller
from tests.agents_app.engine import Engine

settings.register_profile(
    "soak",
    max_examples=2_000,
    stateful_step_count=80,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def rings(monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """The sessions that workers were rung for. No broker stands behind the tests."""
    rung: list[UUID] = []
    monkeypatch.setattr(tasks.run_session, "apply_async", lambda args, queue: rung.append(UUID(args[0])))
    return rung


@pytest.fixture
def engine(as_ada: Caller, scripted: ScriptedRuntime, rings: list[UUID]) -> Engine:
    return Engine(as_ada, scripted)

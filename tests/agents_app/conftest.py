from uuid import UUID

import pytest

from agents_app import tasks
from agents_app.runtimes.scripted import ScriptedRuntime
from sessions_app.access.caller import Caller
from tests.agents_app.engine import Engine


@pytest.fixture
def rings(monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """The sessions that workers were rung for. No broker stands behind the tests."""
    rung: list[UUID] = []
    monkeypatch.setattr(tasks.run_session, "apply_async", lambda args, queue: rung.append(UUID(args[0])))
    return rung


@pytest.fixture
def engine(as_ada: Caller, scripted: ScriptedRuntime, rings: list[UUID]) -> Engine:
    return Engine(as_ada, scripted)

from collections.abc import Callable, Coroutine
from typing import Any
from uuid import UUID

import pytest

from curator_app import services
from curator_app.models import CuratorRun
from curator_app.observing import observe
from sessions_app.threads import in_thread
from tests.agents_app.conftest import engine, rings  # noqa: F401
from tests.api.conftest import ada_calls, ben_calls, cy_calls, nobody, vi_calls  # noqa: F401
from tests.curator_app.played import PlayedRuntime

Look = Callable[[], Coroutine[Any, Any, CuratorRun]]


class Bells(list[str]):
    """How often the curator was rung for."""


@pytest.fixture(autouse=True)
def bells(monkeypatch: pytest.MonkeyPatch, settings: object) -> Bells:
    """It is on, and no broker stands behind the tests."""
    settings.PARACHUTE_CURATOR = True  # type: ignore[attr-defined]
    rung = Bells()
    monkeypatch.setattr("curator_app.ringing.send", lambda: rung.append("rung"))
    return rung


@pytest.fixture
def played() -> PlayedRuntime:
    return PlayedRuntime()


@pytest.fixture
def look(played: PlayedRuntime) -> Look:
    """Claims what waits and looks at it, as the worker does: the run as it is afterwards."""

    async def at_what_waits() -> CuratorRun:
        run = await in_thread(services.claim_next)()
        assert run is not None
        await observe(run, played)
        return await in_thread(_again)(run.pk) or run

    return at_what_waits


def _again(run_id: UUID) -> CuratorRun | None:
    run: CuratorRun | None = CuratorRun.objects.select_related("session").filter(pk=run_id).first()
    return run

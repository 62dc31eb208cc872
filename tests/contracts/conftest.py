import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents_app.sandboxes import ENGINES
from agents_app.sandboxes.base import Sandbox
from tests.contracts.listener import Listener
from tests.contracts.runs import Runs
from tests.contracts.stage import sandbox_that_runs
from tests.contracts.walled import HERE, around_a_vault
from tests.depth import few_of
from tests.engines.fixtures import Engines

Sandboxes = Callable[[str], Sandbox]
WALLS = [(wall, user) for wall in ("bubblewrap", *ENGINES) for user in ("as we are", "plain")]


@pytest.fixture
def sandboxes(engines: Engines, settings: Any) -> Sandboxes:
    """A sandbox by its name. For a container its engine is brought up, and is that of the settings."""

    def of(name: str) -> Sandbox:
        if name not in ENGINES:
            return sandbox_that_runs(name)
        here = engines(name)
        settings.PARACHUTE_ENGINE_ENVIRONMENT = here.engine.environment
        settings.PARACHUTE_SANDBOX_IMAGE = here.engine.image
        settings.PARACHUTE_OWNER = here.engine.owner
        assert here.container.unavailable() is None
        return here.container

    return of


@pytest.fixture
def listener() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.server.shutdown()
    listener.server.server_close()


@pytest.fixture
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name).resolve()


@pytest.fixture(params=few_of(WALLS, HERE), ids=" ".join)
def walled(
    request: pytest.FixtureRequest, place: Path, sandboxes: Sandboxes, monkeypatch: pytest.MonkeyPatch
) -> Runs:
    name, user = request.param
    return around_a_vault(sandboxes(name), user, place, monkeypatch)

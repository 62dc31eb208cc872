from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agents_app.sandboxes import ENGINES
from agents_app.sandboxes.base import Sandbox
from tests.contracts.listener import Listener
from tests.contracts.stage import sandbox_that_runs
from tests.engines.fixtures import Engines

Sandboxes = Callable[[str], Sandbox]


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

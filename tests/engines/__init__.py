"""A container engine for tests and for the bench: the one that works here, else a docker of our own. In it is
the image of the read-only box, made by the recipe that people use."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from agents_app.sandboxes.container import Container
from agents_app.sandboxes.container_engine import Engine
from parachute_site import env
from tests.engines.daemon import Daemon
from tests.engines.image import NAME, box_image
from tests.engines.missing import NotTested

OWNER = "tests"


@dataclass(frozen=True)
class EngineHere:
    engine: Engine
    daemon: Daemon | None  # where it is our own

    @cached_property
    def container(self) -> Container:
        """The wall of it, which remembers that it works."""
        return Container(self.engine)


@contextmanager
def engine_here(program: str, *, must_be_ours: bool = False) -> Iterator[EngineHere]:
    """Nothing of it is left afterwards, however it went. Raises NotTested or BrokenRecipe."""
    engine = Engine(program, NAME, OWNER, environment=env.for_engines())
    if engine.path() is None:
        raise NotTested(f"{program} is not installed.")
    is_wanted = must_be_ours or (program == "docker" and not _answers(engine))
    daemon = Daemon() if is_wanted else None
    try:
        if daemon is not None:
            daemon.start()
            kept = {name: value for name, value in engine.environment.items() if name in ("PATH", "HOME")}
            engine = Engine(program, NAME, OWNER, environment={**kept, "DOCKER_HOST": daemon.address})
        with box_image(engine):
            yield EngineHere(engine, daemon)
    finally:
        if daemon is not None:
            daemon.end()


def _answers(engine: Engine) -> bool:
    try:
        return engine.run("version").returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False

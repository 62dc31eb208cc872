"""Walls around an agent's process: one file a kind, and which one stands around whom (`walls.py`)."""

from functools import cache

from django.conf import settings

from agents_app.sandboxes.container_engine import Engine

from .base import Sandbox
from .bubblewrap import Bubblewrap
from .container import Container
from .none import NoWall
from .recorded import Recorded

ENGINES = ("docker", "podman")


@cache
def named(name: str) -> Sandbox:
    """The one sandbox of this name in this process: it remembers what it found out."""
    if name in ENGINES:
        return Container(engine(name))
    kinds: dict[str, type[NoWall | Bubblewrap | Recorded]] = {
        "none": NoWall,
        "bubblewrap": Bubblewrap,
        "recorded": Recorded,
    }
    return kinds[name]()


def engine(name: str) -> Engine:
    return Engine(
        program=name,
        image=settings.PARACHUTE_SANDBOX_IMAGE,
        owner=settings.PARACHUTE_OWNER,
        worker=settings.PARACHUTE_WORKER,
        environment=settings.PARACHUTE_ENGINE_ENVIRONMENT,
    )

"""Walls around an agent's process, one file a kind."""

from functools import cache

from .base import Sandbox
from .bubblewrap import Bubblewrap
from .none import NoWall
from .recorded import Recorded


@cache
def named(name: str) -> Sandbox:
    """The one sandbox of this name in this process: it remembers what it found out."""
    kinds: dict[str, type[Sandbox]] = {"none": NoWall, "bubblewrap": Bubblewrap, "recorded": Recorded}
    return kinds[name]()

"""The seam between a command line and the wall that it runs behind."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Launch:
    """A process that is about to be started: what, with exactly which environment, and what it may touch.

    `vault` and `writable` are bound read-write, `readable` read-only, and `masked` is hidden; each at its
    own path, and where one lies in another the deeper one counts. All but the masked ones must exist.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    directory: Path
    vault: Path
    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    masked: tuple[Path, ...] = ()


class CannotConfine(Exception):
    """This launch cannot be put behind this wall; the text is for the person who chose its paths."""


class Sandbox(Protocol):
    """Turns a launch into a confined one, or says why it cannot.

    Callers rely on this: what `confine` returns runs the same program with the same standard streams and
    environment (a wall brings its own HOME). A wall (`is_wall`) shows only what the launch names and the
    system read-only, reaches no network but the sockets that it can see, and ends, with everything it
    started, when its first process ends or the worker does.
    """

    name: str
    is_wall: bool

    def unavailable(self) -> str | None:
        """None where one of this kind really ran a moment ago; else why not and what to do. It may block."""

    def confine(self, launch: Launch) -> Launch:
        """The same launch behind the wall. Raises CannotConfine."""

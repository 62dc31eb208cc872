"""The seam between a command line and the wall that it runs behind."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agents_app.sandboxes.limits import Limits

READ_WRITE, READ_ONLY, MASK = range(3)  # how a wall shows a path
Identity = str  # "device:inode", as stat(1) prints it
Checked = tuple[Path, Identity, int]  # what lay there, and how a wall shows it
MARK = "PARACHUTE_PROCESS"  # in the environment of all that one launch starts; its value is from new_mark()


@dataclass(frozen=True)
class Group:
    """A control group that the launcher makes and joins before it becomes its program."""

    folder: Path
    files: Mapping[str, str]  # what is written into which of its files


FIRST_GIVEN = 3  # what comes after the standard streams


@dataclass(frozen=True)
class Launch:
    """A process that is about to be started: what, with exactly which environment, and what it may touch.

    `vault` and `writable` are bound read-write, `readable` read-only, and `masked` is hidden; each at its
    own path, and where one lies in another the deeper one counts; of the same path the narrower. All but the
    masked ones must exist. Behind a wall it does not start where one of the `checked` is not what was found,
    or is not shown as it should be: somebody swapped it. When the wall stands, and before its program runs,
    it `tells` so on the standard error. A program without a wall has no `limits`. What is `given` it finds
    open, from the descriptor FIRST_GIVEN on.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    directory: Path
    vault: Path
    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    masked: tuple[Path, ...] = ()
    limits: Limits | None = None
    groups: tuple[Group, ...] = ()
    checked: tuple[Checked, ...] = ()
    tells: str = ""
    given: tuple[bytes, ...] = ()

    @property
    def mark(self) -> str:
        return self.environment.get(MARK, "")


class CannotConfine(Exception):
    """This launch cannot be put behind this wall; the text is for the person who chose its paths."""


class VaultChanged(CannotConfine):
    """Not at this moment, because of what somebody else does there."""


class VaultBusy(VaultChanged):
    """Nor in the next moments."""


class Sandbox(Protocol):
    """Turns a launch into a confined one, or says why it cannot.

    Callers rely on this: what `confine` returns runs the same program with the same standard streams and
    environment (a wall brings its own HOME). A wall (`is_wall`) shows only what the launch names and the
    system read-only, reaches no network but the sockets that it can see, holds the launch's limits, and ends,
    with everything it started, when its first process ends; after `end` in any case.
    """

    name: str
    is_wall: bool
    install: str  # what to install where it is missing; empty: nothing

    def unavailable(self) -> str | None:
        """None where one of this kind really ran a moment ago; else why not and what to do. It may block."""

    def confine(self, launch: Launch) -> Launch:
        """The same launch behind the wall. Raises CannotConfine."""

    def end(self, mark: str) -> None:
        """Removes what is left of a launch with this mark once its processes have ended. It may block."""

    def sweep(self) -> None:
        """Removes what an earlier life of this worker left. It may block."""

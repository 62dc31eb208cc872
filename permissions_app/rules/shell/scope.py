"""What a line says so far: in which directories it may stand, and what its variables may hold."""

import os
from collections.abc import Iterable
from itertools import product

from permissions_app.rules.deny_list import has_secret_name
from permissions_app.rules.shell import danger
from permissions_app.rules.shell.words import MAX_ALTERNATIVES, UNKNOWN, Word

MAX_DIRECTORIES = 12

Directories = frozenset[str | None]  # None: one that nobody can name
NOWHERE: Directories = frozenset()


class Scope:
    """Nobody knows which branch ran, so both are sets: where the line may stand, and what was ever given to a
    variable. Where a set would grow too large, its rest is unknown."""

    def __init__(self, start: str) -> None:
        self._start = start
        self.variables: dict[str, set[str]] = {}
        self.grown: set[str] = set()  # variables that hold more than when the line was read last
        self.options: set[str] = set()  # of `shopt`
        self.splits_oddly = False  # IFS was set
        self.calculates = False  # it has arithmetic, which runs what stands in `x[$(…)]`
        self.any_may_change = False  # a variable was set whose name nobody knows
        self.left: set[str | None] = set()  # directories that `cd -` and `popd` may lead back to
        self.begin()

    def begin(self) -> None:
        self.grown.clear()
        self.stand_in(frozenset({self._start}))

    # Directories

    @property
    def directory(self) -> str | None:
        """The one that the line stands in. Each command is judged in one at a time."""
        return next(iter(self.directories)) if len(self.directories) == 1 else None

    def stand_in(self, directories: Directories) -> None:
        """Whether the last command succeeded or not."""
        self.directories = self.succeeded = self.failed = _bounded(directories)

    def end(self, succeeded: Iterable[str | None], failed: Iterable[str | None]) -> None:
        """Where the line stands if the last command succeeded, and if it failed. If it comes back from
        neither, what follows is read all the same, from where the line stood."""
        self.succeeded, self.failed = _bounded(succeeded), _bounded(failed)
        self.directories = _bounded(self.succeeded | self.failed) or self.directories

    def go_to(self, word: Word) -> None:
        """What a command starts in another directory."""
        known = word.known and (self.directory is not None or word.text.startswith("/"))
        path = os.path.join(self.directory or "/", word.text)  # noqa: PTH118
        self.stand_in(frozenset({path if known else None}))

    # Variables

    def values(self, name: str) -> set[str]:
        found = set(self.variables.get(name, ()))
        if name == "HOME":
            found.add(os.path.expanduser("~"))  # noqa: PTH111
        elif name == "PWD":
            found |= {directory or UNKNOWN for directory in self.directories}
        elif name == "OLDPWD":
            found |= {directory or UNKNOWN for directory in self.left}
        return found | {UNKNOWN} if self.any_may_change or not found else found

    def assign(self, name: str, values: set[str], *, adds: bool) -> None:
        before = self.variables.get(name, set())
        if adds and before:
            values = values | {a + b for a, b in product(before, values)}
        after = _few(before | values)
        if after != before:
            self.variables[name] = after
            self.grown.add(name)

    def widen(self) -> None:
        """What still grows when the line is read again may hold anything."""
        for name in self.grown:
            self.variables[name] = _few({*self.variables[name], UNKNOWN})


def _bounded(directories: Iterable[str | None]) -> Directories:
    found = frozenset(directories)
    if len(found) <= MAX_DIRECTORIES:
        return found
    # Of the rest nobody can say; those near the root are where most could be done.
    known = sorted((each for each in found if each is not None), key=lambda each: (len(each), each))
    return frozenset({*known[: MAX_DIRECTORIES - 1], None})


def _few(values: set[str]) -> set[str]:
    """All of them, or what must not be missed in any reading, and the rest unknown."""
    if len(values) <= MAX_ALTERNATIVES:
        return values
    return {*sorted(value for value in values if _stands_out(value))[: MAX_ALTERNATIVES - 1], UNKNOWN}


def _stands_out(value: str) -> bool:
    return has_secret_name(value) or os.path.basename(value) in danger.BECOME_ROOT  # noqa: PTH119

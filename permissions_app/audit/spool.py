"""Where records go that could not be written: a file in $PARACHUTE_HOME, taken up when the database is back.

Several processes of a machine share it. Each line is appended under a lock; whoever takes it up first moves
it aside, so nothing is appended to what is about to be removed.
"""

import fcntl
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from permissions_app.audit.entry import Finished

log = logging.getLogger(__name__)

NAME = "waiting.jsonl"
TAKEN = "taken-*.jsonl"
UNREADABLE = "unreadable.jsonl"


class Spool:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, entries: Sequence[Finished]) -> None:
        """On the disk when it returns."""
        self._append(NAME, [entry.as_line() for entry in entries])

    def is_empty(self) -> bool:
        return not (self._folder / NAME).exists() and not any(self._folder.glob(TAKEN))

    def take_up(self, append: Callable[[Sequence[Finished]], None]) -> int:
        """How many lines were appended. What `append` raises leaves the lines for the next time; a line that
        was taken up twice is one row, because each has an id."""
        if self.is_empty():
            return 0
        self._set_aside()
        appended, failed = 0, list[Exception]()
        for path in sorted(self._folder.glob(TAKEN)):
            try:
                appended += self._take_up(path, append)
            except Exception as error:  # noqa: BLE001 - the next may be taken all the same; then it is raised
                failed.append(error)
        if failed:
            raise failed[0]
        return appended

    def _take_up(self, path: Path, append: Callable[[Sequence[Finished]], None]) -> int:
        try:
            lines = path.read_text().splitlines()
        except FileNotFoundError:  # another process was quicker
            return 0
        entries, unreadable = list[Finished](), list[str]()
        for line in lines:
            try:
                entries.append(Finished.of_line(line))
            except (ValueError, TypeError):
                unreadable.append(line)
        append(entries)
        if unreadable:
            self._append(UNREADABLE, unreadable)
            log.error(
                "%d audit lines cannot be read; they are in %s.", len(unreadable), self._folder / UNREADABLE
            )
        path.unlink(missing_ok=True)
        return len(entries)

    def _set_aside(self) -> None:
        path = self._folder / NAME
        if path.exists():
            with self._opened(path):
                path.rename(self._folder / f"taken-{uuid4().hex}.jsonl")

    def _append(self, name: str, lines: Sequence[str]) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._opened(self._folder / name) as descriptor:
            left = "".join(f"{line}\n" for line in lines).encode()
            while left:
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)

    @contextmanager
    def _opened(self, path: Path) -> Iterator[int]:
        """The file that has this name once we have its lock: it may have been moved aside meanwhile."""
        while True:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(path, flags, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if _is_still(path, descriptor):
                    yield descriptor
                    return
            finally:
                os.close(descriptor)


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False

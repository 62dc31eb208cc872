"""What the walls that stand in a vault know of it, for the one that is built next.

An agent can move a folder about without seeing the secret in it. While the next wall is looked for and built,
agents stand still (`one_at_a_time`, and `launcher.standing_still`). But one may have put it before into a
folder that is hidden as a whole, to take it out when the other wall stands. So each wall tells in which
folders it found something that it protects, and which it hides as a whole. What the agents behind these walls
can see they may show to anyone, so nothing else matters.

It is told in a file in our own home, which is locked for as long as the wall stands: the kernel drops the
lock of a worker that was killed.
"""

import asyncio
import fcntl
import hashlib
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from uuid import uuid4

from .base import Identity, VaultBusy
from .looking import Found

TOLD = ".json"
TICK = 0.01  # seconds
WAITS = 30.0  # seconds, for the others' walls
WAITS_TO_END = 1.0

BUILDING = "Other agents are being started in this vault, and it takes them too long. Try again in a moment."
PUT_AWAY = (
    "A folder with something in it that agents must not see is not where it was, and a new folder cannot be "
    "looked into. Nothing starts here before the other agents in this vault have ended."
)
OPENED = (
    "A folder that another agent in this vault may not look into can be looked into by now. "
    "Nothing starts here before that agent has ended."
)


@dataclass(frozen=True)
class Neighbour:
    """Of a wall that stands: the folders with something in them, and those that it hides as a whole."""

    known: frozenset[Identity]
    closed: frozenset[Identity]
    mark: str = ""  # of its processes, if they can be brought to a stand

    def may_have_put_away(self, found: Found) -> bool:
        return not self.known <= found.known and not found.closed <= self.closed

    def would_be_undone(self, found: Found) -> bool:
        """What it hides as a whole another one would show, whose agent could take things out of it."""
        return not self.closed.isdisjoint(found.folders.values())


def check(found: Found, neighbours: Iterable[Neighbour]) -> None:
    """Raises VaultBusy where not all can be found that these neighbours' agents do not see."""
    for each in neighbours:
        if each.would_be_undone(found):
            raise VaultBusy(OPENED)
        if each.may_have_put_away(found):
            raise VaultBusy(PUT_AWAY)


@contextmanager
def one_at_a_time(vault: Path, locks: Path) -> Iterator[None]:
    """Of those who build a wall in it: who is let in would run while the other looks."""
    until = time.monotonic() + WAITS
    with _building(vault, locks) as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() > until:
                    raise VaultBusy(BUILDING) from error
                time.sleep(TICK)  # noqa: TID251 - it blocks, and not for ever
            else:
                break
        yield


@asynccontextmanager
async def between_walls(vault: Path, locks: Path) -> AsyncIterator[None]:
    """For who ends an agent there, or gives something back: one that ends while it stands still may have run
    before that, and the other's start counts for nothing. After a second that is how it is."""
    until = time.monotonic() + WAITS_TO_END
    with _building(vault, locks) as lock:
        while time.monotonic() < until:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                await asyncio.sleep(TICK)
            else:
                break
        yield


def _building(vault: Path, locks: Path) -> IO[str]:
    folder = _told_in(vault, locks)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return (folder / "building").open("w")


def tell(vault: Path, found: Found, locks: Path, mark: str = "") -> Callable[[], None]:
    """Tells the next ones, until what it returns is called. `mark`: of the processes behind it. Who only
    reads is no exception: another agent may have handed it a folder to move things in."""
    folder = _told_in(vault, locks)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{uuid4().hex}{TOLD}"
    file = path.with_suffix(".new").open("x")
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump([[*found.known], [*found.closed], mark], file)
        file.flush()
        path.with_suffix(".new").rename(path)
    except BaseException:
        file.close()
        raise

    def end() -> None:
        path.unlink(missing_ok=True)
        file.close()

    return end


def told(vault: Path, locks: Path) -> list[Neighbour]:
    """By those that still stand."""
    return [each for path in _told_in(vault, locks).glob(f"*{TOLD}") if (each := _read(path))]


def _read(path: Path) -> Neighbour | None:
    with suppress(FileNotFoundError), path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            known, closed, mark = json.load(file)
            return Neighbour(frozenset(known), frozenset(closed), mark)
        path.unlink()  # its worker was killed, and its agent with it
    return None


def _told_in(vault: Path, locks: Path) -> Path:
    return locks / f"{hashlib.sha256(os.fsencode(vault)).hexdigest()[:24]}.walls"

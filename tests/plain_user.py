"""Where the tests run as root, no bits of a file or a folder hold them up: what depends on these is done as a
plain user."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PLAIN = 23_456  # a user that nobody is


@contextmanager
def acting_as(user: int) -> Iterator[None]:
    before = os.geteuid()
    if user == before:
        yield
        return
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(before)


@contextmanager
def folder_of_a_plain_user() -> Iterator[Path]:
    """And a plain user for as long."""
    with tempfile.TemporaryDirectory() as name:
        user = PLAIN if os.geteuid() == 0 else os.geteuid()
        os.chown(name, user, -1)
        with acting_as(user):
            yield Path(name).resolve()


def dig(folder: Path, floors: int) -> None:
    """Folders in each other, deeper than a path can say."""
    here = os.open(folder, os.O_DIRECTORY)
    for _ in range(floors):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)

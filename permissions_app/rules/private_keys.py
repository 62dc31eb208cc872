"""Is a `*.key` file a private key? Keynote presentations have that name too, so the file decides."""

import os
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

HEADER = b"-----BEGIN "
HEAD_BYTES = 16_384  # a PEM file may begin with remarks
MAX_ENTRIES = 20_000  # looked through in some 30 ms, once for each turn
MAX_DEPTH = 64
MAX_KEYS = 100  # each is a rule in one argument of the CLI, which ends at 128 KB


def has_pem_header(path: Path) -> bool:
    """What cannot be read counts as a key; what is not there, or is no file, does not."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        # A link or a pipe that was put there since must neither be followed nor wait for a writer.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    with os.fdopen(handle, "rb") as file:
        return HEADER in file.read(HEAD_BYTES)


def private_keys_in(folder: Path) -> list[Path] | None:
    """All private keys named `*.key` in a folder; None where it holds too much to say, or is too deep, or
    has more of them than a command line takes."""
    keys: list[Path] = []
    try:
        for entry in _entries(folder):
            if entry.lower().endswith(".key") and has_pem_header(Path(entry)):
                keys.append(Path(entry))
            if len(keys) > MAX_KEYS:
                return None
    except _TooMuch:
        return None
    return keys


class _TooMuch(Exception):
    pass


def _entries(folder: Path) -> Iterator[str]:
    """Every file below, without recursion: an agent made a folder 1,500 levels deep."""
    waiting, seen = [(str(folder), 0)], 0
    while waiting:
        parent, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise _TooMuch
        for entry in _listed(parent):
            seen += 1
            if seen > MAX_ENTRIES:
                raise _TooMuch
            if not entry.is_dir(follow_symlinks=False):
                yield entry.path
            elif entry.name != ".git":
                waiting.append((entry.path, depth + 1))


def _listed(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, MAX_ENTRIES + 1))
    except OSError:
        return []  # gone, or closed to us: behind a wall it is hidden as a whole

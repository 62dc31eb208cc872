"""Is a `*.key` file a private key? Keynote presentations have that name too, so the file decides."""

import os
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

HEADER = b"-----BEGIN "
HEAD_BYTES = 16_384  # a PEM file may begin with remarks
MAX_ENTRIES = 20_000  # looked through in some 30 ms, once for each start of a process


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
    """All private keys named `*.key` in a folder; None where it holds too much to say."""
    entries = list(islice(_entries(folder), MAX_ENTRIES))
    if len(entries) == MAX_ENTRIES:
        return None
    return [Path(e) for e in entries if e.lower().endswith(".key") and has_pem_header(Path(e))]


def _entries(folder: Path) -> Iterator[str]:
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        yield from (f"{parent}/{name}" for name in files)

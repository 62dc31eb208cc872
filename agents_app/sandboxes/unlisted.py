"""Keeps git from seeing an empty file that only holds a name, by a line in the repository's `info/exclude`.

Git does not list an empty folder, but it lists an empty file, and whoever adds everything would commit it:
the person, and each agent.
"""

import errno
import fcntl
import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sessions_app.files.folders import Folder

WHY = "# Held by Parachute while agents run here; see docs/sandboxes.md."
EXCLUDE = "exclude"
LARGEST = 1 << 20  # bytes

_PLAIN = re.compile(r"[^\\*?\[\x00-\x1f]+")  # of anything else a pattern says something else


def hide(vault: Path, folder: Path, name: str, locks: Path) -> bool:
    """Whether git does not list this name in this folder from now on, or knows nothing of the folder."""
    top = _repository(folder)
    if top is None:
        return True
    if not top.is_relative_to(vault):
        return False
    line = "/" + (folder / name).relative_to(top).as_posix()
    try:
        with _exclude(vault, top, locks) as info:
            before = _lines(info)
            if not _PLAIN.fullmatch(line):
                return False
            if not _is_in(before, line):
                _write(info, [*before[:-1], WHY, line, ""])
            return True
    except OSError:
        return False


def show(vault: Path, folder: Path, name: str, locks: Path) -> None:
    top = _repository(folder)
    if top is None or not top.is_relative_to(vault):
        return
    line = "/" + (folder / name).relative_to(top).as_posix()
    with suppress(OSError), _exclude(vault, top, locks) as info:
        before = _lines(info)
        if _is_in(before, line):
            at = next(i for i, each in enumerate(before) if before[i : i + 2] == [WHY, line])
            _write(info, before[:at] + before[at + 2 :])


def _is_in(lines: list[str], line: str) -> bool:
    return any(lines[at : at + 2] == [WHY, line] for at in range(len(lines)))


def _repository(folder: Path) -> Path | None:
    return next((each for each in (folder, *folder.parents) if os.path.lexists(each / ".git")), None)


@contextmanager
def _exclude(vault: Path, top: Path, locks: Path) -> Iterator[Folder]:
    """Its `.git/info`, where nobody else of ours writes meanwhile. An OSError where there is none, as in a
    worktree."""
    name = hashlib.sha256(os.fsencode(top)).hexdigest()[:24]
    lock = os.open(locks / f"{name}.exclude", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with Folder.at(vault) as root, root.below(*top.relative_to(vault).parts, ".git", "info") as info:
            yield info
    finally:
        os.close(lock)


def _lines(info: Folder) -> list[str]:
    """The last one is empty: who adds to the file begins a line of their own."""
    if info.look(EXCLUDE) is None:
        return [""]
    content = info.read(EXCLUDE, first=LARGEST + 1).decode(errors="surrogateescape")
    if len(content) > LARGEST:
        raise OSError(errno.EFBIG, f"{EXCLUDE} is too large")
    return [*content.removesuffix("\n").split("\n"), ""] if content else [""]


def _write(info: Folder, lines: list[str]) -> None:
    content = "\n".join(lines).encode(errors="surrogateescape")
    if not content:
        info.remove(EXCLUDE)
    elif info.look(EXCLUDE) is None:
        info.write(EXCLUDE, content)
    else:
        info.overwrite(EXCLUDE, content)

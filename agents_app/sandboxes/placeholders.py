"""Names that nothing may be planted under while a wall stands.

What is there a wall can show read-only; what is not, an agent could make: a `.mcp.json` or `.vscode/` that
some other program of the person's believes. So an empty folder holds each of these names, hidden and unknown
to git, for as long as an agent runs in the vault, and goes with the last one. A lock in our own home counts
them: the kernel drops it for a worker that was killed, and the next one cleans up.
"""

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

NAMES = (".claude", ".mcp.json", ".agents", ".vscode", ".envrc", ".obsidian")
IN_GIT = ("hooks",)
OURS = 0o1755  # nobody makes a folder with this mode by chance

_STEP = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def hold(vault: Path, directory: Path, locks: Path) -> Callable[[], None]:
    """Holds the names in the vault's root and in the directory below it, until what it returns is called."""
    locks.mkdir(mode=0o700, parents=True, exist_ok=True)
    folders = list(dict.fromkeys((vault, directory)))
    name = hashlib.sha256("\0".join(map(str, folders)).encode()).hexdigest()[:24]
    lock = os.open(locks / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_SH)  # who holds it alone only removes a few folders
    for folder in folders:
        _in(vault, folder, _make)
    return lambda: _let_go(lock, vault, folders)


def _let_go(lock: int, vault: Path, folders: list[Path]) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return  # another agent runs here, and the last one removes them
    else:
        for folder in folders:
            _in(vault, folder, _remove)
    finally:
        os.close(lock)


def _in(vault: Path, folder: Path, act: Callable[[str, int], None]) -> None:
    """Follows no link below the vault; one that is not there, or that we may not write, is left alone."""
    handles = [os.open(vault, os.O_DIRECTORY | os.O_CLOEXEC)]
    try:
        for part in folder.relative_to(vault).parts:
            handles.append(os.open(part, _STEP, dir_fd=handles[-1]))
        for name in NAMES:
            act(name, handles[-1])
        handles.append(os.open(".git", _STEP, dir_fd=handles[-1]))
        for name in IN_GIT:
            act(name, handles[-1])
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EROFS):
            raise
    finally:
        for handle in handles:
            os.close(handle)


def _make(name: str, parent: int) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=parent)
        handle = os.open(name, _STEP, dir_fd=parent)
        try:
            os.fchmod(handle, OURS)
        finally:
            os.close(handle)


def _remove(name: str, parent: int) -> None:
    with suppress(OSError):  # what has something in it is not ours any more
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if stat.S_IMODE(found.st_mode) == OURS and stat.S_ISDIR(found.st_mode):
            os.rmdir(name, dir_fd=parent)

"""Names that nothing may be planted under while a wall stands.

What is there a wall can show read-only; what is not, an agent could make: a `.mcp.json` or `.vscode/` that
some other program of the person's believes. So an empty folder holds each of these names, hidden and unknown
to git, for as long as an agent runs in the vault, and goes with the last one. A lock in our own home counts
them: the kernel drops it for a worker that was killed, and the next one cleans up.

`commondir` in a repository tells git where to look for settings and hooks, and no repository of people's has
it. So it says "here" in each, in the same way. `config.worktree` has more settings, where the repository's
own say so: it is held by an empty file.

An empty file holds `.mcp.json` where git can be kept from listing it: the CLI writes no file in the place of
a folder, and would say so before anybody is asked.

`Agents/` counts in the vault's root alone, and so is held there alone. People see it meanwhile: a file in it
would say what each new chat is told.

What is ours is told by a mode that nobody makes by chance. Where a file system keeps none (NTFS, FAT, the
folders of Windows under WSL), a note in the folder says so, and keeps git from listing it.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from agents_app.sandboxes import unlisted

NAMES = (".claude", ".mcp.json", ".agents", ".vscode", ".envrc", ".obsidian")
IN_ROOT = (*NAMES, "Agents")
HOOKS = "hooks"
COMMON = "commondir"
MORE_SETTINGS = "config.worktree"
IN_GIT = (COMMON, HOOKS, MORE_SETTINGS)
HERE = b".\n"
FILE = ".mcp.json"  # the one of them that is a file and that an agent may write once a person allows it
OURS = 0o1755  # nobody makes a folder with this mode by chance
OUR_FILE = 0o1644  # nor an empty file with this one
NOTE = ".gitignore"
OUR_NOTE = b"# Held by Parachute while agents run here; see docs/sandboxes.md.\n*\n"

Act = Callable[[int], None]  # in an open folder
LEFT_ALONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EROFS)

_STEP = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def hold(vault: Path, directory: Path, locks: Path) -> Callable[[], None]:
    """Holds the names in the vault's root and in the directory below it, until what it returns is called."""
    locks.mkdir(mode=0o700, parents=True, exist_ok=True)
    with ExitStack() as ends:
        for folder in dict.fromkeys((vault, directory)):
            take, give_back = (partial(act, vault, folder, locks) for act in (_take, _give_back))
            _hold(vault, folder, locks, take, give_back, ends)
        return ends.pop_all().close


def hold_repositories(vault: Path, folders: Sequence[Path], locks: Path) -> Callable[[], None]:
    """The same for hooks and `commondir` in these folders of git's, wherever they lie in the vault."""
    locks.mkdir(mode=0o700, parents=True, exist_ok=True)
    with ExitStack() as ends:
        for folder in folders:
            _hold(vault, folder, locks, _take_in_git, _give_back_in_git, ends)
        return ends.pop_all().close


def _hold(vault: Path, folder: Path, locks: Path, take: Act, give_back: Act, ends: ExitStack) -> None:
    """One lock for each folder: who ends may stand in another one, and both in the vault. The folder stays
    open and the lock is that of the very folder: behind a wall it can be moved, with what is held in it, and
    another one to its place. Follows no link below the vault; what is not there is left alone."""
    handle = _opened(vault, folder)
    if handle is None:
        return
    ends.callback(os.close, handle)
    lock = _lock(handle, locks)
    ends.callback(_let_go, lock, partial(_in, handle, give_back))
    fcntl.flock(lock, fcntl.LOCK_SH)  # who holds it alone only removes a few folders
    _in(handle, take)


def _lock(folder: int, locks: Path) -> int:
    found = os.fstat(folder)
    path = locks / f"{found.st_dev}-{found.st_ino}.lock"
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _names(vault: Path, folder: Path) -> tuple[str, ...]:
    return IN_ROOT if folder == vault else NAMES


def _take(vault: Path, folder: Path, locks: Path, handle: int) -> None:
    is_free = not os.path.lexists(folder / FILE) or is_ours(folder / FILE)
    is_hidden = is_free and unlisted.hide(vault, folder, FILE, locks)
    for name in _names(vault, folder):
        (_make_file if is_hidden and name == FILE else _make)(name, handle)


def _let_go(lock: int, give_back: Callable[[], None]) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return  # another agent runs here, and the last one removes them
    else:
        give_back()
    finally:
        os.close(lock)


def _give_back(vault: Path, folder: Path, locks: Path, handle: int) -> None:
    for name in _names(vault, folder):
        _remove(name, handle)
    unlisted.show(vault, folder, FILE, locks)


def _opened(vault: Path, folder: Path) -> int | None:
    with ExitStack() as above:
        try:
            handle = os.open(vault, os.O_DIRECTORY | os.O_CLOEXEC)
            for part in folder.relative_to(vault).parts:
                above.callback(os.close, handle)
                handle = os.open(part, _STEP, dir_fd=handle)
        except OSError as error:
            if error.errno not in LEFT_ALONE:
                raise
            return None
        return handle


def _in(folder: int, act: Act) -> None:
    """One that we may not write is left alone."""
    try:
        with _open_to_us(folder):
            act(folder)
    except OSError as error:
        if error.errno not in LEFT_ALONE:
            raise


@contextmanager
def _open_to_us(folder: int) -> Iterator[None]:
    """Of one of our own in which nothing may be made, an agent can change that behind its next wall."""
    found = os.fstat(folder)
    mode = stat.S_IMODE(found.st_mode)
    is_closed = found.st_uid == os.geteuid() and not mode & stat.S_IWUSR
    if is_closed:
        os.fchmod(folder, mode | stat.S_IWUSR)
    try:
        yield
    finally:
        if is_closed:
            os.fchmod(folder, mode)


def _make(name: str, parent: int) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=parent)
        handle = os.open(name, _STEP, dir_fd=parent)
        try:
            with suppress(OSError):
                os.fchmod(handle, OURS)
            if not _has_our_mode(os.fstat(handle)):
                _write(NOTE, OUR_NOTE, handle)
        finally:
            os.close(handle)


def _make_file(name: str, parent: int) -> None:
    """Empty, so that what a person allows can be written into this very file: on it the walls are mounted. On
    a file system that keeps no such mode nobody could tell it from a person's: there it is a folder."""
    try:
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=parent)
    except FileExistsError:
        return
    try:
        with suppress(OSError):
            os.fchmod(handle, OUR_FILE)
        is_ours = _is_our_file(os.fstat(handle))
    finally:
        os.close(handle)
    if not is_ours:
        os.unlink(name, dir_fd=parent)
        _make(name, parent)


def _take_in_git(parent: int) -> None:
    _make(HOOKS, parent)
    _make_file(MORE_SETTINGS, parent)
    with suppress(FileExistsError):  # ours, of another agent or of one that was killed; or a person's own
        _write(COMMON, HERE, parent)


def _write(name: str, content: bytes, parent: int) -> None:
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=parent)
    try:
        os.write(handle, content)
    finally:
        os.close(handle)


def _give_back_in_git(parent: int) -> None:
    _remove(HOOKS, parent)
    _remove(MORE_SETTINGS, parent)
    with suppress(OSError):
        if _says(HERE, COMMON, parent):
            os.unlink(COMMON, dir_fd=parent)


def _says(content: bytes, path: Path | str, parent: int | None = None) -> bool:
    """Waits for nobody: an agent may put a pipe there."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    try:
        return os.read(handle, len(content) + 1) == content
    finally:
        os.close(handle)


def _remove(name: str, parent: int) -> None:
    with suppress(OSError):  # what has something in it is not ours any more
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if _is_our_file(found):
            os.unlink(name, dir_fd=parent)
        elif _has_our_mode(found) or _is_without_our_note(name, parent):
            os.rmdir(name, dir_fd=parent)


def _is_without_our_note(name: str, parent: int) -> bool:
    """Whether one lay in it, and is removed."""
    handle = os.open(name, _STEP, dir_fd=parent)
    try:
        if not _says(OUR_NOTE, NOTE, handle):
            return False
        os.unlink(NOTE, dir_fd=handle)
        return True
    finally:
        os.close(handle)


def is_ours(path: Path) -> bool:
    """Whether nothing but a name that is held lies there."""
    with suppress(OSError):
        found = path.lstat()
        if path.name == COMMON and stat.S_ISREG(found.st_mode):
            return _says(HERE, path)
        if stat.S_ISDIR(found.st_mode):
            names = os.listdir(path)
            return _says(OUR_NOTE, path / NOTE) if names == [NOTE] else _has_our_mode(found) and not names
        return _is_our_file(found)
    return False


def _has_our_mode(found: os.stat_result) -> bool:
    return stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) == OURS


def _is_our_file(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) == OUR_FILE and not found.st_size

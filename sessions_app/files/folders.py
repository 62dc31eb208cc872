"""The server's own way into folders that an agent can write: by directory handles, never through a link.

Between a look and an open an agent may swap a folder for a link. Each step here opens one name below a handle
that is already open, and refuses links, so there is nothing to swap.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import BinaryIO, Literal
from uuid import uuid4

# No folder of a person's, so none of these is a vault.
_SYSTEM = "/ /bin /dev /etc /home /lib /opt /root /srv /tmp /usr /var"
SYSTEM = frozenset(map(Path, _SYSTEM.split()))
LARGEST_FILE = 64 << 20  # bytes; an agent can make a file of any size without writing it
MOST_ALIKE = 100
LOCK_WAITS = 2.0  # seconds, for others who append; an agent could hold it, and with it our thread, for ever
TICK = 0.005

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a fifo would wait for a writer
_CHANGE = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_APPEND = _CHANGE | os.O_APPEND | os.O_CREAT
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC  # follows no link
_STEP = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Unexpected(OSError):
    """A file holds something else than its writer has read."""


class Folder:
    """An open folder. What lies in it is reached by single names; a link or a special file is not there."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    @classmethod
    @contextmanager
    def at(cls, path: Path) -> Iterator["Folder"]:
        """The folder at a path that we chose ourselves; only what is below it is suspicious."""
        handle = os.open(path, os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield cls(handle)
        finally:
            os.close(handle)

    @contextmanager
    def below(self, *names: str, make: bool = False) -> Iterator["Folder"]:
        handle = os.dup(self._handle)
        try:
            for name in names:
                if make:
                    _make(_single(name), handle)
                step = os.open(_single(name), _STEP, dir_fd=handle)
                os.close(handle)
                handle = step
            yield Folder(handle)
        finally:
            os.close(handle)

    def identity(self) -> str:
        """Its device and inode: what a path must still lead to where somebody else opens it by name."""
        found = os.fstat(self._handle)
        return f"{found.st_dev}:{found.st_ino}"

    def names(self) -> list[str]:
        return sorted(os.listdir(self._handle))

    def read(self, name: str, *, first: int | None = None) -> bytes:
        """The content of a regular file, or its first so many bytes; an `OSError` for anything else, and for
        one that would fill our memory."""
        with self.open(name) as file:
            if first is None and os.fstat(file.fileno()).st_size > LARGEST_FILE:
                raise OSError(errno.EFBIG, f"{name} is larger than {LARGEST_FILE:,} bytes")
            return file.read(LARGEST_FILE if first is None else first)

    def open(self, name: str) -> BinaryIO:
        """A regular file, to be read piece by piece and closed by whoever has asked for it."""
        return self._opened(name, _READ, "rb")

    def look(self, name: str) -> os.stat_result | None:
        """What lies there, a link not followed; None where nothing does."""
        with suppress(FileNotFoundError):
            return os.stat(_single(name), dir_fd=self._handle, follow_symlinks=False)
        return None

    def write(self, name: str, content: bytes, *, mode: int = 0o644) -> None:
        """Replaces a file as a whole: a reader sees the old content or the new one, nothing between."""
        fresh = f".{_single(name)}.{uuid4().hex[:8]}"
        handle = os.open(fresh, _NEW, 0o644, dir_fd=self._handle)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                if mode != 0o644:
                    os.fchmod(file.fileno(), mode)
            os.rename(fresh, name, src_dir_fd=self._handle, dst_dir_fd=self._handle)
        except BaseException:
            os.unlink(fresh, dir_fd=self._handle)
            raise

    def overwrite(self, name: str, content: bytes, *, where: Callable[[bytes], bool] | None = None) -> None:
        """Puts new content into the regular file that lies there, which stays the same file: to rename
        another over it would take away what a wall has mounted on it. Where that fails the old content is put
        back. `where` looks at what is there: Unexpected is raised where it says no. Nobody locks the file: an
        agent may hold a lock on what it only reads."""
        with self._opened(name, _CHANGE, "r+b") as file:
            _replace(file, name, lambda before: content, where=where)

    def keep_lines(self, name: str, wanted: Callable[[bytes], bool], *, waits: bool = True) -> None:
        """Takes the other lines out of a regular file, as `overwrite` does. Who appends meanwhile waits.
        Raises a BlockingIOError where somebody keeps it locked."""
        with self._opened(name, _CHANGE, "r+b") as file:
            _lock(file.fileno(), name, waits=waits)
            _replace(file, name, lambda old: b"".join(each for each in old.splitlines(True) if wanted(each)))

    def append(self, name: str, line: bytes) -> None:
        """To a regular file, made where it is not, as a line of its own. Others may append at the same
        time; a last line that somebody left without its end gets one. Raises OSError, also where somebody
        keeps it locked."""
        handle = os.open(_single(name), _APPEND, 0o644, dir_fd=self._handle)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise FileNotFoundError(errno.ENOENT, f"{name} is not a regular file")
            _lock(handle, name)
            size = os.fstat(handle).st_size
            is_cut = size and os.pread(handle, 1, size - 1) != b"\n"
            os.write(handle, b"\n" * bool(is_cut) + line)
        finally:
            os.close(handle)

    def add(self, name: str, content: bytes) -> str:
        """A new file under this name or, where that is taken, one like it. An empty file holds the name while
        it is written, so that two who add at once never get the same."""
        held = self._held(name)
        try:
            self.write(held, content)
        except BaseException:
            with suppress(OSError):  # what went wrong is told, and not this
                self.remove(held)
            raise
        return held

    def remove(self, name: str) -> None:
        """A file, or the link that lies in its place; what is gone already is removed."""
        single = _single(name)
        with suppress(FileNotFoundError):
            os.unlink(single, dir_fd=self._handle)

    def take_name(self, name: str, wanted: str) -> None:
        """What lies here gets another name, which nothing has: a FileExistsError else."""
        if self.look(wanted) is not None:
            raise FileExistsError(errno.EEXIST, f"{wanted} is there already")
        os.rename(_single(name), _single(wanted), src_dir_fd=self._handle, dst_dir_fd=self._handle)

    def remove_empty(self, name: str) -> None:
        """A folder. An OSError where something is in it."""
        os.rmdir(_single(name), dir_fd=self._handle)

    def _opened(self, name: str, flags: int, mode: Literal["rb", "r+b"]) -> BinaryIO:
        handle = os.open(_single(name), flags, dir_fd=self._handle)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise FileNotFoundError(errno.ENOENT, f"{name} is not a regular file")
        return os.fdopen(handle, mode)

    def _held(self, name: str) -> str:
        for free in _alike(_single(name)):
            with suppress(FileExistsError):
                os.close(os.open(free, _NEW, 0o644, dir_fd=self._handle))
                return free
        raise FileExistsError(errno.EEXIST, f"{name} is taken, and so are the names like it")


def remove_all(path: Path) -> None:
    """A folder with all that is in it, through no link, when nobody writes there any more. An agent may have
    made it deeper than any path and any recursion: what lies two floors down is brought up before its folder
    is removed. It may have closed folders to its own user, us: they are opened. What cannot be removed keeps
    nobody from the rest; the first of it is raised, an OSError. Two may remove it at once: what is gone is
    no problem of theirs, and each removes what it brought up."""
    with suppress(FileNotFoundError):
        path.chmod(0o700)
        handle = os.open(path, _STEP)
        try:
            _remove_through(handle, path)
        finally:
            os.close(handle)


def _remove_through(handle: int, path: Path) -> None:
    problems, tried = list[OSError](), set[str]()
    while True:
        while folders := _all_but_folders(handle, problems) - tried:
            tried |= folders
            for name in folders:
                with _noted(problems):
                    _bring_up(name, handle, problems)
        if problems:
            raise problems[0]
        try:
            return path.rmdir()
        except OSError:  # the other one may have brought something up just now
            if not _all_but_folders(handle, problems) - tried:
                raise


def _bring_up(name: str, handle: int, problems: list[OSError]) -> None:
    inner = os.open(name, _STEP, dir_fd=handle)
    try:
        for below in _all_but_folders(inner, problems):
            with _noted(problems):
                os.rename(below, uuid4().hex, src_dir_fd=inner, dst_dir_fd=handle)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=handle)


def _all_but_folders(handle: int, problems: list[OSError]) -> set[str]:
    """Are removed from it. The folders, which stay, are opened to us."""
    with os.scandir(handle) as entries:
        is_folder = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    for name, stays in is_folder.items():
        with _noted(problems):
            if stays:
                os.chmod(name, 0o700, dir_fd=handle)
            else:
                os.unlink(name, dir_fd=handle)
    return {name for name, stays in is_folder.items() if stays}


@contextmanager
def _noted(problems: list[OSError]) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        pass
    except OSError as problem:
        problems.append(problem)


def _lock(handle: int, name: str, *, waits: bool = True) -> None:
    until = time.monotonic() + LOCK_WAITS * waits
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > until:
                raise BlockingIOError(errno.EAGAIN, f"{name} is locked by another program") from error
        time.sleep(TICK)  # noqa: TID251 - it blocks, and not for ever


def _replace(
    file: BinaryIO,
    name: str,
    change: Callable[[bytes], bytes],
    *,
    where: Callable[[bytes], bool] | None = None,
) -> None:
    before = file.read(LARGEST_FILE + 1)
    if len(before) > LARGEST_FILE:
        raise OSError(errno.EFBIG, f"{name} is too large to be put back")
    if where is not None and not where(before):
        raise Unexpected(errno.ESTALE, f"{name} is another by now")
    try:
        _fill(file.fileno(), change(before))
    except BaseException:
        _fill(file.fileno(), before)
        raise


def _fill(handle: int, content: bytes) -> None:
    written = 0
    while written < len(content):
        written += os.pwrite(handle, content[written:], written)
    os.ftruncate(handle, len(content))


def _single(name: str) -> str:
    if name in ("", ".", "..") or "/" in name:
        raise FileNotFoundError(f"{name!r} is not the name of one file")
    return name


def _alike(name: str) -> Iterator[str]:
    """`photo.png`, `photo-2.png` …, and when somebody has taken all of these, one that nobody has."""
    stem, suffix = PurePath(name).stem, PurePath(name).suffix
    yield name
    for number in range(2, MOST_ALIKE + 1):
        yield f"{stem}-{number}{suffix}"
    yield f"{stem}-{uuid4().hex[:12]}{suffix}"


def _make(name: str, handle: int) -> None:
    try:
        os.mkdir(name, 0o755, dir_fd=handle)
    except FileExistsError:
        return

"""The server's own way into folders that an agent can write: by directory handles, never through a link.

Between a look and an open an agent may swap a folder for a link. Each step here opens one name below a handle
that is already open, and refuses links, so there is nothing to swap.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

_STEP = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


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
                    _make(name, handle)
                step = os.open(name, _STEP, dir_fd=handle)
                os.close(handle)
                handle = step
            yield Folder(handle)
        finally:
            os.close(handle)

    def names(self) -> list[str]:
        return sorted(os.listdir(self._handle))

    def read(self, name: str) -> bytes:
        """The content of a regular file; `FileNotFoundError` for anything else."""
        handle = os.open(
            name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=self._handle
        )
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise FileNotFoundError(f"{name} is not a regular file")
            return file.read()

    def write(self, name: str, content: bytes) -> None:
        """Replaces a file as a whole: a reader sees the old content or the new one, nothing between."""
        fresh = f".{name}.{uuid4().hex[:8]}"
        handle = os.open(
            fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=self._handle
        )
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.rename(fresh, name, src_dir_fd=self._handle, dst_dir_fd=self._handle)
        except BaseException:
            os.unlink(fresh, dir_fd=self._handle)
            raise


def _make(name: str, handle: int) -> None:
    try:
        os.mkdir(name, 0o755, dir_fd=handle)
    except FileExistsError:
        return

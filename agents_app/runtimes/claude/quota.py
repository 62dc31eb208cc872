"""How much a session keeps on the disk, in the folder of its own that its wall lets it write: the scratch of
a box, outputs that are too long for the model, the transcript.

No file system bounds a folder, so it is looked at while a turn runs. Who fills it is ended, and it is
emptied.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

from django.utils.translation import gettext as _

from agents_app.runtimes.base import RunFailed
from agents_app.workers import endings
from sessions_app.files.folders import remove_all

log = logging.getLogger(__name__)

LOOKS_EVERY = 2.0  # seconds
MOST_ENTRIES = 100_000
DEEPEST = 64


class Quota:
    def __init__(self, folder: Path, session_id: UUID, most: int) -> None:
        self._folder = folder
        self._transcript = f"{session_id}.jsonl"
        self._most = most
        self.is_full = False

    @asynccontextmanager
    async def watched(self, end: Callable[[], Awaitable[None]]) -> AsyncIterator["Quota"]:
        """`end` ends what fills it."""
        watch = asyncio.create_task(self._watch(end))
        try:
            yield self
        finally:
            await endings.end(watch)

    async def _watch(self, end: Callable[[], Awaitable[None]]) -> None:
        while not self.is_full:
            self.is_full = await asyncio.to_thread(is_over, self._folder, self._most)
            await (end() if self.is_full else asyncio.sleep(LOOKS_EVERY))

    def failure(self) -> RunFailed:
        told = _(
            "This chat kept more than %(size)s MB in a folder of its own, or too many files, or folders that "
            "nobody can look into."
        )
        return RunFailed("scratch_full", told % {"size": f"{self._most >> 20:,}"})

    def empty(self) -> None:
        """When nothing of it runs any more. Through no link: an agent could have us remove what it leads to.
        The transcript stays, unless that is what is too large. What cannot be removed is named in the log."""
        projects = self._folder / "projects"
        for path in _inside(self._folder):
            if path != projects or not _is_folder(path):
                _remove(path)
        kept = 0
        for project in _inside(projects) if _is_folder(projects) else ():
            for path in _inside(project) if _is_folder(project) else (project,):
                size = path.lstat().st_size
                is_transcript = path.name == self._transcript and path.is_file() and not path.is_symlink()
                if is_transcript and kept + size <= self._most // 2:
                    kept += size
                else:
                    _remove(path)


def is_over(folder: Path, most: int) -> bool:
    """By what it takes on the disk: a file may have holes. What cannot be looked through counts as full, also
    a folder that its agent closed to its own user, us."""
    held, entries, start = 0, 0, len(folder.parts)
    try:
        for path, folders, files, handle in os.fwalk(folder, follow_symlinks=False, onerror=_unless_gone):
            entries += len(folders) + len(files)
            held += sum(_held(name, handle) for name in files)
            if held > most or entries > MOST_ENTRIES or len(Path(path).parts) - start > DEEPEST:
                return True
    except PermissionError:
        return True
    return False


def _unless_gone(problem: OSError) -> None:
    if not isinstance(problem, FileNotFoundError):
        raise problem


def _held(name: str, handle: int) -> int:
    try:
        return os.stat(name, dir_fd=handle, follow_symlinks=False).st_blocks * 512
    except FileNotFoundError:  # gone meanwhile
        return 0


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _inside(folder: Path) -> list[Path]:
    """Also where its agent closed it to us."""
    folder.chmod(0o700)
    return list(folder.iterdir())


def _remove(path: Path) -> None:
    try:
        if _is_folder(path):
            remove_all(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as problem:
        log.warning("Not all of %s could be removed: %s", path, problem)

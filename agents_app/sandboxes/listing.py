"""The folders of a vault one by one, and what the names in each are to a wall.

All by directory handles and through no link: programs of people's run meanwhile.
"""

import errno
import os
import re
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from permissions_app.rules.control_files import steers
from permissions_app.rules.deny_list import is_secret_name
from permissions_app.rules.paths import fold
from permissions_app.rules.private_keys import HEAD_BYTES, HEADER

from .base import Identity, VaultChanged
from .placeholders import IN_GIT

# What lies deeper is hidden as a whole: an agent made a folder 1,500 levels deep. A path ends at 4,096 bytes.
DEEPEST, LONGEST = 64, 3_500
GIT_FOLDER = ".git"
# In these every file begins with a hash or says where it points to. A branch may be called `config`.
REFS = frozenset({"refs", "logs"})
_REF = re.compile(rb"[0-9a-f]{40}|ref: refs/")

CLOSED = "A folder of the vault was closed while it was looked through."
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe would wait for a writer
_FOLDER = _FILE | os.O_DIRECTORY
_ENTERED = 0o5  # a folder's bits of who may list it and go through it


@dataclass
class Listing:
    """A folder with the names in it. What is taken out of its folders is not looked into."""

    path: Path
    below: list[str]  # the vault, folded
    folders: set[str]
    files: set[str]
    handle: int

    @property
    def names(self) -> set[str]:
        return self.folders | self.files

    @cached_property
    def identity(self) -> Identity:
        return as_identity(os.fstat(self.handle))

    @cached_property
    def _folded(self) -> dict[str, str]:
        """A name may take a millisecond."""
        return {name: fold(name) for name in self.names}

    def identity_of(self, name: str) -> Identity | None:
        """None for a link: what a wall binds in its place would be what it points to."""
        found = self.look_at(name)
        is_plain = found and (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode))
        return as_identity(found) if found and is_plain else None

    def pass_over(self, names: Collection[str]) -> None:
        self.folders.difference_update(names)
        self.files.difference_update(names)

    def out_of_sight(self) -> set[str]:
        """What is secret, or cannot be looked into, or lies too deep for that."""
        is_deepest = len(self.below) >= DEEPEST or len(os.fsencode(self.path)) > LONGEST
        closed = {name for name in self.folders if is_deepest or not self._can_be_looked_into(name)}
        return closed | {name for name in self.names if self._is_secret(name)}

    def steering(self) -> dict[str, Identity]:
        """The names that steer programs. In a folder of git's, whatever it is called, its settings do."""
        of_git = {"config", *IN_GIT} if self.is_of_git() else set[str]()
        return {
            name: identity
            for name in self.names
            if (name in of_git or steers((*self.below, self._folded[name])))
            and not self._is_ref(name)
            and (identity := self.identity_of(name))
        }

    def is_of_git(self) -> bool:
        """A bare repository, a submodule's in `.git/modules`, a worktree's in `.git/worktrees`, one that
        a `.git` file names."""
        names = self.names
        if not self.below or self.below[-1] == GIT_FOLDER:
            return False
        if GIT_FOLDER not in self.below:
            return "HEAD" in names and "objects" in names
        is_among_refs = not REFS.isdisjoint(self.below)
        return ("HEAD" in names and not is_among_refs) or ("config" in names and not self._is_ref("config"))

    def is_link(self, name: str) -> bool:
        found = self.look_at(name)
        return found is not None and stat.S_ISLNK(found.st_mode)

    def may_be_filled(self, name: str) -> bool:
        """By agents, who are our own user: a folder of ours can be opened, one of another's must be open."""
        found = self.look_at(name)
        return found is not None and bool(found.st_uid == os.geteuid() or found.st_mode & 0o022)

    def look_at(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self.handle, follow_symlinks=False)
        except OSError:
            return None

    def _is_ref(self, name: str) -> bool:
        if GIT_FOLDER not in self.below or REFS.isdisjoint(self.below):
            return False
        try:
            file = os.open(name, _FILE, dir_fd=self.handle)
        except OSError:
            return False
        try:
            return stat.S_ISREG(os.fstat(file).st_mode) and _REF.match(os.read(file, 50)) is not None
        finally:
            os.close(file)

    def _can_be_looked_into(self, name: str) -> bool:
        """By us and by the agent, who is root without any privilege where we are root. So can a link: nobody
        goes through it; and what has gone meanwhile."""
        at = self.handle
        is_open = os.access(name, os.R_OK | os.X_OK, dir_fd=at, effective_ids=True, follow_symlinks=False)
        found = self.look_at(name)
        if found is None or not is_open or os.geteuid() != 0:
            return found is None or is_open
        of_root = found.st_mode >> (6 if found.st_uid == 0 else 3 if found.st_gid == 0 else 0)
        return of_root & _ENTERED == _ENTERED

    def _is_secret(self, name: str) -> bool:
        folded = self._folded[name]
        return is_secret_name(folded) or (folded.endswith(".key") and self._is_private_key(name))

    def _is_private_key(self, name: str) -> bool:
        """What cannot be read counts as one; a special file does not."""
        try:
            if not stat.S_ISREG(os.stat(name, dir_fd=self.handle, follow_symlinks=False).st_mode):
                return False
            file = os.open(name, _FILE, dir_fd=self.handle)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        with os.fdopen(file, "rb") as opened:
            return HEADER in opened.read(HEAD_BYTES)


def walk(vault: Path) -> Iterator[Listing]:
    """Every folder, those above first. Unlike `os.fwalk` it waits for no writer of a pipe that an agent puts
    in the place of a folder."""
    return _walk(vault, [], os.open(vault, _FOLDER))


def _walk(path: Path, below: list[str], handle: int) -> Iterator[Listing]:
    try:
        with os.scandir(handle) as entries:
            is_folder = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
        folders = {name for name, is_one in is_folder.items() if is_one}
        listing = Listing(path, below, folders, is_folder.keys() - folders, handle)
        yield listing
        for name in listing.folders:
            try:
                inner = os.open(name, _FOLDER, dir_fd=handle)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                    raise VaultChanged(CLOSED) from error
            else:
                yield from _walk(path / name, [*below, fold(name)], inner)
    finally:
        os.close(handle)


def as_identity(found: os.stat_result) -> Identity:
    return f"{found.st_dev}:{found.st_ino}"

"""What lies in a vault at the moment when a wall is built around its agent: what it hides, what it shows
read-only, and which folders are git's.

Everything is found by directory handles, and each path that a wall will bind goes with the identity of what
was found there: agents of other sessions run meanwhile, and whoever swaps a folder for a link must not get
what the link points to bound into a wall.

Where a vault is read-only as a whole, names that are held for others (`placeholders.py`) are passed over:
nothing lies under them, and they go with those others, perhaps before this wall stands, which could not be
built then. Elsewhere they are shown read-only: who could remove one from outside would open the other's wall.

What cannot be looked into is hidden as a whole: an agent may close a folder to its own user, us, and open it
again behind the next wall, with what is secret and what steers programs in it.
"""

import errno
import os
import re
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from permissions_app.rules.control_files import steers
from permissions_app.rules.deny_list import is_secret_name
from permissions_app.rules.paths import fold
from permissions_app.rules.private_keys import HEAD_BYTES, HEADER

from . import placeholders
from .base import CannotConfine, Identity, VaultChanged

MOST_ENTRIES = 250_000  # half a second; a vault of notes has some thousands
DEEPEST = 64  # what lies deeper is hidden as a whole: an agent made a folder 1,500 levels deep
GIT_FOLDER = ".git"
COMMON = "commondir"
HELD = placeholders.IN_GIT
HELD_ANYWHERE = frozenset({*placeholders.NAMES, *HELD})
# In these every file begins with a hash or says where it points to. A branch may be called `config`.
REFS = frozenset({"refs", "logs"})
_REF = re.compile(rb"[0-9a-f]{40}|ref: refs/")

CLOSED = "A folder of the vault was closed while it was looked through. Send the message again."
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe would wait for a writer
_FOLDER = _FILE | os.O_DIRECTORY
_ENTERED = 0o5  # a folder's bits of who may list it and go through it


@dataclass(frozen=True)
class Found:
    hidden: dict[Path, Identity | None] = field(default_factory=dict)
    control_files: dict[Path, Identity] = field(default_factory=dict)
    repositories: dict[Path, Identity] = field(default_factory=dict)  # pinned: one could be made anew
    around: dict[Path, Identity] = field(default_factory=dict)  # the folders that these lie in
    known: set[Identity] = field(default_factory=set)  # of those around, what is there without agents too
    closed: set[Identity] = field(default_factory=set)  # folders that are hidden as a whole
    folders: list[Path] = field(default_factory=list)  # that it looked into, those above first


def look_through(
    vault: Path, *, past: frozenset[str] = frozenset(HELD), hidden: Collection[Path] = ()
) -> Found:
    """`past` are the names that it passes over where they are only held; those of git's are held anew for
    each wall. `hidden` is hidden anyway. Raises CannotConfine where there is too much to look at: what is not
    seen cannot be hidden. So it looks into `.git` too, where an agent may have put a folder out of sight."""
    found, seen = Found(), 0
    for here, folders, files, handle in _walk(vault):
        found.folders.append(here)
        held = {n for n in HELD_ANYWHERE.intersection((*folders, *files)) if placeholders.is_ours(here / n)}
        passed = (held & past) | {path.name for path in hidden if path.parent == here}
        if passed:
            folders[:] = [name for name in folders if name not in passed]
            files = [name for name in files if name not in passed]
        seen += len(folders) + len(files)
        if seen > MOST_ENTRIES:
            raise CannotConfine(
                f"{vault} holds more than {MOST_ENTRIES:,} files: too many to find those that an agent must "
                "not see. Choose a smaller folder as the vault."
            )
        below = [fold(part) for part in here.parts[len(vault.parts) :]]
        out_of_sight = _out_of_sight(below, folders, files, handle)
        _note_hidden(found, here, out_of_sight, {*folders} - held, handle)
        folders[:] = [name for name in folders if name not in out_of_sight]
        in_sight = [*folders, *(name for name in files if name not in out_of_sight)]
        steering = _steering(here, below, in_sight, handle)
        is_of_git = _is_of_git(below, in_sight, handle)
        _note_steering(found, here, steering, is_of_git, {*folders}, handle)
        if out_of_sight or steering:
            found.around[here] = _identity_of(handle)
        if below and (is_of_git or {*out_of_sight, *(path.name for path in steering)} - held):
            found.known.add(_identity_of(handle))
    return replace(found, control_files=_topmost(found.control_files))


def _out_of_sight(below: list[str], folders: list[str], files: list[str], handle: int) -> set[str]:
    if len(below) >= DEEPEST:
        closed = {*folders}
    else:
        closed = {name for name in folders if not _can_be_looked_into(name, handle)}
    secret = {
        name for name in (*folders, *files) if _is_secret(name, handle) and not _is_ref(below, name, handle)
    }
    return closed | secret


def _note_hidden(found: Found, here: Path, names: set[str], folders: set[str], handle: int) -> None:
    for name in names:
        identity = found.hidden[here / name] = _identity(name, handle)
        if identity and name in folders:
            found.closed.add(identity)


def _note_steering(
    found: Found,
    here: Path,
    steering: dict[Path, Identity],
    is_of_git: bool,
    folders: set[str],
    handle: int,
) -> None:
    for path, identity in steering.items():
        is_repository = fold(path.name) == GIT_FOLDER and path.name in folders
        (found.repositories if is_repository else found.control_files)[path] = identity
    if is_of_git:
        found.repositories[here] = _identity_of(handle)
    if here in found.repositories and any(_is_link(name, handle) for name in HELD):
        # In the place of a link an agent makes a folder.
        found.control_files[here] = found.repositories.pop(here)


def _walk(folder: Path, handle: int | None = None) -> Iterator[tuple[Path, list[str], list[str], int]]:
    """Every folder with the names in it, by handles and through no link. Unlike `os.fwalk` it waits for no
    writer of a pipe that an agent puts in the place of a folder. What is taken out of the list of folders is
    not looked into."""
    if handle is None:
        handle = os.open(folder, _FOLDER)
    try:
        with os.scandir(handle) as entries:
            is_folder = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
        folders = [name for name, is_one in is_folder.items() if is_one]
        yield folder, folders, [name for name, is_one in is_folder.items() if not is_one], handle
        for name in folders:
            try:
                inner = os.open(name, _FOLDER, dir_fd=handle)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                    raise VaultChanged(CLOSED) from error
            else:
                yield from _walk(folder / name, inner)
    finally:
        os.close(handle)


def _steering(here: Path, below: list[str], names: list[str], handle: int) -> dict[Path, Identity]:
    """Of what lies in a folder. In one of git's, whatever it is called, its settings are."""
    of_git = {"config", *HELD} if _is_of_git(below, names, handle) else set[str]()
    return {
        here / name: identity
        for name in names
        if (name in of_git or steers((*below, fold(name))))
        and not _is_ref(below, name, handle)
        and (identity := _identity(name, handle))
    }


def _is_of_git(below: list[str], names: list[str], handle: int) -> bool:
    """A bare repository, a submodule's in `.git/modules`, one that a `.git` file names. Not that of a linked
    worktree, which has a `commondir` of its own."""
    if not below or below[-1] == GIT_FOLDER or COMMON in names:
        return False
    if GIT_FOLDER not in below:
        return "HEAD" in names and "objects" in names
    is_among_refs = not REFS.isdisjoint(below)
    return ("HEAD" in names and not is_among_refs) or (
        "config" in names and not _is_ref(below, "config", handle)
    )


def _is_ref(below: list[str], name: str, handle: int) -> bool:
    if GIT_FOLDER not in below or REFS.isdisjoint(below):
        return False
    try:
        file = os.open(name, _FILE, dir_fd=handle)
    except OSError:
        return False
    try:
        return stat.S_ISREG(os.fstat(file).st_mode) and _REF.match(os.read(file, 50)) is not None
    finally:
        os.close(file)


def _is_link(name: str, handle: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _identity_of(handle: int) -> Identity:
    found = os.fstat(handle)
    return f"{found.st_dev}:{found.st_ino}"


def _identity(name: str, handle: int) -> Identity | None:
    """None for a link: what a wall binds in its place would be what it points to."""
    try:
        found = os.stat(name, dir_fd=handle, follow_symlinks=False)
    except OSError:
        return None
    is_plain = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    return f"{found.st_dev}:{found.st_ino}" if is_plain else None


def _can_be_looked_into(name: str, handle: int) -> bool:
    """By us and by the agent, who is root without any privilege where we are root. A link can be: nobody goes
    through it."""
    if not os.access(name, os.R_OK | os.X_OK, dir_fd=handle, effective_ids=True, follow_symlinks=False):
        return False
    if os.geteuid() != 0:
        return True
    try:
        found = os.stat(name, dir_fd=handle, follow_symlinks=False)
    except FileNotFoundError:
        return False
    of_root = found.st_mode >> (6 if found.st_uid == 0 else 3 if found.st_gid == 0 else 0)
    return of_root & _ENTERED == _ENTERED


def _is_secret(name: str, handle: int) -> bool:
    folded = fold(name)
    return is_secret_name(folded) or (folded.endswith(".key") and _is_private_key(name, handle))


def _is_private_key(name: str, handle: int) -> bool:
    """What cannot be read counts as one; a special file does not."""
    try:
        if not stat.S_ISREG(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode):
            return False
        file = os.open(name, _FILE, dir_fd=handle)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    with os.fdopen(file, "rb") as opened:
        return HEADER in opened.read(HEAD_BYTES)


def _topmost(found: dict[Path, Identity]) -> dict[Path, Identity]:
    return {path: each for path, each in found.items() if not any(above in found for above in path.parents)}

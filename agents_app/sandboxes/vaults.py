"""What lies in a vault at the moment when a wall is built around its agent: which files it hides, which it
shows read-only, and which folders it leaves writable.

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
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from permissions_app.rules.control_files import steers
from permissions_app.rules.deny_list import is_secret_name
from permissions_app.rules.paths import fold
from permissions_app.rules.private_keys import HEAD_BYTES, HEADER
from sessions_app.folders import Folder

from . import placeholders
from .base import CannotConfine

MOST_ENTRIES = 250_000  # half a second; a vault of notes has some thousands
DEEPEST = 64  # what lies deeper is hidden as a whole: an agent made a folder 1,500 levels deep
GIT_FOLDER = ".git"
COMMON = "commondir"
HELD = placeholders.IN_GIT
# In these every file begins with a hash or says where it points to. A branch may be called `config`.
REFS = frozenset({"refs", "logs"})
_REF = re.compile(rb"[0-9a-f]{40}|ref: refs/")

CLOSED = "A folder of the vault was closed while it was looked through. Send the message again."
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe would wait for a writer
_FOLDER = _FILE | os.O_DIRECTORY
_ENTERED = 0o5  # a folder's bits of who may list it and go through it

Identity = str  # "device:inode", as stat(1) prints it


@dataclass(frozen=True)
class Found:
    hidden: tuple[Path, ...]
    around: dict[Path, Identity]  # the folders that what is hidden lies in: who moves one takes a mask off
    control_files: dict[Path, Identity]
    repositories: dict[Path, Identity]  # folders of git's: pinned, or one could be moved away and made anew


def look_through(vault: Path, *, past: frozenset[str] = frozenset(HELD)) -> Found:
    """`past` are the names that it passes over where they are only held; those of git's are held anew for
    each wall. Raises CannotConfine where there is too much to look at: what is not seen cannot be hidden. So
    it looks into `.git` too, where an agent may have put a folder out of sight."""
    hidden = list[Path]()
    around, control_files, repositories = (dict[Path, Identity]() for _ in range(3))
    seen, start = 0, len(vault.parts)
    for here, folders, files, handle in _walk(vault):
        if others := {n for n in past.intersection((*folders, *files)) if placeholders.is_ours(here / n)}:
            folders[:] = [name for name in folders if name not in others]
            files = [name for name in files if name not in others]
        below = [fold(part) for part in here.parts[start:]]
        seen += len(folders) + len(files)
        if seen > MOST_ENTRIES:
            raise CannotConfine(
                f"{vault} holds more than {MOST_ENTRIES:,} files: too many to find those that an agent must "
                "not see. Choose a smaller folder as the vault."
            )
        out_of_sight = {
            name
            for name in (*folders, *files)
            if _is_secret(name, handle) and not _is_ref(below, name, handle)
        }
        out_of_sight |= {name for name in folders if not _can_be_looked_into(name, handle)}
        if len(below) >= DEEPEST:
            out_of_sight |= {*folders}
        if below and out_of_sight:
            around[here] = _identity_of(handle)
        hidden += (here / name for name in out_of_sight)
        in_sight = [name for name in (*folders, *files) if name not in out_of_sight]
        steering = _steering(here, below, in_sight, handle)
        for path, identity in steering.items():
            is_repository = fold(path.name) == GIT_FOLDER and path.name in folders
            (repositories if is_repository else control_files)[path] = identity
        if _is_of_git(below, in_sight, handle):
            repositories[here] = _identity_of(handle)
        if here in repositories and any(_is_link(name, handle) for name in HELD):
            control_files[here] = repositories.pop(here)  # in the place of a link an agent makes a folder
        folders[:] = [name for name in folders if name not in out_of_sight]
    return Found(tuple(hidden), around, _topmost(control_files), repositories)


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
                    raise CannotConfine(CLOSED) from error
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


def writable_folders(vault: Path, patterns: Sequence[str]) -> dict[Path, Identity]:
    """The folders of a session's `write` patterns, made where they are not there, as a wall leaves them
    writable. A pattern that names single files, or goes through a link, opens none: what it allows is carried
    out by the server."""
    return {
        vault.joinpath(*names): identity
        for pattern in patterns
        if (names := _folder_of(pattern)) is not None and (identity := _made(vault, names))
    }


def narrower(vault: Path, patterns: Sequence[str]) -> Iterator[tuple[Path, Identity]]:
    """The folders right below one whose pattern ends in a single star: that speaks of its files alone."""
    deep = {tuple(names) for each in patterns if each.endswith("/**") and (names := _folder_of(each))}
    for pattern in patterns:
        names = _folder_of(pattern)
        if names is None or pattern.endswith("**") or tuple(names) in deep:
            continue
        try:
            with Folder.at(vault) as top, top.below(*names) as folder:
                for name in folder.names():
                    if (identity := _folder_identity(folder, name)) and (*names, name) not in deep:
                        yield vault.joinpath(*names, name), identity
        except OSError:
            continue


def _folder_of(pattern: str) -> list[str] | None:
    """`Chat/artifacts/*` and `Chat/artifacts/**` speak of the folder Chat/artifacts."""
    *names, last = [part for part in pattern.split("/") if part not in ("", ".")] or [""]
    while last == "*" and names and names[-1] == "**":
        names.pop()
    is_plain = not any(set(part) & set("*?[]{}!\\") or part == ".." for part in names)
    return names if is_plain and last in ("*", "**") else None


def _made(vault: Path, names: list[str]) -> Identity | None:
    if steers([fold(name) for name in names]) or any(is_secret_name(fold(name)) for name in names):
        return None
    try:
        with Folder.at(vault) as top, top.below(*names, make=True) as folder:
            return folder.identity()
    except OSError:
        return None


def _folder_identity(folder: Folder, name: str) -> Identity | None:
    try:
        with folder.below(name) as inner:
            return inner.identity()
    except OSError:
        return None


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


@dataclass(frozen=True)
class Shown:
    """What a wall is to be told of the inside of a vault."""

    writable: tuple[Path, ...]
    readable: tuple[Path, ...]
    masked: tuple[Path, ...]
    checked: tuple[tuple[Path, Identity], ...]


def shown(
    vault: Path, patterns: Sequence[str] | None, hold: Callable[[Sequence[Path]], None] = lambda folders: None
) -> Shown:
    """With `patterns` only their folders are writable; None leaves all of the vault so, but control files.
    `hold` is told the folders of git's in which no `commondir` and no hooks may be made."""
    if patterns is not None and not patterns:  # read-only as a whole: nothing is held in it for this wall
        found = look_through(vault, past=frozenset({*placeholders.NAMES, *HELD}))
        return Shown((), readable=(vault,), masked=found.hidden, checked=tuple(found.around.items()))
    found = look_through(vault)
    hold(tuple(found.repositories))
    found.control_files.update(_held(vault, tuple(found.repositories)))
    opened = {} if patterns is None else writable_folders(vault, patterns)
    closed = found.control_files | ({} if patterns is None else dict(narrower(vault, patterns)))
    pinned = {
        path: identity
        for path, identity in found.repositories.items()
        if patterns is None or _is_open(path, opened, closed)
    }
    return Shown(
        writable=(*opened, *pinned),
        readable=(*closed, *(() if patterns is None else (vault,))),
        masked=found.hidden,
        checked=tuple((found.around | opened | pinned | closed).items()),
    )


def _held(vault: Path, folders: Sequence[Path]) -> Iterator[tuple[Path, Identity]]:
    for folder in folders:
        names = folder.relative_to(vault).parts
        with suppress(OSError), Folder.at(vault) as top, top.below(*names) as inside:
            for name in HELD:
                found = inside.look(name)
                if found and (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
                    yield folder / name, f"{found.st_dev}:{found.st_ino}"


def _is_open(path: Path, opened: dict[Path, Identity], closed: dict[Path, Identity]) -> bool:
    return next((above in opened for above in path.parents if above in opened or above in closed), False)

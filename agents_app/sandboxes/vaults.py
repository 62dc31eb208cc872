"""What a wall is told of the inside of a vault: what is hidden in it, read-only or writable, and what the
first that runs behind it checks."""

import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from permissions_app.rules.control_files import steers
from permissions_app.rules.deny_list import is_secret_name
from permissions_app.rules.paths import fold
from sessions_app.files.folders import Folder

from .base import MASK, READ_ONLY, READ_WRITE, Checked, Identity
from .listing import GIT_FOLDER
from .looking import HELD, HELD_ANYWHERE, Found, look_through
from .neighbours import Neighbour, check


@dataclass(frozen=True)
class Shown:
    writable: tuple[Path, ...]
    readable: tuple[Path, ...]
    masked: tuple[Path, ...]
    checked: tuple[Checked, ...]
    found: Found


def shown(
    vault: Path,
    patterns: Sequence[str] | None,
    *,
    hold: Callable[[Sequence[Path]], None] = lambda folders: None,
    neighbours: Sequence[Neighbour] = (),
    hidden: Sequence[Path] = (),
) -> Shown:
    """With `patterns` only their folders are writable; None leaves all of the vault so, but control files.
    `hold` is told the folders of git's in which no `commondir` and no hooks may be made; `neighbours` are of
    the walls that stand now. `hidden` is hidden anyway."""
    is_read_only = patterns is not None and not patterns  # as a whole: nothing is held in it for this wall
    past = HELD_ANYWHERE if is_read_only else HELD
    found = look_through(vault, past=past, hidden=hidden)
    check(found, neighbours)
    masked = tuple(found.hidden)
    if is_read_only:
        return Shown((), (vault,), masked, tuple(_checked(found, {}, {})), found)
    hold(tuple(found.repositories))
    found.control_files.update(_held(vault, tuple(found.repositories)))
    opened = {} if patterns is None else writable_folders(vault, patterns)
    narrowed = {} if patterns is None else dict(narrower(vault, patterns))
    closed = found.control_files | {path: each for path, each in narrowed.items() if path not in found.hidden}
    pinned = {
        path: identity
        for path, identity in (found.repositories | _between(found) | _above(found, vault, hidden)).items()
        if path not in closed and (patterns is None or _is_open(path, opened, closed))
    }
    return Shown(
        writable=(*opened, *pinned),
        readable=(*closed, *(() if patterns is None or vault in opened else (vault,))),
        masked=masked,
        checked=tuple(_checked(found, opened | pinned, closed)),
        found=found,
    )


def _between(found: Found) -> dict[Path, Identity]:
    """The folders between a `.git` and what is of git's in it: with one of them it could be moved away."""
    return {
        above: found.folders[above]
        for path in found.repositories
        for above in path.parents
        if above in found.folders and any(fold(part.name) == GIT_FOLDER for part in above.parents)
    }


def _above(found: Found, vault: Path, hidden: Sequence[Path]) -> dict[Path, Identity]:
    """The folders on the way to what is hidden anyway: with one of them it could be moved into sight."""
    return {
        above: found.folders[above]
        for path in hidden
        for above in path.parents
        if above in found.folders and above != vault
    }


def _checked(
    found: Found, writable: dict[Path, Identity], read_only: dict[Path, Identity]
) -> Iterator[Checked]:
    looked_into = {path.parent for path in (*found.hidden, *writable, *read_only)}
    around = {path: identity for path, identity in found.around.items() if path in looked_into}
    for path, identity in (around | writable).items():
        yield path, identity, READ_WRITE
    for path, identity in read_only.items():
        yield path, identity, READ_ONLY
    for path, identity in found.hidden.items():
        yield path, identity, MASK


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

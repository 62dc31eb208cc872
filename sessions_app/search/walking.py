"""The notes of a vault, by directory handles and through no link: none is read that lies elsewhere."""

import logging
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from sessions_app.files.closed import is_closed
from sessions_app.files.folders import Folder

log = logging.getLogger(__name__)

DEEPEST = 40
LAST_NS = 2**63 - 1
NOTES = frozenset({".md", ".markdown", ".txt"})
# Copies of sessions, which are indexed by themselves, and files that came with messages: not everybody's.
# (`agent-chats` and `agent-logs` are of chats that are in no database any more: they are notes.)
NOT_NOTES = frozenset({("agent-sessions",), ("chat", "imports"), ("chat", "assets")})


@dataclass(frozen=True)
class Note:
    path: str  # in the vault
    size: int
    modified_ns: int


def notes(vault: Path) -> Iterator[Note]:
    with Folder.at(vault) as root:
        yield from _notes_in(root, ())


def _notes_in(folder: Folder, names: tuple[str, ...]) -> Iterator[Note]:
    for name in _listed(folder, names):
        path = (*names, name)
        if name.startswith(".") or _is_not_for_notes(path) or is_closed(path):
            continue
        found = folder.look(name)
        if found is None:
            continue
        if stat.S_ISDIR(found.st_mode) and len(path) <= DEEPEST:
            yield from _notes_below(folder, path)
        elif stat.S_ISREG(found.st_mode) and PurePath(name).suffix.lower() in NOTES:
            yield Note("/".join(path), found.st_size, _counted(found.st_mtime_ns))


def _counted(nanoseconds: int) -> int:
    """Anybody can give a file any time, such as one after 2262, which no database counts to."""
    return min(max(nanoseconds, -LAST_NS), LAST_NS)


def _is_not_for_notes(path: tuple[str, ...]) -> bool:
    """There are disks on which `chat/Assets` is the same folder."""
    return tuple(map(str.lower, path)) in NOT_NOTES


def _notes_below(folder: Folder, path: tuple[str, ...]) -> Iterator[Note]:
    try:
        with folder.below(path[-1]) as inner:
            yield from _notes_in(inner, path)
    except OSError as error:  # closed to us, or moved away meanwhile: the next pass looks again
        log.info("The folder %s is left out of the index (%s).", "/".join(path), error.strerror)


def _listed(folder: Folder, names: tuple[str, ...]) -> list[str]:
    try:
        return [name for name in folder.names() if _is_text(name)]
    except OSError as error:
        log.info("The folder %s is left out of the index (%s).", "/".join(names), error.strerror)
        return []


def _is_text(name: str) -> bool:
    """A name in bytes of no encoding has no path that could be shown."""
    return name.isprintable() and os.fsencode(name).decode(errors="replace") == name

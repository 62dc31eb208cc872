"""The files of agents in a vault, by directory handles. What was read stays read while its file is the same
to `stat`: to look at all of them costs as much as to list them."""

import os
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from agents_app.definitions.definition import ENDING, Definition, defined, slug_of
from agents_app.definitions.schema import Problem
from sessions_app.files.folders import Folder

FOLDERS = ("Agents", ".agents")  # of two with one slug the first counts
LARGEST = 256_000  # bytes
MOST_FILES = 200  # in one folder
MOST_KEPT = 2_000
SETTLED = 200_000_000  # ns: a file that changed a moment ago may change again in the same tick of its clock
NOT_AGENTS = frozenset({"readme.md", "agents.md", "claude.md", "index.md"})

_Signature = tuple[int, int, int, int]
_kept: dict[tuple[str, str], tuple[_Signature, Definition]] = {}
_keeping = threading.Lock()


def read_all(vault: Path) -> list[Definition]:
    """Each file that could be an agent's; none of them keeps another from being one."""
    found: dict[str, Definition] = {}
    refused: list[Definition] = []
    for folder in FOLDERS:
        for each in _of_folder(vault, folder):
            first = found.get(each.slug) if each.slug else None
            if not each.slug:
                refused.append(each)
            elif first is None:
                found[each.slug] = each
            else:
                said = f"{first.path} is called {each.slug} already. Give this file another name."
                refused.append(Definition("", each.path, problems=(Problem(said),), text=each.text))
    return [*found.values(), *refused]


def _of_folder(vault: Path, folder: str) -> Iterator[Definition]:
    try:
        with Folder.at(vault) as root, root.below(folder) as agents:
            names = [name for name in agents.names() if _is_ours(name)]
            for name in names[:MOST_FILES]:
                yield from _one(vault, agents, folder, name)
            if beyond := names[MOST_FILES:]:
                said = (
                    f"There are more than {MOST_FILES} files in {folder}. {len(beyond):,} of them were not "
                    f"read, from {_shown(beyond[0])} on."
                )
                yield Definition("", folder, problems=(Problem(said),))
    except OSError:
        return  # no such folder, a link, or closed to us


def _is_ours(name: str) -> bool:
    return name.lower().endswith(ENDING) and not name.startswith(".") and name.lower() not in NOT_AGENTS


def _one(vault: Path, agents: Folder, folder: str, name: str) -> Iterator[Definition]:
    path = f"{folder}/{_shown(name)}"
    try:
        slug = slug_of(name[: -len(ENDING)])
    except Problem as problem:
        yield Definition("", path, problems=(problem,))
        return
    key = (str(vault), f"{folder}/{name}")
    try:
        looked = agents.look(name)
        if looked is None:
            return
        if not stat.S_ISREG(looked.st_mode):
            yield Definition(
                "", path, problems=(Problem("This is not a file of its own: links are not followed."),)
            )
            return
        kept = _kept.get(key)
        if kept and kept[0] == _signature(looked):
            yield kept[1]
            return
        yield _read(agents, name, slug, path, key)
    except FileNotFoundError:
        return  # it vanished between two looks
    except OSError as error:
        yield Definition("", path, problems=(Problem(f"It cannot be read ({error.strerror})."),))


def _read(agents: Folder, name: str, slug: str, path: str, key: tuple[str, str]) -> Definition:
    with agents.open(name) as file:
        signature = _signature(os.fstat(file.fileno()))
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        said = f"The file has more than {LARGEST:,} bytes, which is too long for a prompt."
        return Definition(slug, path, problems=(Problem(said),))
    made = defined(slug, path, content)
    if time.time_ns() - max(signature[2:]) > SETTLED:
        with _keeping:
            if len(_kept) >= MOST_KEPT:
                _kept.clear()
            _kept[key] = (signature, made)
    return made


def _signature(found: os.stat_result) -> _Signature:
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _shown(name: str) -> str:
    """Half a character in it would be refused by whoever stores or sends it."""
    return name.encode(errors="surrogateescape").decode(errors="replace")

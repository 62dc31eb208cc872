"""Control groups: the one thing that bounds processes and memory of a whole tree, and of root.

A group is made beside the server's own, or below it, so that what bounds the server bounds it too. Where the
server's user may make none (or the system has none), a wall has the limits of single processes only.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from agents_app.sandboxes.limits import Limits

from .base import Group

KINDS = 2  # processes and memory
TRIES, PAUSE = 50, 0.02
PREFIX = "parachute-"
ROOT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")


def groups_for(mark: str, limits: Limits, root: Path = ROOT, own: Path = OWN) -> tuple[Group, ...]:
    """Those that could be made; whether they can is found out by making them."""
    if not mark:
        return ()
    return tuple(Group(parent / f"{PREFIX}{mark}", files) for parent, files in _parents(limits, root, own))


def can_be_made(mark: str) -> bool:
    """Whether the kinds that a wall needs can be made, and a process be counted in them."""
    groups = groups_for(mark, Limits())
    written = {name for group in groups for name in group.files}
    if len(written) < KINDS:
        return False
    try:
        for group in groups:
            group.folder.mkdir()
            for name, text in group.files.items():
                (group.folder / name).write_text(text)
            if not os.access(group.folder / "cgroup.procs", os.W_OK):
                return False
    except OSError:
        return False
    finally:
        remove(mark)
    return True


def remove(mark: str) -> None:
    """Those of one launch, once nothing runs in them."""
    left = [group.folder for group in groups_for(mark, Limits())]
    for _ in range(TRIES):
        left = [folder for folder in left if not _is_gone(folder)]
        if not left:
            return
        threading.Event().wait(PAUSE)  # the kernel still buries the dead; nothing tells when it has


def _is_gone(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def remove_empty() -> None:
    """What a killed worker left. One in which something runs cannot be removed."""
    for parent, _ in _parents(Limits(), ROOT, OWN):
        for left in parent.glob(f"{PREFIX}*"):
            with suppress(OSError):
                left.rmdir()


def _parents(limits: Limits, root: Path, own: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """Folders in which a group can be made, with what is to be written into it."""
    pids = {"pids.max": str(limits.processes)}
    in_one = {**pids, "memory.max": str(limits.memory)}
    for controllers, path in _memberships(own):
        if controllers == "" and (root / "cgroup.controllers").exists():
            yield from ((parent, in_one) for parent in _of_version_two(root, path))
        elif controllers == "pids":
            yield _below(root / "pids", path), pids
        elif "memory" in controllers.split(","):
            yield _below(root / "memory", path), {"memory.limit_in_bytes": str(limits.memory)}


def _of_version_two(root: Path, path: str) -> list[Path]:
    """A group that holds processes can have none below it, but for the root: then it is made beside."""
    here = _below(root, path)
    for parent in (here, here.parent):
        with suppress(OSError):
            given = (parent / "cgroup.subtree_control").read_text().split()
            if {"pids", "memory"} <= set(given) and parent.is_relative_to(root):
                return [parent]
    return []


def _memberships(own: Path) -> Iterator[tuple[str, str]]:
    with suppress(OSError):
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            yield controllers, path


def _below(root: Path, path: str) -> Path:
    inside = root / path.lstrip("/")
    return inside if inside.is_dir() else root  # in a container, the path is the one that the host sees

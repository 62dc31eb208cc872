"""The system's processes, as Linux shows them. Elsewhere there is nothing to see, and nothing is swept."""

import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from parachute_site import env

PR_SET_CHILD_SUBREAPER = 36
UNKILLABLE = 5.0  # seconds after which a process that does not die of SIGKILL is given up


def become_subreaper() -> None:
    """From now on the orphans of our children come to us, and not to init, where nobody would find them."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def parents() -> dict[int, int]:
    """Every process and its parent."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            stat = (folder / "stat").read_text(errors="replace")
            # The name comes second, in brackets, and may hold anything: count from the last bracket.
            found[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
    return found


def with_descendants(roots: Iterable[int], parent_of: dict[int, int]) -> set[int]:
    found = set(roots)
    while more := {pid for pid, parent in parent_of.items() if parent in found} - found:
        found |= more
    return found


def kill(pid: int, how: int = signal.SIGKILL) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, how)


def end_marked(owner: str) -> int:
    """End what a killed `up` left behind: all that carry the home's mark, with what they started.

    1. Look for them, sparing ourselves and whoever started us (a test's runner may carry the mark too).
    2. Kill them, and wait until they are gone: they hold the port.
    3. Look again, as they may have started others meanwhile.
    """
    ended: set[int] = set()
    until = time.monotonic() + UNKILLABLE
    while (found := _marked(owner)) and time.monotonic() < until:
        ended |= found
        _kill_and_wait(found, until)
    return len(ended)


def _marked(owner: str) -> set[int]:
    parent_of = parents()
    spared = _ancestors(os.getpid(), parent_of) | {os.getpid()}
    marked = {pid for pid in parent_of if pid not in spared and env.of_process(pid).get(env.OWNER) == owner}
    return with_descendants(marked, parent_of)


def _ancestors(pid: int, parent_of: dict[int, int]) -> set[int]:
    found = set()
    while pid := parent_of.get(pid, 0):
        found.add(pid)
    return found


def _kill_and_wait(pids: set[int], until: float) -> None:
    waiting = select.poll()
    handles = []
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            handle = os.pidfd_open(pid)
            handles.append(handle)
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            waiting.register(handle, select.POLLIN)
    left = len(handles)
    while left and (ready := waiting.poll(max(0, (until - time.monotonic()) * 1000))):
        for handle, _ in ready:
            waiting.unregister(handle)
        left -= len(ready)
    for handle in handles:
        os.close(handle)

"""Ends everything that one launch started, also what has left its session or its parent."""

import logging
import os
import select
import signal
import sys
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from agents_app.sandboxes.base import MARK

from . import kernel

logger = logging.getLogger(__name__)

PATIENCE = 5.0  # seconds; a process that was killed and is not gone by then hangs in the kernel
ROUNDS = 50  # against one that starts others faster than they are found


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    session: int
    started: str  # with the pid it names one process for ever: pids come again
    environment: bytes


def end_everything(
    mark: str, group: int | None = None, spared: Collection[tuple[int, str]] = frozenset()
) -> int:
    """Kills all that `marked` finds until nothing is left, waits for its end, and says how many there were.

    `spared` are processes, each with its start, that are left alone.
    It blocks for some milliseconds (at most PATIENCE): call it in a thread. Where there is no /proc it
    kills the process group `group`, which is the pid of the launch.
    """
    if not sys.platform.startswith("linux"):
        return _kill_group(group)
    ended, deadline = set[tuple[int, str]](), time.monotonic() + PATIENCE
    for _ in range(ROUNDS):
        left = [each for each in marked(mark) if (each.pid, each.started) not in spared]
        if not left:
            break
        ended |= {(each.pid, each.started) for each in left}
        _wait([handle for each in left if (handle := _kill(each)) is not None], deadline)
    else:
        logger.error("Processes of an agent do not end: %s", [each.pid for each in left])
    return len(ended)


def marked(*marks: str) -> list[Process]:
    """Every process that carries a mark, shares a session with one that does, or descends from one."""
    if any(len(mark) < 16 for mark in marks):
        raise ValueError("A mark that can be met by chance would end strangers.")
    table = {each.pid: each for each in _processes() if each.pid != os.getpid()}
    # A launcher that is not its program yet has the mark in its orders, and still the worker's session.
    words = [mark.encode() for mark in marks]
    found = {pid for pid, each in table.items() if any(mark in each.environment for mark in words)}
    whole = {f"{MARK}={mark}".encode() for mark in marks}
    sessions = {
        table[pid].session for pid in found if not whole.isdisjoint(table[pid].environment.split(b"\0"))
    }
    sessions.discard(os.getsid(0))  # whatever went wrong, never the worker's
    # These two find what dropped its environment, as `env -i` does.
    found |= {pid for pid, each in table.items() if each.session in sessions}
    while more := {pid for pid, each in table.items() if each.parent in found} - found:
        found |= more
    return [table[pid] for pid in found]


def _processes() -> Iterator[Process]:
    return (process for pid in kernel.pids() if (process := _read(pid)))


def _read(pid: int) -> Process | None:
    """None for what is gone or a zombie; one whose first thread alone has ended is none."""
    try:
        # After the program's name, which may itself hold spaces and brackets.
        state, parent, _, session, *rest = kernel.says(f"{pid}/stat").rpartition(b")")[2].decode().split()
        threads = [str(pid)] if state not in "ZX" else [*{*kernel.threads(pid)} - {str(pid)}]
    except OSError:
        return None
    if not threads:
        return None
    return Process(pid, int(parent), int(session), rest[15], _environment(pid, threads[0]))


def _environment(pid: int, thread: str) -> bytes:
    """Empty where it is not ours to read."""
    try:
        return kernel.says(f"{pid}/task/{thread}/environ")
    except OSError:
        return b""


def _kill(process: Process) -> int | None:
    """Kills it, and gives a handle to wait on. By a handle, because its pid may be another's by now."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return None
    now = _read(process.pid)
    try:
        if now and now.started == process.started:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            return handle
    except OSError:
        pass  # gone in this moment, or another user's, as a program with the setuid bit is
    os.close(handle)
    return None


def _wait(handles: list[int], deadline: float) -> None:
    for handle in handles:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        os.close(handle)


def _kill_group(group: int | None) -> int:
    if group is None or group <= 1 or group == os.getpgid(0):
        return 0
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return 0
    return 1

"""Lets agents stand still for a moment. They go on for certain: a shell of its own sees to that, also where
this worker is killed meanwhile."""

import os
import signal
import subprocess
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from agents_app.sandboxes.base import VaultBusy

from .ended import marked

STILL_WITHIN = 3.0  # seconds; each is stopped at once, but new ones may be started faster than they are found
LOOKS_AGAIN_AFTER = 0.001
STILL, HANGS = frozenset("tTZX"), "D"
LET_GO = (
    'while read -r pid; do all="$all $pid"; done; for pid in $all; do kill -CONT "$pid"; done 2>/dev/null'
)
NOT_STILL = (
    "Another agent in this vault starts programs faster than they can be counted. Try again in a moment."
)


@contextmanager
def standing_still(marks: Collection[str]) -> Iterator[None]:
    """All that these marks' launches started. Raises VaultBusy where they cannot be brought to it."""
    if not marks:
        yield
        return
    stopped = set[int]()
    with _letting_go() as told:
        try:
            _stop(marks, stopped, told)
            yield
        finally:
            for pid in stopped:
                _signal(pid, signal.SIGCONT)


@contextmanager
def _letting_go() -> Iterator[IO[bytes]]:
    """What is told here, a line for a process, goes on when this worker ends, if not before."""
    shell = subprocess.Popen(
        ("/bin/sh", "-c", LET_GO), stdin=subprocess.PIPE, bufsize=0, env={}, cwd="/", start_new_session=True
    )
    with shell:
        assert shell.stdin
        yield shell.stdin


def _stop(marks: Collection[str], stopped: set[int], told: IO[bytes]) -> None:
    until = time.monotonic() + STILL_WITHIN
    while True:
        states = {each: _states(each.pid) for each in marked(*marks)}
        running = {each.pid: states[each] for each in states if not states[each] <= STILL}
        if not running:
            return
        if time.monotonic() > until:
            raise VaultBusy(NOT_STILL)
        for pid in running.keys() - stopped:
            told.write(f"{pid}\n".encode())
        stopped |= running.keys()
        for pid in running:
            _signal(pid, signal.SIGSTOP)
        for each in states.keys() - running.keys():
            if HANGS in running.get(each.parent, ""):  # in `vfork`, until this one has become its program
                _signal(each.pid, signal.SIGCONT)
        time.sleep(LOOKS_AGAIN_AFTER)  # noqa: TID251 - nothing tells when a foreign process stands


def _signal(pid: int, what: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, what)


def _states(pid: int) -> set[str]:
    """Of all its threads: one may be in the middle of a call to the kernel. Of what has just gone it is not
    known."""
    try:
        stats = [(thread / "stat").read_bytes() for thread in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return {"?"}
    return {stat.rpartition(b")")[2].split()[0].decode() for stat in stats}  # its name may be any bytes

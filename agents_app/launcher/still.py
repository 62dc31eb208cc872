"""Lets agents stand still for a moment, and finds out whether they did. They go on for certain: a shell of
its own sees to that where this worker is killed meanwhile.

Who is stopped can be made to go on by the kernel itself, at a time or when a folder is looked at, if it has
asked for that before. So in the end each of its threads is asked how often it has run.
"""

import fcntl
import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from agents_app.sandboxes.base import VaultBusy, VaultChanged

from .ended import Process, marked

log = logging.getLogger(__name__)

STILL_WITHIN = 3.0  # seconds; each is stopped at once, but new ones may be started faster than they are found
LOOKS_AGAIN_AFTER = 0.001
STILL, HANGS = frozenset("tTZX"), "D"
LET_GO = """
while read -r pid; do all="$all $pid"; done
for pid in $all; do kill -CONT "$pid"; done 2>/dev/null
"""
NS_GET_USERNS = 0xB701  # of <linux/nsfs.h>
NOT_STILL = "Another agent in this vault does not stand still while this one starts. End it, or try again."

Run = dict[tuple[int, str], bytes]  # how often each thread has run


@contextmanager
def standing_still(marks: Collection[str]) -> Iterator[Callable[[], None]]:
    """All that these marks' launches started. Raises VaultBusy where they cannot be brought to a stand. What
    it gives raises VaultChanged where one has run meanwhile; who was killed has, for a moment."""
    if not marks:
        yield lambda: None
        return
    with _letting_go() as told:
        agents = _Agents(marks, told)
        try:
            agents.stop()
            yield agents.check
        finally:
            agents.let_go()


@contextmanager
def _letting_go() -> Iterator[IO[bytes]]:
    """What is told here, a line for a process, goes on when this worker ends, if not before."""
    shell = subprocess.Popen(
        ("/bin/sh", "-c", LET_GO), stdin=subprocess.PIPE, bufsize=0, env={}, cwd="/", start_new_session=True
    )
    with shell:
        assert shell.stdin
        yield shell.stdin


class _Agents:
    def __init__(self, marks: Collection[str], told: IO[bytes]) -> None:
        self._marks, self._told = marks, told
        self._stopped = set[int]()
        self._run: Run = {}

    def stop(self) -> None:
        """Each by itself, and then all that are behind a wall in one call, which nobody escapes by being
        another process each time that somebody looks."""
        until = time.monotonic() + STILL_WITHIN
        before = {each.pid for each in marked(*self._marks) if _states(each.pid) <= STILL}
        self._stop_each(until)
        for pid in _behind_walls(marked(*self._marks)):
            _stop_all_with(pid)
        self._note({each.pid for each in marked(*self._marks)} - before)
        self._stop_each(until)
        while self._run != (now := self._counted()):  # who stands in a moment, runs for that moment
            self._run = now
            _wait(until)

    def check(self) -> None:
        now = self._counted()
        if any(self._run.get(thread) != times for thread, times in now.items()):
            raise VaultChanged(NOT_STILL)

    def let_go(self) -> None:
        for pid in self._stopped:
            _signal(pid, signal.SIGCONT)

    def _stop_each(self, until: float) -> None:
        while True:
            states = {each: _states(each.pid) for each in marked(*self._marks)}
            running = {each.pid: states[each] for each in states if not states[each] <= STILL}
            if not running:
                return
            self._note({*running})
            for pid in running:
                _signal(pid, signal.SIGSTOP)
            for each in states.keys() - running.keys():
                if HANGS in running.get(each.parent, ""):  # in `vfork`, until this one has become its program
                    _signal(each.pid, signal.SIGCONT)
            _wait(until)

    def _note(self, pids: set[int]) -> None:
        for pid in pids - self._stopped:
            self._told.write(f"{pid}\n".encode())
        self._stopped |= pids

    def _counted(self) -> Run:
        """Of what cannot be read it is as if it had run: one whose threads come and go may escape a look."""
        unknown = [("", b"ctxt_switches %d" % time.monotonic_ns())]
        return {
            (each.pid, thread): b" ".join(line for line in status.splitlines() if b"ctxt_switches" in line)
            for each in marked(*self._marks)
            for thread, status in _threads(each.pid, "status") or unknown
        }


def _wait(until: float) -> None:
    if time.monotonic() > until:
        raise VaultBusy(NOT_STILL)
    time.sleep(LOOKS_AGAIN_AFTER)  # noqa: TID251 - nothing tells when a foreign process stands


def _behind_walls(processes: Collection[Process]) -> Iterator[int]:
    """One of them for each namespace in which processes are counted, beside our own."""
    seen = {Path("/proc/self/ns/pid").stat().st_ino}
    for each in processes:
        with suppress(OSError):
            if (number := Path(f"/proc/{each.pid}/ns/pid").stat().st_ino) not in seen:
                seen.add(number)
                yield each.pid


def _stop_all_with(pid: int) -> None:
    """All that are counted with it, as somebody who is there too, and by the rights of whoever made that."""
    try:
        said = _said_behind_the_wall(pid, "kill -STOP -1")
    except OSError as error:
        said = str(error)
    if said:
        log.warning("What is behind a wall could not be stopped at once: %s", said)


def _said_behind_the_wall(pid: int, line: str) -> str:
    with (
        open(f"/proc/{pid}/ns/pid") as processes,  # noqa: PTH123 - a handle
        os.fdopen(fcntl.ioctl(processes, NS_GET_USERNS)) as users,
    ):
        handles = processes.fileno(), users.fileno()
        there = (f"--pid=/proc/self/fd/{handles[0]}", f"--user=/proc/self/fd/{handles[1]}")
        done = subprocess.run(
            ("nsenter", *there, "--preserve-credentials", "--", "/bin/sh", "-c", line),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            pass_fds=handles,
        )
    return done.stderr.decode(errors="replace").strip()


def _signal(pid: int, what: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, what)


def _states(pid: int) -> set[str]:
    """Of all its threads: one may be in the middle of a call to the kernel. Of what has just gone it is not
    known."""
    return {stat.rpartition(b")")[2].split()[0].decode() for _, stat in _threads(pid, "stat")} or {"?"}


def _threads(pid: int, file: str) -> list[tuple[str, bytes]]:
    """What the kernel says of each. Its name may be any bytes. Nothing where one of them has just gone."""
    try:
        return [(each.name, (each / file).read_bytes()) for each in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []

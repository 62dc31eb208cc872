"""Lets agents stand still for a moment, and finds out whether they did. They go on for certain: a shell of
its own sees to that where this worker is killed meanwhile.

Who is stopped can be made to go on by the kernel itself, at a time or when a folder is looked at, if it has
asked for that before. So in the end all must be there, stopped, and none may have run: the kernel says how
often each thread has, and how long each process.
"""

import fcntl
import logging
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from agents_app.sandboxes.base import VaultBusy, VaultChanged

from . import kernel
from .ended import Process, marked

log = logging.getLogger(__name__)

STILL_WITHIN = 3.0  # seconds; each is stopped at once, but new ones may be started faster than they are found
LOOKS_AGAIN_AFTER = 0.001
ENDED, HANGS = frozenset("ZX"), "D"
STOPPED = ENDED | {"T"}
STILL = STOPPED | {"t"}  # who is traced goes on when the one that traces it does
LET_GO = """
while read -r pid; do all="$all $pid"; done
for pid in $all; do kill -CONT "$pid"; done 2>/dev/null
"""
# Two handles for each wall: its processes, and the rights of whoever made it. Says what went wrong, and waits
# until it is told that those who were stopped are known. Where that never comes the worker was killed.
BEHIND_WALLS = """
behind_each() {
    line=$1
    shift
    while [ $# -gt 1 ]; do
        {
            why=$("$NSENTER" --pid="/proc/self/fd/$1" --user="/proc/self/fd/$2" --preserve-credentials \\
                -- /bin/sh -c "$line" 2>&1) || echo "It ended with $?. $why"
        } &
        shift 2
    done
    wait
}
behind_each "$LINE" "$@"
exec >/dev/null
read -r known || behind_each "kill -CONT -1" "$@"
"""
STOP_ALL = "kill -STOP -1"
NS_GET_USERNS, NS_GET_PARENT = 0xB701, 0xB702  # of <linux/nsfs.h>
CPU_TIME = 2  # the clock of a process, with all threads that it ever had: the kernel's CPUCLOCK_SCHED
PART = 1 << 12
HELD_UP = "What should stop all behind a wall was held up there."
NOT_STILL = "Another agent in this vault does not stand still while this one starts. End it, or try again."

Run = dict[tuple[int, str, str], bytes]  # how often each thread has run, and how long each process


@dataclass(frozen=True)
class Seen:
    """A process in one look."""

    pid: int
    parent: int
    started: str
    states: frozenset[str]  # of its threads: one may be in the middle of a call to the kernel
    run: Run

    @property
    def stands(self) -> bool:
        """Not who has ended since it was found: the next look finds it no more, as if it had run."""
        return self.states <= STILL and not self.states <= ENDED


@contextmanager
def standing_still(marks: Collection[str]) -> Iterator[Callable[[], None]]:
    """All that these marks' launches started. Raises VaultBusy where they cannot be brought to a stand. What
    it gives raises VaultChanged where one has run meanwhile, or has ended."""
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
        """Each by itself, and all that are behind a wall in one call, which nobody escapes by being another
        process each time that somebody looks."""
        until = time.monotonic() + STILL_WITHIN
        found = self._look()
        stood_before = {each.pid for each in found if each.states <= STOPPED}
        self._stop_each(found)
        problem = "?"
        while problem:
            _wait(until, problem)
            with _stopped_behind_walls(found, until) as problem:
                found = self._look()
                self._note({each.pid for each in found} - stood_before)
        while (run := _run_of_standing(found)) is None:
            self._stop_each(found)
            _wait(until)
            found = self._look()
            self._note({each.pid for each in found} - stood_before)
        self._run = run

    def check(self) -> None:
        """Who has ended may have run before that."""
        if _run_of_standing(self._look()) != self._run:
            raise VaultChanged(NOT_STILL)

    def let_go(self) -> None:
        for pid in self._stopped:
            _signal(pid, signal.SIGCONT)

    def _look(self) -> list[Seen]:
        return _again(marked(*self._marks))

    def _stop_each(self, found: Collection[Seen]) -> None:
        running = {each.pid: each for each in found if not each.stands}
        self._note({*running})
        for pid in running:
            _signal(pid, signal.SIGSTOP)
        for each in found:
            parent = running.get(each.parent)
            if each.stands and parent and HANGS in parent.states:
                _signal(each.pid, signal.SIGCONT)  # in `vfork`, until this one has become its program

    def _note(self, pids: set[int]) -> None:
        for pid in pids - self._stopped:
            self._told.write(f"{pid}\n".encode())
        self._stopped |= pids


def _wait(until: float, why: str = "") -> None:
    if time.monotonic() > until:
        log.warning("Another agent does not stand still. %s", why)
        raise VaultBusy(NOT_STILL)


def _again(processes: Iterable[Process | Seen]) -> list[Seen]:
    return [_seen(each.pid, each.parent, each.started) for each in processes]


def _seen(pid: int, parent: int, started: str) -> Seen:
    """Of what cannot be read it is as if it ran: one whose threads come and go may escape a look."""
    try:
        said = {thread: kernel.says(f"{pid}/task/{thread}/status") for thread in kernel.threads(pid)}
        used = b"%d" % time.clock_gettime_ns(~pid << 3 | CPU_TIME)
    except OSError:
        return Seen(pid, parent, started, frozenset("?"), {})
    states = frozenset(chr(status.partition(b"\nState:\t")[2][0]) for status in said.values())
    times = {(pid, started, thread): status.rpartition(b"\nvoluntary")[2] for thread, status in said.items()}
    # Who is another program by now, in the place of its first thread, is counted from the beginning.
    return Seen(pid, parent, started, states, {**times, (pid, started, ""): used})


def _run_of_standing(found: Collection[Seen]) -> Run | None:
    """None where one runs: who has just been woken, or is about to stand, need not have been counted yet."""
    run = _run(found)
    time.sleep(LOOKS_AGAIN_AFTER)  # noqa: TID251 - nothing tells when a foreign process stands
    return run if all(each.stands for each in found) and run == _run(_again(found)) else None


def _run(found: Collection[Seen]) -> Run:
    return {thread: times for each in found for thread, times in each.run.items()}


@contextmanager
def _stopped_behind_walls(found: Collection[Seen], until: float) -> Iterator[str]:
    """Behind all of them at once; what went wrong, if something did. All go on where the worker is killed
    in this. Who stops them there is out of the agents' reach, with the rights of whoever made the wall. But
    they may hold it up."""
    with ExitStack() as ends:
        walls = _walls([each.pid for each in found], ends)
        if not walls:
            yield ""
            return
        shell = subprocess.Popen(
            ("/bin/sh", "-c", BEHIND_WALLS, "sh", *map(str, walls)),
            env={"NSENTER": shutil.which("nsenter") or "nsenter", "LINE": STOP_ALL},
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            pass_fds=walls,
            start_new_session=True,
        )
        with shell:
            assert shell.stdin and shell.stdout
            said = _heard(shell.stdout, until)
            if said is None:
                os.killpg(shell.pid, signal.SIGKILL)
            yield HELD_UP if said is None else said
            with suppress(BrokenPipeError):
                shell.stdin.write(b"known\n")


def _heard(pipe: IO[bytes], until: float) -> str | None:
    """To its end. None where that does not come."""
    poll, heard = select.poll(), b""
    poll.register(pipe, select.POLLIN)
    while poll.poll(max(0.0, until - time.monotonic()) * 1000):
        if not (part := pipe.read(PART)):
            return heard.decode(errors="replace").strip()
        heard += part
    return None


def _walls(pids: Collection[int], ends: ExitStack) -> list[int]:
    """Two handles for each. A namespace that lies in a wall's is none: an agent made it, and has all rights
    there."""
    walls, known = list[int](), {ours := Path("/proc/self/ns/pid").stat().st_ino}
    for pid in pids:
        with suppress(OSError), ExitStack() as opened:
            processes = _opened(os.open(f"/proc/{pid}/ns/pid", os.O_RDONLY | os.O_CLOEXEC), opened)
            if (number := os.fstat(processes).st_ino) in known:
                continue
            known.add(number)
            if os.fstat(_opened(fcntl.ioctl(processes, NS_GET_PARENT), opened)).st_ino == ours:
                walls += (processes, _opened(fcntl.ioctl(processes, NS_GET_USERNS), opened))
                ends.push(opened.pop_all())
    return walls


def _opened(handle: int, ends: ExitStack) -> int:
    ends.callback(os.close, handle)
    return handle


def _signal(pid: int, what: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, what)

"""Agents stand still for a moment, whatever they do, and go on for certain."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from agents_app.launcher import MARK, end_everything, kernel, marked, new_mark, standing_still, still
from agents_app.launcher.ended import Process
from agents_app.sandboxes.base import VaultBusy, VaultChanged

SOON = 30.0  # seconds, on a busy machine
A_WHILE = 0.05

Start = Callable[..., str]

THREADS = """
import threading
def tick():
    while True:
        with open("ticks", "a") as file: file.write("x")
for _ in range(4): threading.Thread(target=tick).start()
"""
NO_TEXT = """
open("/proc/self/comm", "wb").write(bytes([0xff, 0x29, 0xfe]))
while True:
    with open("ticks", "a") as file: file.write("x")
"""
EXIT = {"x86_64": 60, "aarch64": 93}  # of this thread alone
WITHOUT_ITS_FIRST = f"""{THREADS}
import ctypes, os
ctypes.CDLL(None).syscall({EXIT}[os.uname().machine], 0)
"""
AGENTS = {
    "a loop": ("/bin/sh", "-c", "while :; do echo >> ticks; done"),
    "programs": ("/bin/sh", "-c", "while :; do /bin/true; echo >> ticks; done"),
    "in another session": ("/bin/sh", "-c", "setsid sh -c 'while :; do echo >> ticks; done' & wait"),
    "without its environment": ("/bin/sh", "-c", "env -i sh -c 'while :; do echo >> ticks; done' & wait"),
    "no text": (sys.executable, "-c", NO_TEXT),
    "its first thread has ended": (sys.executable, "-c", WITHOUT_ITS_FIRST),
    "threads": (sys.executable, "-c", THREADS),
}


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as ends:

        def start(name: str = "a loop") -> str:
            mark = new_mark()
            process = subprocess.Popen(AGENTS[name], env={MARK: mark}, cwd=tmp_path, start_new_session=True)
            ends.enter_context(process)
            ends.callback(end_everything, mark)
            return mark

        yield start


@pytest.fixture
def ticks(tmp_path: Path) -> Callable[[], int]:
    def size() -> int:
        path = tmp_path / "ticks"
        return path.stat().st_size if path.exists() else 0

    return size


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def states(pid: int) -> set[str]:
    """Of its threads."""
    said = [(each / "status").read_text(errors="replace") for each in Path(f"/proc/{pid}/task").iterdir()]
    return {status.partition("\nState:\t")[2][0] for status in said}


def it_runs_meanwhile(mark: str, ticks: Callable[[], int]) -> None:
    (process,) = marked(mark)
    os.kill(process.pid, signal.SIGCONT)
    goes_on(ticks)
    os.kill(process.pid, signal.SIGSTOP)
    until(lambda: states(process.pid) == {"T"})


def gone(pid: int) -> list[str]:
    raise ProcessLookupError


def goes_on(ticks: Callable[[], int]) -> None:
    before = ticks()
    until(lambda: ticks() > before)


@pytest.mark.parametrize("name", AGENTS)
def test_they_stand_still_and_go_on(start: Start, ticks: Callable[[], int], name: str) -> None:
    mark = start(name)
    for _ in range(5):
        goes_on(ticks)
        with standing_still([mark]):
            before = ticks()
            time.sleep(A_WHILE)
            assert ticks() == before
    goes_on(ticks)


def test_only_these_do(start: Start, ticks: Callable[[], int]) -> None:
    start()
    goes_on(ticks)
    with standing_still([new_mark()]):
        goes_on(ticks)


def test_where_they_cannot_be_brought_to_it_they_go_on(
    start: Start, ticks: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = start()
    goes_on(ticks)
    monkeypatch.setattr(still, "STILL_WITHIN", A_WHILE)
    monkeypatch.setattr(still, "STILL", frozenset("Z"))
    with pytest.raises(VaultBusy, match="does not stand still"), standing_still([mark]):
        raise AssertionError("They do not stand.")
    goes_on(ticks)


def test_who_ran_meanwhile_is_found(start: Start, ticks: Callable[[], int]) -> None:
    """The kernel wakes whoever has asked for it, at a time or when a folder is looked at."""
    mark = start()
    goes_on(ticks)
    with standing_still([mark]) as check:
        check()
        it_runs_meanwhile(mark, ticks)
        with pytest.raises(VaultChanged):
            check()
    with standing_still([mark]) as check:
        start_another = start()
        goes_on(ticks)
        check()
        end_everything(start_another)
    goes_on(ticks)


def test_who_has_ended_meanwhile_may_have_run_before(start: Start, ticks: Callable[[], int]) -> None:
    """Each time as another process, which its parent starts when all go on."""
    mark = start("in another session")
    goes_on(ticks)
    with standing_still([mark]) as check:
        child = max(marked(mark), key=lambda process: process.pid)
        os.kill(child.pid, signal.SIGKILL)
        until(lambda: child.pid not in {each.pid for each in marked(mark)})
        for _ in range(2):
            with pytest.raises(VaultChanged):
                check()


def test_who_ends_in_the_moment_of_a_look_was_not_there(
    start: Start, ticks: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that was about to end cannot be stopped any more."""
    mark = start("in another session")
    goes_on(ticks)
    ended = list[Process]()

    def ends_meanwhile(mark: str) -> list[Process]:
        found = sorted(marked(mark), key=lambda process: process.pid)
        parent, child = found[0], found[-1]
        if not ended and states(parent.pid) == {"T"}:
            ended.append(child)
            os.kill(child.pid, signal.SIGKILL)
            until(lambda: states(child.pid) == {"Z"})
        return found

    monkeypatch.setattr(still, "marked", ends_meanwhile)
    with standing_still([mark]) as check:
        assert ended
        check()


def test_who_runs_in_the_end_need_not_have_been_counted(
    start: Start, ticks: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that has a processor for itself: it is counted when it is taken from it."""
    mark = start()
    goes_on(ticks)
    with monkeypatch.context() as nobody_is_counted:
        nobody_is_counted.setattr(still, "_run", lambda found: {})
        with standing_still([mark]) as check:
            check()
            (process,) = marked(mark)
            os.kill(process.pid, signal.SIGCONT)
            goes_on(ticks)
            with pytest.raises(VaultChanged):
                check()


def test_who_hides_how_often_it_has_run_is_found_by_the_time_that_it_took(
    start: Start, ticks: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that becomes another program is the process from then on, and counted from the beginning."""
    mark = start()
    goes_on(ticks)
    says = kernel.says

    def without_counts(path: str) -> bytes:
        said = says(path)
        return said.partition(b"\nvoluntary")[0] + b"\nvoluntary" if path.endswith("status") else said

    monkeypatch.setattr(kernel, "says", without_counts)
    with standing_still([mark]) as check:
        check()
        it_runs_meanwhile(mark, ticks)
        with pytest.raises(VaultChanged):
            check()


def test_who_is_there_only_in_the_end_is_found(
    start: Start, ticks: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    mark, unseen = start(), start()
    goes_on(ticks)
    with standing_still([mark]) as check:
        monkeypatch.setattr(still, "marked", lambda mark: marked(mark, unseen))
        with pytest.raises(VaultChanged):
            check()


def test_whose_threads_cannot_be_read_counts_as_one_who_ran(
    start: Start, ticks: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = start()
    goes_on(ticks)
    with standing_still([mark]) as check:
        monkeypatch.setattr(kernel, "threads", gone)
        with pytest.raises(VaultChanged):
            check()


def test_who_stood_still_before_does_not_go_on(start: Start, ticks: Callable[[], int]) -> None:
    mark = start()
    goes_on(ticks)
    (process,) = marked(mark)
    os.kill(process.pid, signal.SIGSTOP)
    until(lambda: states(process.pid) == {"T"})
    with standing_still([mark]):
        pass
    assert states(process.pid) == {"T"}


def test_they_go_on_when_the_worker_is_killed(start: Start, ticks: Callable[[], int]) -> None:
    mark = start()
    goes_on(ticks)
    holds = (
        "import sys, time; from agents_app.launcher import standing_still\n"
        "with standing_still(sys.argv[1:]): print('still', flush=True); time.sleep(60)"
    )
    worker = subprocess.Popen(
        (sys.executable, "-c", holds, mark), stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    with worker:
        assert worker.stdout and worker.stdout.readline() == b"still\n"
        before = ticks()
        time.sleep(A_WHILE)
        assert ticks() == before
        worker.kill()
    goes_on(ticks)


def test_with_nobody_there_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    with standing_still([]):
        pass

"""An agent may trace the first process that it sees, and have it do what keeps it alive: no signal when its
parent ends, a session of its own, no mark. Nothing behind the wall runs on all the same after the turn."""

import os
import time
from pathlib import Path

import pytest

from tests.contracts.runs import Runs
from tests.contracts.test_failures import processes_in
from tests.contracts.test_two_agents import wait_for
from tests.contracts.walled import SYSTEMS_PYTHON, on_bubblewrap, run

# As a child without a mark, in a session of its own. What it does is bounded, should the wall not hold.
FREES_THE_FIRST = """
import ctypes, os, sys, time

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
STEP, GETREGS, SETREGS, DETACH, SEIZE, INTERRUPT, ANY_CHILD = 9, 12, 13, 17, 0x4206, 0x4207, 0x40000000
CLOSE, PRCTL, PDEATHSIG, SETSID = 3, 157, 1, 112
NAMES = "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss"

class Registers(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in f"{NAMES} fs_base gs_base ds es fs gs".split()]

def trace(request, registers=None):
    if libc.ptrace(request, 1, None, registers and ctypes.addressof(registers)) < 0:
        raise OSError(ctypes.get_errno(), f"ptrace {request}")

def has_it_call(saved, number, first=0, second=0):
    now = Registers.from_buffer_copy(saved)
    now.rip, now.rax, now.orig_rax = saved.rip - 2, number, 2**64 - 1  # at its call to the kernel once more
    now.rdi, now.rsi = first, second
    trace(SETREGS, now)
    trace(STEP)
    os.waitpid(1, ANY_CHILD)

def free():
    trace(SEIZE)
    trace(INTERRUPT)
    os.waitpid(1, ANY_CHILD)
    saved = Registers()
    trace(GETREGS, saved)
    has_it_call(saved, PRCTL, PDEATHSIG)
    has_it_call(saved, SETSID)
    for stream in range(3):
        has_it_call(saved, CLOSE, stream)
    start, end = map(int, open("/proc/1/stat").read().rpartition(")")[2].split()[47:49])
    with open("/proc/1/mem", "r+b", buffering=0) as memory:
        memory.seek(start)
        memory.write(bytes(end - start))
    trace(SETREGS, saved)
    trace(DETACH)
    return "freed" if not open("/proc/1/environ", "rb").read().strip(bytes(1)) else "not freed"

if len(sys.argv) == 1:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            nothing = os.open("/dev/null", os.O_RDWR)
            for number in range(3):
                os.dup2(nothing, number)
            os.execve(sys.executable, [sys.executable, "-IS", sys.argv[0], "lives on"], {})
        os._exit(0)
    while not os.path.exists("Notes/first"):
        time.sleep(0.01)
else:
    try:
        said = free()
    except OSError as error:
        said = str(error)
    with open("Notes/first.new", "w") as file:
        file.write(said)
    os.rename("Notes/first.new", "Notes/first")
    time.sleep(20)
"""

SOON = 5.0  # seconds; it would live four times as long

pytestmark = [
    on_bubblewrap,
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="NOT TESTED: the registers are of x86_64."),
    pytest.mark.skipif(not Path(SYSTEMS_PYTHON).exists(), reason="NOT TESTED: no Python behind all walls."),
]


def test_who_frees_the_first_process_runs_on_no_longer(walled: Runs) -> None:
    (walled.vault / "frees.py").write_text(FREES_THE_FIRST)
    run(walled, f"exec {SYSTEMS_PYTHON} -IS frees.py")
    wait_for(notes := walled.vault / "Notes/first")
    if "not permitted" in notes.read_text():  # where the system lets nobody trace but their parents
        pytest.skip("NOT TESTED: nobody may trace anybody here.")
    assert notes.read_text() == "freed"
    until = time.monotonic() + SOON
    while left := processes_in(walled.vault):
        assert time.monotonic() < until, left
        time.sleep(0.01)  # the kernel ends them all by itself, and tells nobody when it has

"""What the kernel does for whoever asks, wherever they are."""

import os
import socket
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agents_app.launcher.outward import outward
from agents_app.sandboxes.refused_calls import AF_VSOCK, MACHINES
from tests.contracts.runs import Runs
from tests.contracts.test_two_agents import wait_for
from tests.contracts.walled import SMALL, SYSTEMS_PYTHON, launch, on_bubblewrap, run

MACHINE = MACHINES.get(os.uname().machine)
REFUSED = MACHINE.refused if MACHINE else ()
CALLS = f"""
import ctypes, errno, mmap, os, socket
libc = ctypes.CDLL(None, use_errno=True)

def said(result):
    return "yes" if result >= 0 else errno.errorcode[ctypes.get_errno()]

print(*(said(libc.syscall(number, 0, 0, 0, 0)) for number in {REFUSED}))
print(*(said(libc.socket(family, socket.SOCK_STREAM, 0)) for family in ({AF_VSOCK}, socket.AF_INET)))
if os.uname().machine == "x86_64":
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(bytes.fromhex("b814000000cd80c3"))  # the number of a 32-bit program's `getpid`, its call, back
    print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))())
"""


@on_bubblewrap
@pytest.mark.skipif(REFUSED == (), reason="NOT TESTED: the numbers of calls on this machine are not known.")
@pytest.mark.skipif(not Path(SYSTEMS_PYTHON).exists(), reason="NOT TESTED: no Python behind all walls.")
def test_calls_for_which_there_is_no_wall_are_refused(walled: Runs) -> None:
    (walled.vault / "calls.py").write_text(CALLS)
    done = run(walled, f"echo /proc/self/fd/*; exec {SYSTEMS_PYTHON} -IS calls.py")
    handles, refused, sockets, *of_32_bits = done.stdout.splitlines()
    assert set(refused.split()) == {"ENOSYS"}
    assert sockets == "EAFNOSUPPORT yes"
    assert handles == " ".join(f"/proc/self/fd/{each}" for each in range(4))  # the last lists them
    assert of_32_bits in ([], ["-38"])


@on_bubblewrap
def test_what_hides_the_kernels_files_is_no_memory_to_write_to(walled: Runs) -> None:
    script = (
        "for each in /proc/*; do [ -d $each ] && (echo x > $each/x) 2>&-; cat $each/x; done 2>&-; echo ran"
    )
    assert run(walled, script).stdout == "ran\n"


FEW = replace(SMALL, files=200)
LEAVES_HANDLES = """
import array, os, socket, time
kept, handles = [], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 50))]
try:
    for _ in range(90):
        kept.append(socket.socketpair())
        for _ in range(4):
            kept[-1][0].sendmsg([b"x"], handles)
except OSError as error:
    print(error.strerror, flush=True)
open("Notes/left", "w").close()
for _ in range(2000):
    if not os.path.exists("Notes/enough"):
        time.sleep(0.01)
"""


@pytest.mark.parametrize("walled", [("bubblewrap", "as we are")], ids=" ".join, indirect=True)
def test_handles_that_one_leaves_in_flight_do_not_keep_another_from_the_web(walled: Runs) -> None:
    (walled.vault / "leaves.py").write_text(LEAVES_HANDLES)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path := walled.vault.parent / "door"))
        door.listen()
        threading.Thread(target=let_two_through, args=(door, walled.vault / "Notes/both")).start()
        known: Any = SimpleNamespace(token="a-token", handover=SimpleNamespace(path=path))

        def given(script: str) -> Any:
            return outward(launch(walled, script, limits=FEW), known, "nowhere")

        with walled.started(given(f"exec {SYSTEMS_PYTHON} -IS leaves.py")) as first:
            wait_for(walled.vault / "Notes/left")
            second = walled.run(given("until [ -e Notes/both ]; do sleep 0.01; done; ulimit -n"))
            (walled.vault / "Notes/enough").touch()
            assert first.communicate(timeout=20)[0] == "Too many references: cannot splice\n"
    assert (second.stdout, second.stderr) == ("200\n", "")


def let_two_through(door: socket.socket, sign: Path) -> None:
    for _ in range(2):
        there, _ = door.accept()
        with there:
            _, handles, _, _ = socket.recv_fds(there, 100, 1)
            os.close(*handles)
            there.sendall(b"ok\n")
    sign.touch()

"""What the kernel does for whoever asks, wherever they are."""

import os
from pathlib import Path

import pytest

from agents_app.sandboxes.refused_calls import AF_VSOCK, MACHINES
from tests.contracts.runs import Runs
from tests.contracts.walled import SYSTEMS_PYTHON, run

BUBBLEWRAP = [("bubblewrap", "as we are"), ("bubblewrap", "plain")]
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


pytestmark = pytest.mark.parametrize("walled", BUBBLEWRAP, ids=" ".join, indirect=True)


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


def test_what_hides_the_kernels_files_is_no_memory_to_write_to(walled: Runs) -> None:
    script = (
        "for each in /proc/*; do [ -d $each ] && (echo x > $each/x) 2>&-; cat $each/x; done 2>&-; echo ran"
    )
    assert run(walled, script).stdout == "ran\n"

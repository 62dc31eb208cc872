"""The calls to the kernel that nobody makes behind bubblewrap, as the program that `--seccomp` takes. Each
goes where no namespace reaches: to the keyrings of whoever started the server, to sockets of the machine that
hosts this one, to work that the kernel does while its process stands still, to reads that never end.
"""

import os
import struct
from dataclasses import dataclass

NO_SUCH_CALL, NO_SUCH_SOCKET = 38, 97  # ENOSYS, for which programs have another way; EAFNOSUPPORT
AF_VSOCK = 40
LOAD, IS, IS_AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16  # in `struct seccomp_data`
OTHER_NUMBERS = 0x40000000  # x32 calls the same by others


@dataclass(frozen=True)
class Machine:
    """Its numbers, of Linux' `unistd.h` and `audit.h`."""

    architecture: int
    socket: int
    keyrings: tuple[int, ...]  # add_key, request_key, keyctl
    userfaultfd: int
    io_uring: tuple[int, ...] = (425, 426, 427)

    @property
    def refused(self) -> tuple[int, ...]:
        return (*self.keyrings, self.userfaultfd, *self.io_uring)


MACHINES = {
    "x86_64": Machine(0xC000003E, socket=41, keyrings=(248, 249, 250), userfaultfd=323),
    "aarch64": Machine(0xC00000B7, socket=198, keyrings=(217, 218, 219), userfaultfd=282),
}


def program(machine: str = os.uname().machine) -> bytes:
    """Empty for machines whose numbers we do not know."""
    known = MACHINES.get(machine)
    return b"".join(_lines(known)) if known else b""


def _lines(machine: Machine) -> list[bytes]:
    """Of another architecture, as 32-bit programs are, there are no calls: they have other numbers."""
    return [
        _line(LOAD, ARCHITECTURE),
        *_unless(IS, machine.architecture, NO_SUCH_CALL),
        _line(LOAD, NUMBER),
        *_where(IS_AT_LEAST, OTHER_NUMBERS, NO_SUCH_CALL),
        *(line for number in machine.refused for line in _where(IS, number, NO_SUCH_CALL)),
        _line(IS, machine.socket, 0, 3),
        _line(LOAD, FIRST_ARGUMENT),
        *_where(IS, AF_VSOCK, NO_SUCH_SOCKET),
        _line(RETURN, ALLOW),
    ]


def _where(test: int, value: int, error: int) -> tuple[bytes, bytes]:
    return _line(test, value, 0, 1), _line(RETURN, ERRNO | error)


def _unless(test: int, value: int, error: int) -> tuple[bytes, bytes]:
    return _line(test, value, 1, 0), _line(RETURN, ERRNO | error)


def _line(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    """How many lines are passed over where the test holds, and where not."""
    return struct.pack("=HBBI", code, then, otherwise, value)

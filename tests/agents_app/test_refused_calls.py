"""The program that says which calls to the kernel are refused, run as the kernel runs it."""

import struct

import pytest

from agents_app.sandboxes import refused_calls
from agents_app.sandboxes.refused_calls import AF_VSOCK, ALLOW, ERRNO, MACHINES, OTHER_NUMBERS

ON_EACH = pytest.mark.parametrize("name", MACHINES)
NO_SUCH_CALL, NO_SUCH_SOCKET = ERRNO | 38, ERRNO | 97


def answer(name: str, call: int, first: int = 0, architecture: int | None = None) -> int:
    machine = MACHINES[name]
    seen = struct.pack("=IIQ6Q", call, architecture or machine.architecture, 0, first, *([0] * 5))
    lines = [*struct.iter_unpack("=HBBI", refused_calls.program(name))]
    at, held = 0, 0
    while True:
        code, then, otherwise, value = lines[at]
        if code == refused_calls.RETURN:
            return int(value)
        if code == refused_calls.LOAD:
            (held,) = struct.unpack_from("=I", seen, value)
        else:
            at += then if (held == value if code == refused_calls.IS else held >= value) else otherwise
        at += 1


@ON_EACH
def test_what_programs_need_is_allowed(name: str) -> None:
    machine = MACHINES[name]
    for call in {*range(500)} - {*machine.refused, machine.socket}:
        assert answer(name, call) == ALLOW
    for kind in {*range(50)} - {AF_VSOCK}:
        assert answer(name, machine.socket, kind) == ALLOW


@ON_EACH
def test_what_no_wall_stands_around_is_refused(name: str) -> None:
    machine = MACHINES[name]
    assert {answer(name, call) for call in machine.refused} == {NO_SUCH_CALL}
    assert answer(name, machine.socket, AF_VSOCK) == NO_SUCH_SOCKET


@ON_EACH
def test_by_other_numbers_nothing_is_called(name: str) -> None:
    assert answer(name, 0, architecture=0x40000003) == NO_SUCH_CALL
    assert answer(name, OTHER_NUMBERS | 1) == NO_SUCH_CALL


def test_a_machine_that_we_do_not_know_has_none() -> None:
    assert refused_calls.program("riscv64") == b""

"""What the kernel says of processes. All of them are read several times in each turn, so by hand: pathlib
takes eight times as long."""

import os

PART, MOST = 1 << 16, 1 << 18


def pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def threads(pid: int) -> list[str]:
    return os.listdir(f"/proc/{pid}/task")


def says(path: str) -> bytes:
    """A file in /proc, whose names and words may be any bytes. Not all of it where that is more than anything
    there has to say: a process can give out all of its memory as its environment."""
    handle, said = os.open(f"/proc/{path}", os.O_RDONLY | os.O_CLOEXEC), b""
    try:
        while len(said) < MOST and (part := os.read(handle, PART)):
            said += part
    finally:
        os.close(handle)
    return said

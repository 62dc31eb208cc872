"""What the kernel says of processes. All of them are read several times in each turn, so by hand: pathlib
takes eight times as long."""

import os

PART = 1 << 16


def pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def threads(pid: int) -> list[str]:
    return os.listdir(f"/proc/{pid}/task")


def says(path: str) -> bytes:
    """All of a file in /proc, whose names and words may be any bytes."""
    handle = os.open(f"/proc/{path}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = [os.read(handle, PART)]
        while parts[-1]:
            parts.append(os.read(handle, PART))
    finally:
        os.close(handle)
    return b"".join(parts)

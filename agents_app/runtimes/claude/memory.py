"""What the machine has, and what processes hold of it; None where the system does not say."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def total() -> int:
    """Of the machine, or of the container that we are in."""
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(installed, _number(_CGROUP / "memory.max") or installed)


def available() -> int | None:
    """What could be had without swapping."""
    free = _kilobytes(Path("/proc/meminfo"), "MemAvailable:")
    limit, used = _number(_CGROUP / "memory.max"), _number(_CGROUP / "memory.current")
    if free is None or limit is None or used is None:
        return free
    cache = _bytes_of_cache()
    return min(free, limit - used + cache)


def held_by(pids: Iterable[int]) -> int:
    """Their share of what they hold: what several share is counted in parts."""
    return sum(_kilobytes(Path(f"/proc/{pid}/smaps_rollup"), "Pss:") or 0 for pid in pids)


def _bytes_of_cache() -> int:
    """Files that the kernel keeps at hand and gives up when somebody needs the room."""
    with suppress(OSError, ValueError):
        for line in (_CGROUP / "memory.stat").read_text().splitlines():
            name, _, value = line.partition(" ")
            if name == "inactive_file":
                return int(value)
    return 0


def _kilobytes(path: Path, name: str) -> int | None:
    with suppress(OSError, ValueError):
        for line in path.read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return None


def _number(path: Path) -> int | None:
    with suppress(OSError, ValueError):
        return int(path.read_text())
    return None

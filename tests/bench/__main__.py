"""`make bench`: what it costs to start and to stand by, on this machine, as a table and as JSON.

A start is measured as a person has it: from the command to the first "ready" of `/api/health/ready`, Python's
own start and the imports included. The stack stands by without the demo model, as it does with a key.
"""

import json
import os
import sys
import tempfile
import threading
from pathlib import Path
from time import monotonic

import psutil

from tests.processes.conftest import REAL, RunningUp, free_port

SECOND_START_AIM = 6.0  # seconds
STANDING_BY_AIM = 330.0  # MB
SETTLES_IN = 5.0


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        first, _ = start(Path(folder))
        second, memory = start(Path(folder))
    total = sum(memory.values())
    print(f"{'first start, ready after':34}{first:8.2f} s")
    print(f"{'second start, ready after':34}{second:8.2f} s   aim: under {SECOND_START_AIM:.0f} s")
    for name, size in sorted(memory.items(), key=lambda each: -each[1]):
        print(f"{'standing by, ' + name:34}{size:8.1f} MB")
    print(f"{'standing by, all (PSS)':34}{total:8.1f} MB  aim: under {STANDING_BY_AIM:.0f} MB")
    print(
        json.dumps({"firstStartS": first, "secondStartS": second, "standingByMb": memory, "totalMb": total})
    )
    return 0 if second < SECOND_START_AIM and total < STANDING_BY_AIM else 1


def start(folder: Path) -> tuple[float, dict[str, float]]:
    """How long until it was ready, and the memory of each process once it has settled."""
    (folder / "vault").mkdir(exist_ok=True)
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "PARACHUTE_HOME": str(folder / "home"),
        "VAULT_PATH": str(folder / "vault"),
        "PORT": str(free_port()),
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",  # nobody answers there, and nobody is asked
    }
    began = monotonic()
    up = RunningUp(REAL, folder, variables)
    try:
        up.wait_ready()
        took = monotonic() - began
        threading.Event().wait(SETTLES_IN)
        names = {up.pid: "up"} | {up.pid_of(name): name for name in ("valkey", "web", "turns", "background")}
        memory = {names.get(pid, "others"): pss(pid) for pid in (up.pid, *children(up.pid))}
    finally:
        up.stop()
    return took, memory


def children(pid: int) -> list[int]:
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def pss(pid: int) -> float:
    return float(psutil.Process(pid).memory_full_info().pss) / 1e6


if __name__ == "__main__":
    sys.exit(main())

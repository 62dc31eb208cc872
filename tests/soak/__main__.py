"""`make soak`: three minutes of load, while web, workers and Valkey are killed at random.

A run is repeated, as far as chance allows, with the seed that it prints: make soak ARGS="--seed 7".
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

from tests.processes.running import free_port
from tests.soak.run import soak


def main() -> int:
    asked = _arguments()
    print(f"seed {asked.seed}, {asked.seconds:g} s of kills, {asked.sessions} sessions", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    print(f"everything of it lies in {folder}", flush=True)
    report = soak(folder, _variables(folder), seconds=asked.seconds, sessions=asked.sessions, seed=asked.seed)
    print(report)
    if report.problems:
        return 1
    shutil.rmtree(folder)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    return parser.parse_args()


def _variables(folder: Path) -> dict[str, str]:
    (folder / "vault").mkdir()
    own = {
        "PARACHUTE_HOME": str(folder / "home"),
        "VAULT_PATH": str(folder / "vault"),
        "PARACHUTE_CURATOR": "0",  # what the model is asked is counted
        "PORT": str(free_port()),
    }
    return {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TZ") if name in os.environ} | own


if __name__ == "__main__":
    sys.exit(main())

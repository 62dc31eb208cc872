"""How a server's process is started behind a wall: through `relay.py`, by a Python that is there."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents_app.launcher.outward import BASE, python_of_ours
from agents_app.sandboxes import ENGINES
from agents_app.sandboxes.base import Sandbox
from agents_app.tools.mcp import relay
from agents_app.tools.mcp.given import GivenServer

PROGRAM = Path(relay.__file__).resolve()
IN_A_BOX = "/usr/bin/python3"  # of its image


@dataclass(frozen=True)
class Relay:
    argv: tuple[str, ...]
    needs: tuple[Path, ...]  # what its wall has to show


def relay_for(sandbox: Sandbox) -> Relay:
    if sandbox.name in ENGINES:
        return Relay((IN_A_BOX, "-IS", str(PROGRAM)), (PROGRAM,))
    python = str(Path(BASE).resolve()) if sandbox.is_wall else sys.executable
    return Relay((python, "-IS", str(PROGRAM)), (*python_of_ours(), PROGRAM))


def relayed(server: GivenServer, through: Relay, *, how: str = relay.QUIET) -> dict[str, Any]:
    config = server.settings
    if not server.is_process:
        return config
    python, *more = through.argv
    return {**config, "command": python, "args": [*more, how, config["command"], *config["args"]]}

"""What an engine is asked, until it answers."""

import subprocess

from agents_app.sandboxes.container_engine import Engine
from tests.engines.missing import NotTested

ANSWERS_WITHIN = 120.0


def ran(engine: Engine, *words: str) -> bool:
    return run(engine, *words).returncode == 0


def run(engine: Engine, *words: str) -> subprocess.CompletedProcess[bytes]:
    argv = (engine.program, *words)
    try:
        return subprocess.run(argv, env=dict(engine.environment), capture_output=True, timeout=ANSWERS_WITHIN)
    except subprocess.TimeoutExpired as why:
        raise NotTested(f"{engine.program} does not answer: {why}") from why

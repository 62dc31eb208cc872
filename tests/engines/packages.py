"""Whether a container of this engine can take packages, on a base that is come by as `deploy/sandbox` does,
with nothing of it taking part: so where this works and the recipe does not, the recipe is broken."""

import subprocess
import tempfile
from pathlib import Path

from agents_app.sandboxes.container_engine import Engine
from tests.engines.commands import ANSWERS_WITHIN, ran

FETCHED, MADE = "debian:stable-slim", "parachute-tests-base"
TAKES_LISTS = ("apt-get", "--option", "APT::Update::Error-Mode=any", "update")


def can_be_taken(engine: Engine) -> bool:
    if ran(engine, "run", "--rm", FETCHED, *TAKES_LISTS):
        return True
    try:
        return _make(engine) and ran(engine, "run", "--rm", "--network", "host", MADE, *TAKES_LISTS)
    finally:
        ran(engine, "rmi", "--force", MADE)


def _make(engine: Engine) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "base.tar"
        made = _said(engine, "mmdebstrap", "--variant=apt", "stable", str(base), *_mirror(engine))
        return made is not None and ran(engine, "import", str(base), MADE)


def _mirror(engine: Engine) -> list[str]:
    """That of this machine, as its own apt names it."""
    said = _said(engine, "apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages")
    return [each for each in (said or "").split() if each.endswith("/debian/")][:1]


def _said(engine: Engine, *argv: str) -> str | None:
    try:
        done = subprocess.run(
            argv, env=dict(engine.environment), capture_output=True, text=True, timeout=ANSWERS_WITHIN
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None

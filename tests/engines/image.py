"""The image of the read-only box, as `deploy/sandbox/build` makes it. That takes half a minute and the
network, so what it made is kept until the recipe changes."""

import hashlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agents_app.engine import Engine
from tests.engines.missing import NotTested

RECIPE = Path(__file__).resolve().parents[2] / "deploy" / "sandbox"
VERSION = hashlib.sha256(b"\0".join(path.read_bytes() for path in sorted(RECIPE.iterdir()))).hexdigest()[:12]
NAME = f"parachute-sandbox:tests-{VERSION}"
BUILDS_WITHIN, ANSWERS_WITHIN = 180.0, 120.0


@contextmanager
def box_image(engine: Engine) -> Iterator[None]:
    """It is there and runs. What was brought into an engine is removed again. Raises NotTested."""
    is_brought = not _ran(engine, "image", "inspect", NAME)
    try:
        if is_brought:
            _bring(engine)
        # A container as it comes: from here on whatever does not work is ours.
        done = _run(engine, "run", "--rm", "--network", "none", NAME, "true")
        if done.returncode != 0:
            raise NotTested(f"{engine.program} runs no container here: {done.stderr.decode().strip()}")
        yield
    finally:
        if is_brought:
            _ran(engine, "rmi", "--force", NAME)


def _bring(engine: Engine) -> None:
    kept = _cache() / f"sandbox-{VERSION}.tar"
    if not (kept.is_file() and _ran(engine, "load", "--input", str(kept))):
        _build(engine)
        _keep(kept, engine)


def _build(engine: Engine) -> None:
    try:
        done = subprocess.run(
            (RECIPE / "build", NAME),
            env={**engine.environment, "PARACHUTE_SANDBOX": engine.program},
            capture_output=True,
            text=True,
            timeout=BUILDS_WITHIN,
        )
    except subprocess.TimeoutExpired as why:
        raise NotTested("deploy/sandbox/build does not end here.") from why
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-10:])
        raise NotTested(f"deploy/sandbox/build makes no image here:\n{said}")


def _keep(kept: Path, engine: Engine) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    new = kept.with_suffix(f".{os.getpid()}")
    if _ran(engine, "save", "--output", str(new), NAME):
        for older in kept.parent.glob("sandbox-*.tar"):
            older.unlink(missing_ok=True)
        new.rename(kept)


def _ran(engine: Engine, *words: str) -> bool:
    return _run(engine, *words).returncode == 0


def _run(engine: Engine, *words: str) -> subprocess.CompletedProcess[bytes]:
    argv = (engine.program, *words)
    try:
        return subprocess.run(argv, env=dict(engine.environment), capture_output=True, timeout=ANSWERS_WITHIN)
    except subprocess.TimeoutExpired as why:
        raise NotTested(f"{engine.program} does not answer: {why}") from why


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "parachute-tests"

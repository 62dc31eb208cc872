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
BUILDS_WITHIN, LOADS_WITHIN = 600.0, 120.0


@contextmanager
def box_image(engine: Engine) -> Iterator[None]:
    """In an engine that is somebody's it is removed again. Raises NotTested."""
    if _ran(engine, "image", "inspect", NAME):
        yield
        return
    kept = _cache() / f"sandbox-{VERSION}.tar"
    if not (kept.is_file() and _ran(engine, "load", "--input", str(kept))):
        build(engine)
        _keep(kept, engine)
    try:
        yield
    finally:
        _ran(engine, "rmi", "--force", NAME)


def build(engine: Engine) -> None:
    done = subprocess.run(
        (RECIPE / "build", NAME),
        env={**engine.environment, "PARACHUTE_SANDBOX": engine.program},
        capture_output=True,
        text=True,
        timeout=BUILDS_WITHIN,
    )
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
    argv = (engine.program, *words)
    done = subprocess.run(argv, env=dict(engine.environment), capture_output=True, timeout=LOADS_WITHIN)
    return done.returncode == 0


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "parachute-tests"

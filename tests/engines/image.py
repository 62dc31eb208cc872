"""The image of the read-only box, as `deploy/sandbox/build` makes it. That takes half a minute and the
network, so what it made is kept until the recipe changes."""

import hashlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agents_app.sandboxes.container_engine import Engine
from tests.engines import packages
from tests.engines.commands import ran, run
from tests.engines.missing import BrokenRecipe, NotTested

RECIPE = Path(__file__).resolve().parents[2] / "deploy" / "sandbox"
VERSION = hashlib.sha256(b"\0".join(path.read_bytes() for path in sorted(RECIPE.iterdir()))).hexdigest()[:12]
NAME = f"parachute-sandbox:tests-{VERSION}"
BUILDS_WITHIN = 180.0


@contextmanager
def box_image(engine: Engine) -> Iterator[None]:
    """It is there and runs. What was brought into an engine is removed again. Raises NotTested where that is
    the machine's fault, and BrokenRecipe where it is ours."""
    kept = _cache() / f"sandbox-{VERSION}.tar"
    is_brought = not ran(engine, "image", "inspect", NAME)
    is_built = is_brought and not (kept.is_file() and ran(engine, "load", "--input", str(kept)))
    try:
        if is_built:
            _build(engine)
        # A container as it comes: from here on whatever does not work is ours.
        done = run(engine, "run", "--rm", "--network", "none", NAME, "true")
        if done.returncode != 0:
            raise _failed(engine, f"{engine.program} runs no container here: {done.stderr.decode().strip()}")
        if is_built:
            _keep(kept, engine)
        yield
    finally:
        if is_brought:
            ran(engine, "rmi", "--force", NAME)


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
        raise _failed(engine, f"deploy/sandbox/build makes no image here:\n{said}")


def _failed(engine: Engine, how: str) -> NotTested | BrokenRecipe:
    if packages.can_be_taken(engine):
        return BrokenRecipe(f"{how}\nAnother container takes packages here, so deploy/sandbox is broken.")
    return NotTested(how)


def _keep(kept: Path, engine: Engine) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    new = kept.with_suffix(f".{os.getpid()}")
    if ran(engine, "save", "--output", str(new), NAME):
        for older in kept.parent.glob("sandbox-*.tar"):
            older.unlink(missing_ok=True)
        new.rename(kept)


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "parachute-tests"

"""A container engine over its command line: docker, or podman, which takes the same words."""

import logging
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

log = logging.getLogger(__name__)

PATIENCE = 10.0  # seconds; an engine that hangs must not keep a worker from starting
LABEL = "parachute"
WORKER = "parachute.worker"


@dataclass(frozen=True)
class Engine:
    """`owner` is a name for the home that containers belong to, `worker` one for who started them."""

    program: str  # docker or podman
    image: str
    owner: str
    worker: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)  # how the engine is reached

    def path(self) -> str | None:
        return shutil.which(self.program, path=self.environment.get("PATH"))

    def run(self, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Raises OSError and TimeoutExpired."""
        program = self.path()
        if program is None:
            raise FileNotFoundError(f"{self.program} is not installed.")
        return subprocess.run(
            [program, *arguments],
            env=dict(self.environment),
            input=given,
            capture_output=True,
            timeout=PATIENCE,
        )

    def client(self, given: Mapping[str, str]) -> dict[str, str]:
        """The environment of the engine's program, with what is given to a container. Its own settings never
        come from the home that an agent is told of."""
        return {**self.environment, **given, "HOME": self.environment.get("HOME", "/nonexistent")}

    def remove(self, *names: str) -> None:
        """Whatever happens in them; one that is gone is removed already."""
        if not names or self.path() is None:
            return
        # Podman asks them to end first, and waits for ten seconds.
        at_once = ("--time", "0") if self.program == "podman" else ()
        until = time.monotonic() + PATIENCE
        while done := self._tried("rm", "--force", *at_once, "--volumes", *names):
            # One that has just ended goes by itself, and is there until it has.
            if b"already in progress" not in done.stderr or time.monotonic() > until:
                return

    def left(self, *, of_worker: bool) -> list[str]:
        """The containers of our home, or of this worker alone, that are there."""
        label = f"{WORKER}={self.owner}/{self.worker}" if of_worker else f"{LABEL}={self.owner}"
        if self.path() is None:
            return []
        done = self._tried("ps", "--all", "--quiet", "--filter", f"label={label}")
        return done.stdout.decode().split() if done and done.returncode == 0 else []

    def _tried(self, *arguments: str) -> subprocess.CompletedProcess[bytes] | None:
        try:
            return self.run(*arguments)
        except (OSError, subprocess.TimeoutExpired) as error:
            log.warning("%s did not answer (%s): a container may be left.", self.program, error)
            return None

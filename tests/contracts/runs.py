"""Starts things behind a wall."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from agents_app.launcher import orders_for
from agents_app.sandboxes.base import Launch, Sandbox

PATIENCE = 30
CANARY = "CANARY"  # stands in the worker's environment and must not come further


class Runs:
    """Starts things in one sandbox, as the SDK does: with the worker's environment and some arguments."""

    def __init__(self, sandbox: Sandbox, vault: Path, launcher: Path, user: int | None = None) -> None:
        """`user` is who starts things, where it is not us."""
        self.sandbox, self.vault, self.launcher, self.user = sandbox, vault, launcher, user

    def launch(self, *argv: str, **more: object) -> Launch:
        return replace(Launch(argv, {"PATH": "/usr/bin:/bin"}, self.vault, self.vault), **more)  # type: ignore[arg-type]

    def python(self, code: str, **more: object) -> Launch:
        """This very Python, which need not lie where the system's does."""
        prefixes = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).parent.parent}
        ours = tuple(each for each in prefixes if not each.is_relative_to("/usr"))
        readable = (*ours, *more.pop("readable", ()))  # type: ignore[misc]
        return self.launch(sys.executable, "-IS", "-c", code, readable=readable, **more)

    @contextmanager
    def started(self, launch: Launch, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        environment = {**os.environ, CANARY: "worker", **orders_for(self.sandbox.confine(launch))}
        process = subprocess.Popen(
            [self.launcher, *arguments],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            user=self.user,
            group=self.user,
            extra_groups=None if self.user is None else [],
        )
        with process:
            try:
                yield process
            finally:
                process.kill()

    def run(self, launch: Launch, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        with self.started(launch, *arguments) as process:
            out, err = process.communicate(given, timeout=PATIENCE)
        return subprocess.CompletedProcess(list(launch.argv), process.returncode, out, err)

    def sh(self, script: str, **more: object) -> subprocess.CompletedProcess[str]:
        return self.run(self.launch("/bin/sh", "-c", script, **more))

    def lets_through(self, *scripts: str, **more: object) -> list[str]:
        """Those that worked. All are tried behind one wall: a start takes its time."""
        tries = (f"({script}) >/dev/null && echo {number}" for number, script in enumerate(scripts))
        done = self.sh("; ".join((*tries, "true")), **more)
        assert done.returncode == 0, done.stderr
        return [scripts[int(number)] for number in done.stdout.split()]

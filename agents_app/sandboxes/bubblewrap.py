"""The wall of Linux without a container engine: namespaces of its own, made by bubblewrap.

It has its own users, processes, network, IPC and host name, no capabilities, and the files of `mounts.py`.
It has no limits on memory or processes.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from .base import CannotConfine, Launch
from .mounts import HOME, mounts

# No secret may be among these: every process of the machine can read them.
NAMESPACES = (
    *("--unshare-user", "--uid", "1000", "--gid", "1000"),
    *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    # As root without --cap-drop an agent remounted a read-only vault and wrote to it.
    *("--cap-drop", "ALL", "--die-with-parent", "--new-session"),
)
STRICT: tuple[str, ...] = ("--disable-userns",)  # not before bubblewrap 0.8, nor where /proc/sys is read-only
RAN, FAILED = 300.0, 10.0  # seconds that an answer is good for: who mends it should not wait
HINTS = {
    "max_user_namespaces": "sysctl -w user.max_user_namespaces=15000",
    "unprivileged_userns_clone": "sysctl -w kernel.unprivileged_userns_clone=1",
    "uid map": "allow bwrap user namespaces in AppArmor (kernel.apparmor_restrict_unprivileged_userns)",
    "namespace": "allow user namespaces, or in a container run it with --security-opt seccomp=unconfined",
}


class Bubblewrap:
    name = "bubblewrap"
    is_wall = True

    def __init__(self, search: str | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """`search` is where to look for the program, as in PATH."""
        self._search = search
        self._clock = clock
        self._strict = STRICT
        self._answer: str | None = None
        self._good_until = float("-inf")

    def unavailable(self) -> str | None:
        if self._clock() >= self._good_until:
            self._answer = self._probe()
            self._good_until = self._clock() + (FAILED if self._answer else RAN)
        return self._answer

    def confine(self, launch: Launch) -> Launch:
        return self._confined(launch, self._strict)

    def _confined(self, launch: Launch, strict: tuple[str, ...]) -> Launch:
        program = shutil.which("bwrap", path=self._search)
        if program is None:
            raise CannotConfine("bubblewrap is not installed.")
        directory = str(launch.directory.resolve())
        argv = (program, *NAMESPACES, *strict, *mounts(launch), "--chdir", directory, "--", *launch.argv)
        return replace(launch, argv=argv, environment={**launch.environment, "HOME": str(HOME)})

    def _probe(self) -> str | None:
        if not sys.platform.startswith("linux"):
            return "bubblewrap is for Linux only. Use docker or podman here."
        if shutil.which("bwrap", path=self._search) is None:
            return "bubblewrap is not installed: apt install bubblewrap (or dnf, pacman, apk)."
        problem = ""
        for strict in (STRICT, ()):
            problem = self._run_one(strict)
            if not problem:
                self._strict = strict
                return None
        return f"bubblewrap is there, but no wall can be built here ({problem}).{_hint(problem)}"

    def _run_one(self, strict: tuple[str, ...]) -> str:
        """Nothing if a process behind a wall could write into its vault, else what was said."""
        with tempfile.TemporaryDirectory() as folder:
            vault = Path(folder)
            writes = ("/bin/sh", "-c", "echo ran > here")
            confined = self._confined(Launch(writes, {"PATH": "/usr/bin:/bin"}, vault, vault), strict)
            environment = dict(confined.environment)
            try:
                done = subprocess.run(
                    confined.argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=10
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                return str(error)
            if done.returncode == 0 and (vault / "here").is_file():
                return ""
            said = done.stderr.decode(errors="replace").strip()
            return said.partition("\n")[0] or f"exit code {done.returncode}"


def _hint(problem: str) -> str:
    """A guess at the mending, from bubblewrap's own words."""
    return next((f" Try: {hint}." for word, hint in HINTS.items() if word in problem), "")

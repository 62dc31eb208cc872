"""The wall of Linux without a container engine: namespaces of its own, made by bubblewrap.

It has its own users, processes, network, IPC and host name, no capabilities, and the files of `mounts.py`.
Limits are set by the launcher before it, but for the number of processes, which is set within: outside, all
that the server's user runs would count. For root the kernel counts none: root needs the control group.
"""

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from agents_app.sandboxes.limits import Limits

from . import control_groups, refused_calls
from .base import FIRST_GIVEN, CannotConfine, Launch
from .checks import checked
from .mounts import HOME, mounts, over_all

# No secret may be among these: every process of the machine can read them.
IDENTITY = ("--unshare-user", "--uid", "1000", "--gid", "1000")
# As root without --cap-drop an agent remounted a read-only vault and wrote to it.
NO_RIGHTS = ("--cap-drop", "ALL", "--die-with-parent")
NAMESPACES = (
    *IDENTITY,
    # With the first process of these all others end, and no agent sees it. It sees that of the wall within,
    # and may trace it: one that was made to live on, without a mark, ran on when the turn was over.
    "--unshare-pid",
    *("--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--new-session"),
    *NO_RIGHTS,
)
# A wall within it, around all that is mounted by then. Mounts that come from a user namespace above are
# locked to what they lie on. Others the kernel takes off when the last process behind the wall ends: an agent
# that was handed a folder by one behind it would look, and write, beneath the masks.
WITHIN = (*IDENTITY, "--unshare-pid", *NO_RIGHTS)
STRICT: tuple[str, ...] = ("--disable-userns",)  # not before bubblewrap 0.8, nor where /proc/sys is read-only
# Behind the wall, too. Of Debian, Fedora, Alpine; and what is known by Python's `requests`, and by OpenSSL.
CERTIFICATES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
)
CERTIFICATES_IN = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
WITH_GIVEN = f'exec "$@" {FIRST_GIVEN}<&0 </dev/null'
COUNTER = Path("/usr/bin/prlimit")
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
    install = "apt install bubblewrap (or dnf, pacman, apk)"

    def __init__(
        self,
        search: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        user: int | None = None,
    ) -> None:
        """`search` is where to look for the program, as in PATH; `user` who starts what is confined."""
        self._search = search
        self._user = os.getuid() if user is None else user
        self._clock = clock
        self._strict = STRICT
        self._can_bound = True  # the size of a file system in memory: since bubblewrap 0.7
        self._can_group = False
        self._answer: str | None = None
        self._good_until = float("-inf")

    def unavailable(self) -> str | None:
        if self._clock() >= self._good_until:
            self._answer = self._probe()
            self._good_until = self._clock() + (FAILED if self._answer else RAN)
        return self._answer

    def confine(self, launch: Launch) -> Launch:
        return self._confined(launch)

    def end(self, mark: str) -> None:
        control_groups.remove(mark)

    def sweep(self) -> None:
        control_groups.remove_empty()

    @property
    def counts_processes(self) -> bool:
        """Whether a fork bomb ends at its limit: root's processes are counted by control groups alone."""
        return self._can_group or self._counts_within()

    def _confined(self, launch: Launch) -> Launch:
        program = shutil.which("bwrap", path=self._search)
        if program is None:
            raise CannotConfine("bubblewrap is not installed.")
        directory = str(launch.directory.resolve())
        within = str(Path(program).resolve())
        shown = mounts(_with_program(launch, Path(within)), can_bound=self._can_bound)
        refused = refused_calls.program()
        given = ("--seccomp", str(FIRST_GIVEN)) if refused else ()
        argv = (
            *(program, *NAMESPACES, *given, *shown, "--"),
            *(within, *WITHIN, *self._strict, *over_all(), "--chdir", directory, "--"),
            *self._counted(launch),
        )
        groups = control_groups.groups_for(launch.mark, launch.limits) if launch.limits else ()
        return replace(
            launch,
            argv=argv,
            environment={**certificates(), **launch.environment, "HOME": str(HOME)},
            groups=groups if self._can_group else (),
            given=(refused,) if refused else (),
        )

    def _counted(self, launch: Launch) -> tuple[str, ...]:
        argv = checked(launch)
        if launch.limits is None or not self._counts_within():
            return argv
        return (str(COUNTER), f"--nproc={launch.limits.processes}", "--", *argv)

    def _counts_within(self) -> bool:
        return self._user != 0 and COUNTER.exists()

    def _probe(self) -> str | None:
        if not sys.platform.startswith("linux"):
            return "bubblewrap is for Linux only. Use docker or podman here."
        if shutil.which("bwrap", path=self._search) is None:
            return f"bubblewrap is not installed: {self.install}."
        if shutil.which("nsenter") is None:  # with which agents are brought to a stand
            return "nsenter is not installed: apt install util-linux (or dnf, pacman, apk)."
        self._can_group = self._user == os.getuid() and control_groups.can_be_made(secrets.token_hex(16))
        problem = ""
        for self._strict, self._can_bound in ((STRICT, True), ((), True), ((), False)):
            problem = self._run_one()
            if not problem:
                return None
        return f"bubblewrap is there, but no wall can be built here ({problem}).{_hint(problem)}"

    def _run_one(self) -> str:
        """Nothing if a process behind a wall could write into its vault, else what was said."""
        with tempfile.TemporaryDirectory() as folder:
            vault = Path(folder)
            writes = ("/bin/sh", "-c", "echo ran > here")
            given = Launch(writes, {"PATH": "/usr/bin:/bin"}, vault, vault, limits=Limits())
            confined = self._confined(given)
            environment = dict(confined.environment)
            try:
                done = subprocess.run(
                    ("/bin/sh", "-c", WITH_GIVEN, "sh", *confined.argv),
                    env=environment,
                    input=b"".join(confined.given),
                    capture_output=True,
                    timeout=10,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                return str(error)
            if done.returncode == 0 and (vault / "here").is_file():
                return ""
            said = done.stderr.decode(errors="replace").strip()
            return said.partition("\n")[0] or f"exit code {done.returncode}"


def _with_program(launch: Launch, program: Path) -> Launch:
    """What lies below /usr is shown behind every wall."""
    return launch if program.is_relative_to("/usr") else replace(launch, readable=(*launch.readable, program))


def certificates() -> dict[str, str]:
    """The system's, for programs that bring a `cacert.pem` of their own: that has a secret's name."""
    there = next((path for path in CERTIFICATES if Path(path).is_file()), None)
    return dict.fromkeys(CERTIFICATES_IN, there) if there else {}


def _hint(problem: str) -> str:
    """A guess at the mending, from bubblewrap's own words."""
    return next((f" Try: {hint}." for word, hint in HINTS.items() if word in problem), "")

"""A dockerd of our own, with a folder for all that it keeps, and nothing of it outside."""

import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agents_app.launcher import end_everything, new_mark
from tests.engines.missing import NotTested

STARTS_WITHIN, ENDS_WITHIN = 30.0, 15.0
DOES_NOT_START = "No docker runs here, and a dockerd of our own does not start:"
# A default dockerd makes a bridge and rewrites the host's firewall.
QUIET = ("--iptables=false", "--ip6tables=false", "--bridge=none", "--storage-driver=overlay2")
# Its mounts are in a name space that goes with it; and if the tests are killed, it ends.
APART = ("setpriv", "--pdeathsig", "TERM", "unshare", "--mount", "--propagation", "slave")
SEARCH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


class Daemon:
    def __init__(self) -> None:
        program = shutil.which("dockerd", path=SEARCH)
        if program is None:
            raise NotTested("No docker runs here, and there is no dockerd to start: apt install docker.io.")
        if os.getuid() != 0:
            raise NotTested("No docker runs here, and only root can start one.")
        self._program = program
        self._mark = new_mark()
        # Not in TMPDIR, which may be long: the path of a unix socket ends at 107 bytes.
        self._folder = Path(tempfile.mkdtemp(prefix="dockerd-", dir="/tmp"))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"unix://{self._folder}/s"

    def start(self) -> None:
        told_at = self._folder / "told"
        (self._folder / "daemon.json").write_text("{}")  # and not that of the machine
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told, self._log.open("ab") as log:
            told.bind(str(told_at))
            environment = {"PATH": SEARCH, "NOTIFY_SOCKET": str(told_at), "MARK_OF_TESTS": self._mark}
            argv = (*APART, self._program, *QUIET, *self._places())
            try:
                self._process = subprocess.Popen(argv, env=environment, stdout=log, stderr=log)
            except OSError as why:
                raise NotTested(f"{DOES_NOT_START} {why}") from why
            is_up = _hears(told, self._process.pid)
        if not is_up:
            why_not = self._log.read_text(errors="replace").strip().rpartition("\n")[2]
            raise NotTested(f"{DOES_NOT_START} {why_not}")

    def kill(self) -> None:
        """As a crash would."""
        assert self._process
        self._process.kill()
        self._process.wait()

    @contextmanager
    def silent(self) -> Iterator[None]:
        """It is there and answers nobody."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._remove_containers()
            self._process.terminate()
            try:
                self._process.wait(ENDS_WITHIN)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        end_everything(self._mark)
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _log(self) -> Path:
        return self._folder / "log"

    def _places(self) -> tuple[str, ...]:
        folder = self._folder
        return (
            *("--host", self.address, "--pidfile", f"{folder}/pid", "--config-file", f"{folder}/daemon.json"),
            *("--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec"),
        )

    def _remove_containers(self) -> None:
        """Those that a test has left: the daemon would give each ten seconds to end."""
        script = "docker ps --all --quiet | xargs --no-run-if-empty docker rm --force"
        environment = {"PATH": SEARCH, "DOCKER_HOST": self.address}
        try:
            subprocess.run(("sh", "-c", script), env=environment, capture_output=True, timeout=ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            return  # it hangs, and is killed with all of them


def _hears(told: socket.socket, pid: int) -> bool:
    """Whether it says that it is up, before it ends."""
    ended = os.pidfd_open(pid)
    try:
        heard, _, _ = select.select([told.fileno(), ended], [], [], STARTS_WITHIN)
        return told.fileno() in heard
    finally:
        os.close(ended)

"""What `up` refuses to start with. Each refusal is one sentence that says how to mend it."""

import errno
import fcntl
import ipaddress
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from parachute_site.env import Environment
from sessions_app.files.folders import SYSTEM


class Refused(Exception):
    """`up` cannot start; the text is for the person who started it."""


def host_is_meant(environment: Environment, *, public: bool) -> None:
    """Whoever reaches the port can try to sign in: beyond this machine only when it was asked for twice."""
    if _is_loopback(environment.host):
        return
    if not (public and environment.allowed_hosts):
        raise Refused(
            f"HOST is {environment.host!r}, which other machines can reach. If that is meant, start with "
            "`manage.py up --public` and set ALLOWED_HOSTS to the names that people type; else unset HOST."
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def vault_is_usable(vault: Path) -> None:
    if vault.resolve() in SYSTEM:
        raise Refused(f"The vault {vault} holds parts of the system. Set VAULT_PATH to a folder of its own.")
    try:
        if not vault.is_dir():
            what = "is not a folder" if vault.exists() else "does not exist"
            raise Refused(f"The vault {vault} {what}. Set VAULT_PATH to a folder of markdown files.")
        tempfile.TemporaryFile(dir=vault).close()  # permission bits do not tell of read-only disks
    except OSError as error:
        why = f"The vault {vault} cannot be written ({error.strerror})."
        raise Refused(f"{why} Mend that, or set VAULT_PATH to another folder.") from error


def make_home(home: Path) -> None:
    """The home holds secrets, so nobody else may look into it."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = home.stat()
        if found.st_uid != os.getuid():
            raise Refused(f"The home {home} belongs to another user. Set PARACHUTE_HOME to one of yours.")
        if stat.S_IMODE(found.st_mode) & 0o077:
            home.chmod(0o700)
    except OSError as error:
        raise _no_home(home, error) from error


@contextmanager
def home_is_ours_alone(home: Path) -> Iterator[None]:
    """Two `up` over one database and one socket would end each other's processes. The lock ends with us."""
    try:  # the handle is not inherited, so no child keeps the lock
        lock = os.open(home / "up.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise _no_home(home, error) from error
    with os.fdopen(lock, "r+") as file:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            who = f"another `up` (process {file.read().strip() or 'unknown'})"
            what = "Stop that one, or set PARACHUTE_HOME to another folder."
            raise Refused(f"The home {home} is in use by {who}. {what}") from error
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def _no_home(home: Path, error: OSError) -> Refused:
    why = f"The home {home} cannot be used ({error.strerror})."
    return Refused(f"{why} Set PARACHUTE_HOME to a folder that can be made and written.")


def make_run_folder(run: Path) -> None:
    """Sockets live here, and its place may be in /tmp, where somebody else could have been first."""
    try:
        run.mkdir(mode=0o700, exist_ok=True)
        found = run.lstat()
    except OSError as error:
        raise Refused(f"The folder {run} for sockets cannot be made ({error.strerror}).") from error
    closed = not stat.S_IMODE(found.st_mode) & 0o077
    if not (stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and closed):
        raise Refused(f"The folder {run} for sockets must be yours and closed to others. Remove it.")


def port_is_free(host: str, port: int) -> None:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            why = "is in use by another program. Stop it, or set PORT to a free one"
        else:
            why = f"cannot be used ({error.strerror}). Set HOST and PORT to an address of this machine"
        raise Refused(f"Port {port} on {host} {why}.") from error

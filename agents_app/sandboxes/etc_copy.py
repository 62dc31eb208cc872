"""What /etc is behind the wall of bubblewrap: a copy of what is harmless of the machine's, and our own names.

A copy, because it is one mount then. To mount each by itself took four of the nine ms that this wall needs.
It is looked at before each start whether any of it has changed, and made anew then.
"""

import hashlib
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

log = logging.getLogger(__name__)

ETC = Path("/etc")
# Started by root, the agent is root to the kernel, only without capabilities: what root owns, it can read. So
# nothing of /etc is there but these, and none of them is secret (/etc/ssl/private is, /etc/gitconfig may be).
SHOWN = (
    *("alternatives", "bash.bashrc", "fonts", "inputrc", "java-17-openjdk", "java-21-openjdk", "ld.so.cache"),
    *("ld.so.conf", "ld.so.conf.d", "locale.alias", "localtime", "magic", "mime.types", "os-release"),
    *("protocols", "services", "shells", "timezone"),
    *("ca-certificates", "pki/ca-trust/extracted", "pki/tls/certs"),
    *("ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf"),
)
OURS = Path(__file__).parent / "etc"  # names one user and one host, and none of the machine's
NAME, BEING_MADE = "etc-", "making-"
KEPT_FOR = 7 * 86_400.0  # seconds after the last start of a wall; one that stands shows this very folder


def current(kept: Path) -> Path:
    """The copy as of now, in a folder for such copies."""
    copy = kept / f"{NAME}{_stamp()}"
    if not copy.is_dir():
        kept.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=BEING_MADE, dir=kept) as making:
            made = Path(making, "etc")
            _make(made)
            try:
                made.rename(copy)
            except OSError:
                if not copy.is_dir():  # else another worker was quicker
                    raise
    os.utime(copy)
    return copy


def remove_old(kept: Path) -> None:
    """Those of before the machine's changed, and what a worker that was killed had begun."""
    for copy in (*kept.glob(f"{NAME}*"), *kept.glob(f"{BEING_MADE}*")):
        if time.time() - copy.lstat().st_mtime > KEPT_FOR:
            shutil.rmtree(copy, ignore_errors=True)


def _sources() -> Iterator[tuple[str, Path]]:
    yield from ((name, path) for name in SHOWN if (path := ETC / name).exists())
    yield from ((path.name, path) for path in sorted(OURS.iterdir()))


def _stamp() -> str:
    """Of a folder: when its names last changed. Whoever installs something writes a new file and renames it
    into its place."""
    found = [(name, path.lstat(), path.stat()) for name, path in _sources()]
    told = [(name, each.st_ino, each.st_mtime_ns, each.st_size) for name, *both in found for each in both]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:24]


def _make(folder: Path) -> None:
    folder.mkdir()
    for name, source in _sources():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            _copy(source, target)
        except OSError as error:  # shutil.Error is one, and tells all that could not be copied
            log.warning("Agents behind a wall do not see all of %s: %s", source, error)
    for each in (folder, *folder.rglob("*")):
        if not each.is_symlink():
            each.chmod(0o755 if each.is_dir() else 0o644)


def _copy(source: Path, target: Path) -> None:
    # A link into /usr stays one: programs read the name of the time zone from where /etc/localtime points.
    if source.is_symlink() and source.resolve().is_relative_to("/usr"):
        target.symlink_to(source.readlink())
    elif source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copyfile(source, target)

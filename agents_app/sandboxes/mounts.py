"""What can be seen behind the wall of bubblewrap, as arguments of it.

In this order, because a later mount hides an earlier one: the system, read-only; memory for /tmp and the
home; what the launch names, from shallow to deep; and then the root and the masks are closed.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from .base import MASK, READ_ONLY, READ_WRITE, CannotConfine, Launch, VaultChanged
from .checks import CHANGED
from .placeholders import is_ours

HOME = Path("/home/agent")
# Started by root, the agent is root to the kernel, only without capabilities: what root owns, it can read. So
# nothing of /etc is there but these, and none of them is secret (/etc/ssl/private is, /etc/gitconfig may be).
ETC = (
    *("alternatives", "bash.bashrc", "fonts", "inputrc", "java-17-openjdk", "java-21-openjdk", "ld.so.cache"),
    *("ld.so.conf", "ld.so.conf.d", "locale.alias", "localtime", "magic", "mime.types", "os-release"),
    *("protocols", "services", "shells", "timezone"),
    *("ca-certificates", "pki/ca-trust/extracted", "pki/tls/certs"),
    *("ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf"),
)
OURS = Path(__file__).parent / "etc"  # names one user and one host, and none of the machine's
TOP = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
# To these files, too, root without capabilities is root: from behind this wall /proc/sys/kernel/core_pattern
# could be opened for writing, and what stands there the kernel runs on the host. Docker closes the same ones.
KERNEL_READ_ONLY = ("bus", "fs", "irq", "pressure", "sys", "sysrq-trigger")
KERNEL_MASKED = ("acpi", "asound", "kcore", "keys", "latency_stats", "mtrr", "scsi", "timer_list")
MEMORY = (Path("/tmp"), Path("/var/tmp"), HOME)  # noqa: S108 - a file system of the wall's own
SHARED = Path("/dev/shm")  # noqa: S108
SYSTEM = tuple(map(Path, ("/usr", "/etc", "/proc", "/dev", *(f"/{name}" for name in TOP))))
# What cannot be shown, because what the system has, or memory, lies in it.
AROUND = frozenset(above for path in SYSTEM for above in (path, *path.parents)) | frozenset(
    above for path in MEMORY for above in path.parents
)
SHUT = ("--perms", "0000")  # what is mounted next; since bubblewrap 0.5
CLOSED_LAST = (Path("/dev"), Path("/"))
MOST = 8_900  # bubblewrap takes 9,000 arguments


def mounts(launch: Launch, *, can_bound: bool = True) -> list[str]:
    """Raises CannotConfine where a path is not there or would hide the system."""
    sized = ("--size", str(launch.limits.scratch)) if launch.limits and can_bound else ()
    named = named_paths(launch)
    masked_folders = [path for path, how in named if how == MASK and path.is_dir()]
    shut = _shut(named, masked_folders) if can_bound else set[Path]()
    arguments = [
        *_system(),
        *("--dev-bind", "/proc", "/proc", "--dev", "/dev"),  # the machine's, until `over_all` covers it
        *(word for path in (SHARED, *MEMORY) for word in (*sized, "--tmpfs", str(path))),
        *_links((launch.vault, *launch.writable, *launch.readable), [path for path, _ in named]),
        *(word for path, how in named for word in (*(SHUT if path in shut else ()), *_mount(path, how))),
        *(word for path in (*masked_folders, *CLOSED_LAST) for word in ("--remount-ro", str(path))),
    ]
    if len(arguments) > MOST:
        raise CannotConfine(_too_much(launch))
    return arguments


def _shut(named: list[tuple[Path, int]], masked: list[Path]) -> set[Path]:
    """Those that nobody may enter, and that are not just empty: in a repository git would take what it knows
    in them for deleted, and the next commit would say so."""
    entered = {above for path, how in named if how != MASK for above in path.parents}
    in_git = (path for path in masked if any(os.path.lexists(above / ".git") for above in path.parents))
    return {path for path in in_git if path not in entered and not is_ours(path)}


def _system() -> list[str]:
    arguments = ["--ro-bind", "/usr", "/usr"]
    for path in (Path("/", name) for name in TOP):
        arguments += _as_on_the_host(path)
    for path in (Path("/etc", name) for name in ETC):
        arguments += _as_on_the_host(path)
    for path in sorted(OURS.iterdir()):
        arguments += ["--ro-bind", str(path), f"/etc/{path.name}"]
    return arguments


def over_all() -> list[str]:
    """All of it once more, with a `/proc` that knows the processes behind the wall and no others."""
    read_only = [(path, READ_ONLY) for name in KERNEL_READ_ONLY if (path := Path("/proc", name)).exists()]
    masked = [(path, MASK) for name in KERNEL_MASKED if (path := Path("/proc", name)).exists()]
    shown = [word for path, how in (*read_only, *masked) for word in _mount(path, how)]
    # Else they would be memory to write to, of no bounded size.
    closed = [word for path, _ in masked if path.is_dir() for word in ("--remount-ro", str(path))]
    return ["--dev-bind", "/", "/", "--proc", "/proc", *shown, *closed]


def _as_on_the_host(path: Path) -> list[str]:
    if not path.exists():
        return []
    # A link into /usr stays one: programs read the name of the time zone from where /etc/localtime points.
    if path.is_symlink() and path.resolve().is_relative_to("/usr"):
        return ["--symlink", str(path.readlink()), str(path)]
    return ["--ro-bind", str(path), str(path)]


def named_paths(launch: Launch) -> list[tuple[Path, int]]:
    """The launch's paths with links resolved, shallow before deep; of one named twice, the narrower last."""
    shown = {(_placed(path, launch), READ_WRITE) for path in (launch.vault, *launch.writable)}
    shown |= {(_placed(path, launch), READ_ONLY) for path in launch.readable}
    # Hidden already is what lies in nothing that is shown, or in a folder that is hidden itself.
    seen = {*(path for path, _ in shown), *SYSTEM}
    given = frozenset(launch.masked)
    if len(given) > MOST:
        raise CannotConfine(_too_much(launch))
    masked = {path.resolve() for path in given if given.isdisjoint(path.parents) and _is_there(path)}
    hidden = {(path, MASK) for path in masked if not seen.isdisjoint((path, *path.parents))}
    return sorted(shown | hidden, key=lambda each: (len(each[0].parts), each))


def _is_there(path: Path) -> bool:
    """Raises VaultChanged where somebody closed the way to it meanwhile."""
    try:
        return path.exists()
    except (OSError, RuntimeError) as error:
        raise VaultChanged(CHANGED) from error


def _too_much(launch: Launch) -> str:
    return f"{launch.vault} has too many files that must be hidden ({len(launch.masked)})."


def shows(named: list[tuple[Path, int]], place: Path) -> int:
    """How a place, links resolved, is shown by the wall that shows these."""
    return next((how for path, how in reversed(named) if place.is_relative_to(path)), MASK)


def settings_held(named: list[tuple[Path, int]]) -> frozenset[str]:
    """The settings of repositories that it shows read-only, and that git could have written otherwise."""
    return frozenset(
        str(path) for path, how in named if how == READ_ONLY and path.parts[-2:] == (".git", "config")
    )


def _placed(path: Path, launch: Launch) -> Path:
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        kind = VaultChanged if launch.vault in path.parents else CannotConfine
        raise kind(f"{path} is not there.") from error
    if real in AROUND:
        raise CannotConfine(f"{path} holds parts of the system: an agent behind a wall cannot be given it.")
    return real


def _mount(path: Path, how: int) -> list[str]:
    if how == MASK:
        return ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", "/dev/null", str(path)]
    return ["--bind" if how == READ_WRITE else "--ro-bind", str(path), str(path)]


def _links(given: Iterable[Path], shown: list[Path]) -> list[str]:
    """The links through which paths were given: these names may stand in the environment or the arguments."""
    arguments, there = list[str](), [*shown, *SYSTEM]
    for path in sorted({Path(os.path.normpath(path)) for path in given}, key=lambda each: len(each.parts)):
        if path.resolve() != path and not any(path.is_relative_to(seen) for seen in there):
            arguments += ["--symlink", str(path.resolve()), str(path)]
            there.append(path)
    return arguments

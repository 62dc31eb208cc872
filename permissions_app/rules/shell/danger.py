"""Paths that no command may destroy, and devices that none may write."""

import os
import re
from collections.abc import Sequence

from permissions_app.rules.ground import Ground
from permissions_app.rules.paths import Place, is_below

BECOME_ROOT = frozenset(
    {
        *("sudo", "sudoedit", "sudo-rs", "doas", "dzdo", "su", "pkexec", "run0", "gosu"),
        *("su-exec", "please", "gksu", "gksudo", "kdesudo", "super", "ssu", "calife", "s6-setuidgid"),
    }
)
_STOP = frozenset({"reboot", "shutdown", "halt", "poweroff", "telinit", "init", "killall5", "kexec"})
_SYSTEMD_STOPS = frozenset(
    {"reboot", "soft-reboot", "poweroff", "halt", "kexec", "rescue", "emergency", "isolate"}
)
_ALL_PROCESSES = "-1"  # to `kill`, but in its first word: that is a signal

_SYSTEM = re.compile(
    r"(/private)?/(bin|boot|dev|etc|lib|lib32|lib64|libx32|proc|sbin|sys|System|"
    r"usr(?!/local/[^/]+/)|var/(?:lib|log|cache|spool|backups|mail))(/.*)?",
    re.DOTALL,
)
_WHOLE = re.compile(
    r"/|/(private|var|opt|srv|run|mnt|media|tmp|root|Library|Applications|home|Users|snap|nix)"
    r"|/(home|Users|mnt|media)/[^/]+"
)
_HARMLESS_DEVICE = re.compile(
    r"/dev/(null|zero|full|tty|stdin|stdout|stderr|u?random|fd/\d+|pts/\d+|(tcp|udp)/[^/]+/[^/]+)"
)
_KERNEL_TRIGGER = "/proc/sysrq-trigger"  # reboots without a word, or kills all that runs
_SHARED_MEMORY = "/dev/shm/"  # noqa: S108  a folder of files
_ONLY_WILD = re.compile(r"[.*?\[\]!^{}]+")


def stops_computer(name: str, texts: Sequence[str]) -> bool:
    """Does it stop the computer, or all that runs? A person may want that."""
    if name == "kill":
        return _ALL_PROCESSES in texts[1:]
    return name in _STOP or (name == "systemctl" and not _SYSTEMD_STOPS.isdisjoint(texts))


def is_device(path: str) -> bool:
    """Of a path without `..`."""
    if path == _KERNEL_TRIGGER:
        return True
    if path.startswith(_SHARED_MEMORY):
        return False
    return path.startswith("/dev/") and not _HARMLESS_DEVICE.fullmatch(path)


def is_harmless_device(path: str) -> bool:
    return _HARMLESS_DEVICE.fullmatch(path) is not None


def is_system(path: str) -> bool:
    if path.startswith(_SHARED_MEMORY):
        return False
    return _SYSTEM.fullmatch(path) is not None or _WHOLE.fullmatch(path) is not None


def is_system_file(path: str) -> bool:
    """What `/usr/local` holds was put there by people."""
    below = _SYSTEM.fullmatch(path) is not None and not path.startswith((_SHARED_MEMORY, "/usr/local/"))
    return path == "/" or (below and not is_harmless_device(path))


def destroys(place: Place, ground: Ground, *, spares_vault: bool) -> bool:
    """Would removing this tree, or changing its rights, take the computer, a home or the vault along?"""
    return any(_is_precious(path, ground, spares_vault=spares_vault) for path in {*place.stops, *place.ends})


def without_wild_end(text: str) -> str:
    """`/etc/*` is `/etc`, for who removes it; `/etc/a*` is not."""
    while True:
        before, slash, name = text.rpartition("/")
        if not set("*?").intersection(name) or not _ONLY_WILD.fullmatch(name):
            return text
        text = before or slash or "."
        if text in {"/", "."}:
            return text


def _is_precious(path: str, ground: Ground, *, spares_vault: bool) -> bool:
    if is_system(path) or path == os.path.expanduser("~"):  # noqa: PTH111
        return True
    if any(is_below(home, path) for home in ground.home.stops):
        return True
    return not spares_vault and any(is_below(vault, path) for vault in ground.vault.stops)

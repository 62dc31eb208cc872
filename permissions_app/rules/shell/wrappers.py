"""Commands that only start another: how many of their words come before it."""

import re
from dataclasses import dataclass

from permissions_app.rules.shell.words import Word

_ASSIGNMENT = re.compile(r"\w+\+?=.*", re.DOTALL)


@dataclass(frozen=True)
class Wrapper:
    takes: frozenset[str] = frozenset()  # options whose value is the next word
    before: int = 0  # words before the command that are no options
    transparent: bool = False  # a pattern for the command inside holds for it
    assigns: bool = False
    alone: frozenset[str] = frozenset()  # options that make it ask about commands instead of starting one


def _wrapper(takes: str = "", before: int = 0, *, transparent: bool = False, alone: str = "") -> Wrapper:
    return Wrapper(frozenset(takes.split()), before, transparent, alone=frozenset(alone.split()))


WRAPPERS = {
    "env": Wrapper(frozenset({"-u", "--unset", "-C", "--chdir", "-P"}), assigns=True),
    "nohup": _wrapper(transparent=True),
    "time": _wrapper("-f --format -o --output", transparent=True),
    "timeout": _wrapper("-k --kill-after -s --signal", before=1, transparent=True),
    "gtimeout": _wrapper("-k --kill-after -s --signal", before=1, transparent=True),
    "nice": _wrapper("-n --adjustment", transparent=True),
    "ionice": _wrapper("-c --class -n --classdata", transparent=True),
    "stdbuf": _wrapper("-i -o -e --input --output --error", transparent=True),
    "setsid": _wrapper(),
    "exec": _wrapper("-a"),
    "command": _wrapper(alone="-v -V -pv -pV"),
    "builtin": _wrapper(),
    "coproc": _wrapper(),
    "chrt": _wrapper(before=1),
    "taskset": _wrapper(before=1),
    "flock": _wrapper("-w --timeout -E", before=1),
    "chroot": _wrapper(before=1),
    "unshare": _wrapper(),
    "nsenter": _wrapper("-t --target"),
    "setpriv": _wrapper(),
    "prlimit": _wrapper(),
    "busybox": _wrapper(),
    "toybox": _wrapper(),
    "strace": _wrapper("-o -e -p -s -u"),
    "ltrace": _wrapper("-o -e -p -s -u"),
    "caffeinate": _wrapper("-t -w"),
    "unbuffer": _wrapper(),
    "xvfb-run": _wrapper("-n -s -e -f -p -w"),
    "dbus-run-session": _wrapper(),
    "firejail": _wrapper(),
    "bwrap": _wrapper(),
    "-": _wrapper(),
}
_REST = frozenset(
    {"coproc", "firejail", "bwrap", "unshare", "nsenter", "setpriv", "prlimit", "strace", "ltrace"}
)


def inside(wrapper: Wrapper, words: list[Word]) -> tuple[list[Word], list[str]]:
    """The words of the command that it starts, and the options that it was given."""
    rest: list[Word] = words[1:]
    options: list[str] = []
    before = wrapper.before
    while rest:
        text = rest[0].text
        if text == "--":
            return rest[1 + before :], options
        if wrapper.assigns and (_ASSIGNMENT.fullmatch(text) or text == "-"):
            rest = rest[1:]
        elif text.startswith("-") and len(text) > 1:
            options.append(text)
            rest = rest[2:] if text in wrapper.takes else rest[1:]
        elif before:
            before -= 1
            rest = rest[1:]
        else:
            break
    return rest, options


def is_unsure(name: str) -> bool:
    """Has it options that this table does not know?"""
    return name in _REST

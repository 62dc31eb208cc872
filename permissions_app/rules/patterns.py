"""Patterns: what people allowed a session, compared to what a call really touches.

A pattern never covers what it does not see: a path on the deny list or outside the vault, a control file, a
command that hides what it does.
"""

import re
import shlex
from functools import lru_cache

from permissions_app.rules.control_files import is_control_file
from permissions_app.rules.deny_list import what_is_denied
from permissions_app.rules.ground import Ground
from permissions_app.rules.hosts import host_of
from permissions_app.rules.paths import NotUnderstood, Place, is_below
from permissions_app.rules.prefixes import ANY_COMMAND, is_too_free
from permissions_app.rules.request import Request
from permissions_app.rules.setting import Trust
from permissions_app.rules.shell import Command, Outcome
from permissions_app.rules.tools import ToolKind, text_argument

MAX_LENGTH = 1_000
MAX_STARS = 20

# They say, compare or look where they stand, and no more.
_HARMLESS = frozenset({"cd", "true", "false", ":", "echo", "printf", "pwd", "test", "[", "exit"})
_BASH = re.compile(r"(?:Bash\((?P<inner>.*)\)|(?P<plain>.*))", re.DOTALL)
_HOST = re.compile(r"https?://(?P<host>(\*\.)?[^/*\s]+)(/\*{0,2})?")


def covering(request: Request) -> str | None:
    """The patterns of the session that cover this call, or None."""
    patterns = request.setting.patterns
    if request.kind is ToolKind.READ:
        return _all_covered(request.places, patterns.read, request.ground)
    if request.kind is ToolKind.WRITE:
        return _all_covered(request.places, patterns.write, request.ground, writes=True)
    if request.kind is ToolKind.WEB:
        return covering_host(text_argument(request.call, "url"), patterns.read)
    return _covering_commands(request) if request.kind is ToolKind.SHELL else None


def covers_write(place: Place, patterns: tuple[str, ...], ground: Ground) -> bool:
    return _all_covered((place,), patterns, ground, writes=True) is not None


def covering_host(url: str, patterns: tuple[str, ...]) -> str | None:
    try:
        host = host_of(url)
    except NotUnderstood:
        return None
    for pattern in patterns:
        match = _HOST.fullmatch(pattern)
        if match is None:
            continue
        named = match["host"].lower()
        if host == named or (named.startswith("*.") and host.endswith(named[1:])):
            return pattern
    return None


def is_host(pattern: str) -> bool:
    return "://" in pattern


def is_host_pattern(pattern: str) -> bool:
    return len(pattern) <= MAX_LENGTH and _HOST.fullmatch(pattern) is not None


def prefix_of(pattern: str) -> tuple[str, ...]:
    """The words of a Bash pattern: `git status`, `git status:*` and `Bash(git status:*)` are one."""
    match = _BASH.fullmatch(pattern.strip())
    text = (match["inner"] if match and match["inner"] is not None else pattern).strip()
    text = re.sub(r"(:\*|\s+\*)$", "", text)
    try:
        return tuple(shlex.split(text))
    except ValueError:
        return ()


def uncovered(request: Request) -> list[Command]:
    """The commands of a line that no pattern covers yet."""
    prefixes = [prefix_of(pattern) for pattern in request.setting.patterns.bash]
    commands = request.reading.commands if request.reading else []
    return [
        command
        for command in commands
        if command.words[0] not in _HARMLESS and not any(_begins(command, prefix) for prefix in prefixes)
    ]


def _covering_commands(request: Request) -> str | None:
    reading = request.reading
    if reading is None or reading.outcome is not Outcome.WORDS or reading.indirect:
        return None
    if not all(_may_name(place, request) for place in reading.places):
        return None
    if not all(_may_write(place, request) for place in reading.writes) or uncovered(request):
        return None
    used = [
        pattern
        for pattern in request.setting.patterns.bash
        if any(_begins(command, prefix_of(pattern)) for command in reading.commands)
    ]
    return ", ".join(dict.fromkeys(used)) or None


def _may_write(place: Place, request: Request) -> bool:
    """A command that may run does not make a file writable that may not be."""
    if is_control_file(place, request.ground):
        return False
    if all(request.ground.in_scratch(end) for end in place.ends):
        return True
    if request.setting.trust is Trust.SANDBOXED:
        return False
    allowed = request.setting.agent_writes
    if allowed is not None and not covers_write(place, allowed, request.ground):
        return False
    return request.setting.trust_mode or covers_write(place, request.setting.patterns.write, request.ground)


def _begins(command: Command, prefix: tuple[str, ...]) -> bool:
    if prefix == (ANY_COMMAND,):
        return True
    return (
        not is_too_free(prefix) and command.words[: len(prefix)] == prefix and not is_too_free(command.words)
    )


def _all_covered(
    places: tuple[Place, ...], patterns: tuple[str, ...], ground: Ground, *, writes: bool = False
) -> str | None:
    used = []
    for place in places:
        if not _is_open(place, ground) or (writes and is_control_file(place, ground)):
            return None
        pattern = next((each for each in patterns if _covers_place(each, place, ground)), None)
        if pattern is None:
            return None
        used.append(pattern)
    return ", ".join(dict.fromkeys(used)) or None


def _may_name(place: Place, request: Request) -> bool:
    """`git log --output=CLAUDE.md` writes: which option writes is not known of every program."""
    return _is_open(place, request.ground) and not is_control_file(place, request.ground)


def _is_open(place: Place, ground: Ground) -> bool:
    return ground.is_inside(place) and what_is_denied(place, ground) is None


def _covers_place(pattern: str, place: Place, ground: Ground) -> bool:
    """Where it ends counts: by then links and `..` are resolved."""
    return all(
        any(
            is_below(end, root) and matches(pattern, end[len(root) :].strip("/"))
            for root in ground.vault.stops
        )
        for end in place.ends
    )


def matches(pattern: str, path: str) -> bool:
    """Compares by segment. A star does not stand for a dot at the front of a name.

    Between two stars the first place that fits is as good as any, so nothing is tried twice: the work grows
    with the path, whatever the pattern.
    """
    return bool(path) and _fits(_blocks(pattern), path.split("/"))


@lru_cache(maxsize=1_000)
def _blocks(pattern: str) -> tuple[tuple[str, ...], ...]:
    """The names between each two `**`; empty for what is no pattern of paths."""
    if not is_path_pattern(pattern):
        return ()
    names = [*pattern.rstrip("/").split("/"), *(["**", "*"] if pattern.endswith("/") else [])]
    if names[-1] == "**":
        names.append("*")  # at the end it is what lies in the folder, not the folder
    blocks: list[list[str]] = [[]]
    for name in names:
        if name == "**":
            blocks.append([])
        else:
            blocks[-1].append(name)
    return tuple(tuple(block) for block in (blocks[0], *filter(None, blocks[1:-1]), *blocks[1:][-1:]))


def _fits(blocks: tuple[tuple[str, ...], ...], names: list[str]) -> bool:
    if not blocks or sum(map(len, blocks)) > len(names):
        return False
    first, *between = blocks
    if not between:
        return len(first) == len(names) and _begins_with(names, 0, first)
    if not _begins_with(names, 0, first):
        return False
    *between, last = between
    here, end = len(first), len(names) - len(last)
    for block in between:
        found = next((at for at in range(here, end) if _begins_with(names, at, block)), None)
        if found is None or _has_dot(names[here:found]):
            return False
        here = found + len(block)
    return here <= end and _begins_with(names, end, last) and not _has_dot(names[here:end])


def _begins_with(names: list[str], at: int, block: tuple[str, ...]) -> bool:
    return at + len(block) <= len(names) and all(
        _names(pattern, names[at + i]) for i, pattern in enumerate(block)
    )


def _has_dot(names: list[str]) -> bool:
    return any(name.startswith(".") or not name for name in names)


def _names(pattern: str, name: str) -> bool:
    """One name, with stars for any part of it."""
    if "*" not in pattern:
        return pattern == name
    first, *between, last = pattern.split("*")
    if not name or (not first and name.startswith(".")):
        return False
    if not name.startswith(first) or not name.endswith(last) or len(name) < len(first) + len(last):
        return False
    here, end = len(first), len(name) - len(last)
    for piece in between:
        found = name.find(piece, here, end)
        if found < 0:
            return False
        here = found + len(piece)
    return True


def is_path_pattern(pattern: str) -> bool:
    names = pattern.rstrip("/").split("/")
    return (
        0 < len(pattern) <= MAX_LENGTH
        and pattern.count("*") <= MAX_STARS
        and not pattern.startswith(("/", "~"))
        and not {"", ".", ".."}.intersection(names)
        and not re.search(r"[\x00-\x1f\\\ud800-\udfff]", pattern)
        and not is_host(pattern)
    )

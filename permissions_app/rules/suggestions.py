"""What an answer may widen a session by, and whether what was allowed covers a call. Pure, like all rules."""

import os
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from permissions_app.rules import patterns, prefixes
from permissions_app.rules.control_files import is_control_file
from permissions_app.rules.decision import Verdict
from permissions_app.rules.deny_list import has_secret_name
from permissions_app.rules.exact import exactly
from permissions_app.rules.hosts import host_of, is_public
from permissions_app.rules.ladder import decide
from permissions_app.rules.paths import NotUnderstood, Place, is_below
from permissions_app.rules.request import Request, read
from permissions_app.rules.setting import Patterns, Setting
from permissions_app.rules.shell import Outcome
from permissions_app.rules.tools import ToolCall, ToolKind, kind_of, text_argument

__all__ = [
    "PatternScope",
    "PermissionType",
    "Preview",
    "Suggestion",
    "covers",
    "exactly",
    "permission_type",
    "preview",
    "subject",
    "suggested",
    "with_pattern",
]


class PatternScope(StrEnum):
    ONCE = "once"
    FILE = "file"
    FOLDER = "folder"
    RECURSIVE = "recursive"
    ROOT = "root"
    VAULT = "vault"
    COMMAND = "command"


class PermissionType(StrEnum):
    READ = "read"
    WRITE = "write"
    BASH = "bash"
    MCP = "mcp"
    OTHER = "other"


@dataclass(frozen=True)
class Suggestion:
    scope: PatternScope
    pattern: str  # empty for `once`
    label: str  # for a person: "the folder Plans/"


@dataclass(frozen=True)
class Preview:
    """What a pattern would have meant for calls of the past."""

    covered: tuple[ToolCall, ...]
    not_covered: tuple[ToolCall, ...]
    deny_listed: tuple[ToolCall, ...]  # denied whatever a person allows


_TYPES = {
    ToolKind.READ: PermissionType.READ,
    ToolKind.WEB: PermissionType.READ,  # a pattern for a host stands among those for reading
    ToolKind.WRITE: PermissionType.WRITE,
    ToolKind.SHELL: PermissionType.BASH,
    ToolKind.MCP: PermissionType.MCP,
}
_ONCE = Suggestion(PatternScope.ONCE, "", "once")
# Where a pattern is what would have let the call through. Other questions are asked each time.
_ASKED_FOR_A_PATTERN = frozenset({"write", "shell", "unnamed_host"})


def permission_type(call: ToolCall) -> PermissionType:
    return _TYPES.get(kind_of(call.name, call.input), PermissionType.OTHER)


def suggested(call: ToolCall, setting: Setting) -> tuple[Suggestion, ...]:
    """From the narrowest to the widest; the first is always `once`.

    Only what would let this very call through next time is offered.
    """
    if decide(call, setting).rule not in _ASKED_FOR_A_PATTERN:
        return (_ONCE,)
    request = read(call, setting)
    kind = permission_type(call)
    return (_ONCE, *(each for each in _wider(request) if _would_help(request, kind, each.pattern)))


def covers(call: ToolCall, setting: Setting) -> str | None:
    """Which of the setting's patterns covers the call."""
    try:
        return patterns.covering(read(call, setting))
    except NotUnderstood:
        return None


def with_pattern(allowed: Patterns, kind: PermissionType, pattern: str) -> Patterns:
    """The patterns with one more. Raises ValueError, with a sentence for a person, for one that is broken or
    too wide. Whether it covers a call is for `covers` to say."""
    pattern = pattern.strip()
    match kind:
        case PermissionType.READ if patterns.is_host(pattern):
            _refuse_host(pattern)
            return replace(allowed, read=_added(allowed.read, pattern))
        case PermissionType.READ:
            _refuse_path(pattern)
            return replace(allowed, read=_added(allowed.read, pattern))
        case PermissionType.WRITE:
            _refuse_path(pattern)
            return replace(allowed, write=_added(allowed.write, pattern))
        case PermissionType.BASH:
            _refuse_command(pattern)
            return replace(allowed, bash=_added(allowed.bash, pattern))
    raise ValueError("A tool of this kind can be allowed once, not by a pattern.")


def preview(pattern: str, calls: Iterable[ToolCall], setting: Setting) -> Preview:
    """What of these calls one pattern would cover by itself."""
    covered, not_covered, deny_listed = [], [], []
    alone = replace(setting, patterns=Patterns(read=(pattern,), write=(pattern,), bash=(pattern,)))
    for call in calls:
        decision = decide(call, setting)
        if decision.verdict is Verdict.DENY and decision.rule in {"deny_list", "dangerous"}:
            deny_listed.append(call)
        elif covers(call, alone) is not None:
            covered.append(call)
        else:
            not_covered.append(call)
    return Preview(tuple(covered), tuple(not_covered), tuple(deny_listed))


def subject(call: ToolCall, setting: Setting) -> str:
    """What parallel requests of one tool and folder have in common: they are one card."""
    try:
        request = read(call, setting)
        if request.kind is ToolKind.WEB:
            return f"{call.name} {host_of(text_argument(call, 'url'))}"
        folder = _folder_of(request)
    except NotUnderstood:
        return str(call.name)[:256]
    return f"{call.name} {folder}"[:1_000]


def _would_help(request: Request, kind: PermissionType, pattern: str) -> bool:
    try:
        widened = with_pattern(request.setting.patterns, kind, pattern)
    except ValueError:
        return False
    return decide(request.call, replace(request.setting, patterns=widened)).verdict is Verdict.ALLOW


def _wider(request: Request) -> Iterator[Suggestion]:
    if request.kind is ToolKind.WRITE and len({place.ends for place in request.places}) == 1:
        yield from _folders(request)
    elif request.kind is ToolKind.SHELL:
        yield from _commands(request)
    elif request.kind is ToolKind.WEB:
        url = text_argument(request.call, "url")
        if is_public(url):
            host = host_of(url)
            yield Suggestion(PatternScope.FOLDER, f"https://{host}/", f"pages of {host}")


def _folders(request: Request) -> Iterator[Suggestion]:
    path = _in_vault(request.places[0], request)
    if path is None or is_control_file(request.places[0], request.ground):
        return
    folder, _, _ = path.rpartition("/")
    root = path.partition("/")[0]
    yield Suggestion(PatternScope.FILE, path, f"this file: {path}")
    if folder:
        yield Suggestion(PatternScope.FOLDER, f"{folder}/*", f"the folder {folder}/")
        yield Suggestion(
            PatternScope.RECURSIVE, f"{folder}/**/*", f"the folder {folder}/ and all folders in it"
        )
    if folder and root != folder:
        yield Suggestion(PatternScope.ROOT, f"{root}/**/*", f"everything in {root}/")
    yield Suggestion(PatternScope.VAULT, "**/*", "the whole vault")


def _in_vault(place: Place, request: Request) -> str | None:
    """Its path from the vault's root, where it ends in one place only."""
    ends = {
        end[len(root) :].strip("/")
        for end in place.ends
        for root in request.ground.vault.stops
        if is_below(end, root)
    }
    path = ends.pop() if len(ends) == 1 else ""
    # A star in a name cannot be said: as a pattern it would stand for more.
    return path if path and "*" not in path else None


def _commands(request: Request) -> Iterator[Suggestion]:
    reading = request.reading
    if reading is None or reading.outcome is not Outcome.WORDS or reading.indirect:
        return
    prefixes = {_prefix(command.words) for command in patterns.uncovered(request)}
    if len(prefixes) == 1 and (prefix := prefixes.pop()):
        text = shlex.join(prefix)
        yield Suggestion(PatternScope.COMMAND, text, f"commands that begin with {text}")


def _prefix(words: tuple[str, ...]) -> tuple[str, ...]:
    return words[:2] if words[0] in prefixes.WITH_SUBCOMMANDS else words[:1]


def _added(before: tuple[str, ...], pattern: str) -> tuple[str, ...]:
    return before if pattern in before else (*before, pattern)


def _refuse_path(pattern: str) -> None:
    if not patterns.is_path_pattern(pattern):
        raise ValueError(
            "A pattern for files is a path in the vault, such as Plans/* or Plans/**/*: not empty, "
            "without a slash at the front, without . and .."
        )
    if has_secret_name(pattern):
        raise ValueError("This pattern names a file on the deny list, which no pattern can allow.")


def _refuse_host(pattern: str) -> None:
    host = pattern.split("://", 1)[1].split("/", 1)[0]
    try:
        known = patterns.is_host_pattern(pattern) and is_public(f"https://{host.removeprefix('*.')}/")
    except NotUnderstood:
        known = False
    if not known or (host.startswith("*.") and host.count(".") < 2):
        raise ValueError(
            "A pattern for pages names one host of the public web, such as https://example.org/."
        )


def _refuse_command(pattern: str) -> None:
    words = patterns.prefix_of(pattern)
    if len(pattern) > patterns.MAX_LENGTH or not words:
        raise ValueError("A pattern for commands is how they begin, such as git status.")
    if prefixes.is_too_free(words):
        raise ValueError(
            "Commands that begin like this can run anything, so they are allowed one by one. "
            "Name a command that does one thing, such as git status."
        )


def _folder_of(request: Request) -> str:
    if request.places:
        return os.path.dirname(request.places[0].ends[0])  # noqa: PTH120
    return request.ground.working_directory.ends[0] if request.kind is ToolKind.SHELL else ""

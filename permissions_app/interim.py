"""What the rules say of patterns, as little of it as asking needs, until they say it themselves."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from permissions_app.rules.setting import Patterns, Setting
from permissions_app.rules.suggestions import PermissionType, permission_type
from permissions_app.rules.tools import ToolCall, named_paths

LONGEST_PATTERN = 500


@dataclass(frozen=True)
class Preview:
    covered: tuple[ToolCall, ...]
    not_covered: tuple[ToolCall, ...]
    deny_listed: tuple[ToolCall, ...]


def with_pattern(patterns: Patterns, kind: PermissionType, pattern: str) -> Patterns:
    """ValueError, with a sentence, where the pattern is none, or where this kind of call has none."""
    if kind not in (PermissionType.READ, PermissionType.WRITE, PermissionType.BASH):
        raise ValueError("A tool of this kind can be allowed once, not by a pattern.")
    if not pattern or len(pattern) > LONGEST_PATTERN or ".." in pattern.split("/") or pattern[0] == "/":
        raise ValueError("A pattern is a path in the vault, such as Plans/* or Plans/**/*.")
    held: tuple[str, ...] = getattr(patterns, kind.value)
    return patterns if pattern in held else replace(patterns, **{kind.value: (*held, pattern)})


def covers(call: ToolCall, setting: Setting) -> str | None:
    """Which of the setting's patterns covers the call."""
    kind = permission_type(call)
    if kind is PermissionType.BASH:
        words = str(call.input.get("command", "")).split()
        return next(
            (each for each in setting.patterns.bash if words[: len(each.split())] == each.split()), None
        )
    if kind not in (PermissionType.READ, PermissionType.WRITE):
        return None
    patterns: tuple[str, ...] = getattr(setting.patterns, kind.value)
    paths = _paths(call, setting)
    return next((each for each in patterns if all(fnmatchcase(path, each) for path in paths)), None)


def exactly(call: ToolCall, setting: Setting) -> str:
    said = [call.name, call.input, str(setting.working_directory), _paths(call, setting)]
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()


def preview(pattern: str, calls: Iterable[ToolCall], setting: Setting) -> Preview:
    covered: list[ToolCall] = []
    not_covered: list[ToolCall] = []
    for call in calls:
        widened = replace(setting, patterns=with_pattern(Patterns(), permission_type(call), pattern))
        (covered if covers(call, widened) else not_covered).append(call)
    return Preview(tuple(covered), tuple(not_covered), ())


def subject(call: ToolCall, setting: Setting) -> str:
    paths = _paths(call, setting)
    return f"{call.name} {Path(paths[0]).parent}" if paths else call.name


def _paths(call: ToolCall, setting: Setting) -> list[str]:
    whole = [(setting.working_directory / path).resolve() for path in named_paths(call)]
    return [
        str(path.relative_to(setting.vault)) if path.is_relative_to(setting.vault) else str(path)
        for path in whole
    ]

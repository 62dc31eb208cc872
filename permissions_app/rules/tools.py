"""What each tool does, and which of its arguments name a path."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from permissions_app.rules.paths import NotUnderstood


class ToolKind(Enum):
    READ = auto()
    WRITE = auto()
    SHELL = auto()
    WEB = auto()
    FREE = auto()  # touches nothing that the gate guards; what it starts meets the gate itself
    QUESTION = auto()  # asking a person is what it does
    NOT_OFFERED = auto()  # would go around us
    MCP = auto()
    UNKNOWN = auto()


@dataclass(frozen=True)
class ToolCall:
    id: str
    name: str
    input: Mapping[str, Any]
    # What runs while it is asked about: told to people, and no part of what they decide.
    meanwhile: tuple[str, ...] = field(default=(), compare=False)


REACH = "Reach"  # no tool of the CLI: what its programs do, as the egress door asks about it
MEANWHILE = "while"  # in the input of a request, as people and the API are shown it
READS_STRANGERS = frozenset({"WebFetch", "WebSearch"})  # of what they bring nobody knows who wrote it

_KINDS = {
    ToolKind.READ: ("Read", "NotebookRead", "Glob", "Grep", "LS"),
    ToolKind.WRITE: ("Write", "Edit", "MultiEdit", "NotebookEdit"),
    ToolKind.SHELL: ("Bash",),
    ToolKind.WEB: ("WebFetch", REACH),
    ToolKind.FREE: (
        *("Task", "Agent", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "TodoWrite"),
        *("BashOutput", "KillShell", "KillBash", "TaskOutput", "TaskStop"),
        *("Skill", "ToolSearch", "WebSearch"),
    ),
    ToolKind.QUESTION: ("AskUserQuestion", "ExitPlanMode"),
    ToolKind.NOT_OFFERED: (
        *("CronCreate", "CronDelete", "CronList", "ScheduleWakeup", "Monitor", "Workflow"),
        *("EnterWorktree", "ExitWorktree", "SendMessage", "ListAgents", "TeamCreate", "TeamDelete"),
        *("RemoteTrigger", "PushNotification", "Config"),
    ),
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names}

FILE_ARGUMENT = {
    "Read": "file_path",
    "Write": "file_path",
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "NotebookRead": "notebook_path",
    "NotebookEdit": "notebook_path",
}
SEARCHERS = frozenset({"Glob", "Grep", "LS"})  # without a path they look where the CLI stands
GLOB_ARGUMENT = {"Glob": "pattern", "Grep": "glob"}

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,256}")
_PATH_KEY = re.compile(r"(^|_)(path|file|filename|filepath|dir|directory|folder|cwd|source|destination)s?$")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_MAX_PATHS = 100


def kind_of(name: object, arguments: Mapping[str, Any]) -> ToolKind:
    if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
        raise NotUnderstood("the name of the tool is none that a tool can have")
    if name in {"Task", "Agent"} and arguments.get("isolation"):
        return ToolKind.NOT_OFFERED  # a sub-agent in a worktree, or on another machine
    if name.startswith("mcp__"):
        return ToolKind.MCP
    if name.startswith("Cron"):
        return ToolKind.NOT_OFFERED
    return _KIND_OF.get(name, ToolKind.UNKNOWN)


def server_of(name: str) -> str | None:
    """The MCP server of a tool, or None where the name can be read in two ways.

    `mcp__a__b__c` is tool `b__c` of server `a`, or `c` of `a__b`. Names of our servers have no `_`.
    """
    match = re.fullmatch(r"mcp__([^_]+)__([^_].*)", name)
    if match is None or "__" in match[2]:
        return None
    return match[1]


def named_paths(call: ToolCall) -> list[str]:
    """Every path in a call, whatever its argument is called. A file tool that names none is refused."""
    required = FILE_ARGUMENT.get(call.name)
    if required is not None:
        text_argument(call, required)
    paths = [text for text in _texts_under_path_keys(call.input) if text]
    if len(paths) > _MAX_PATHS:
        raise NotUnderstood("it names too many paths at once")
    return paths


def text_argument(call: ToolCall, key: str) -> str:
    value = call.input.get(key)
    if not isinstance(value, str) or not value:
        raise NotUnderstood(f"its argument {key} is missing or no text")
    if _NO_TEXT.search(value):
        raise NotUnderstood(f"its argument {key} holds characters that no program can be given")
    return value


def optional_text(call: ToolCall, key: str) -> str:
    value = call.input.get(key)
    if value is not None and not isinstance(value, str):
        raise NotUnderstood(f"its argument {key} is no text")
    return value or ""


def fixed_part(pattern: str) -> str:
    """The folders that a glob begins with, before its first wildcard: where it starts to look."""
    parts = pattern.split("/")
    wild = next((i for i, part in enumerate(parts) if set(part) & set("*?[{")), len(parts))
    if ".." in parts[wild:]:
        raise NotUnderstood("its pattern goes up again after a wildcard")
    return "/".join(parts[:wild]) or ("/" if pattern.startswith("/") else "")


def glob_pieces(pattern: str) -> list[str]:
    """The names that a glob asks for, braces opened. What it leaves out (`!`) it does not ask for."""
    asked = (word for word in re.split(r"[,\s]+", pattern) if not word.startswith("!"))
    return [piece for word in asked for piece in re.split(r"[/{}]+", word)]


def _texts_under_path_keys(arguments: Mapping[str, Any]) -> Iterator[str]:
    """A loop and not a recursion: a model may nest as deep as it likes."""
    waiting: list[tuple[object, bool]] = [(arguments, False)]
    while waiting:
        value, is_path = waiting.pop()
        if isinstance(value, str) and is_path:
            yield value
        elif isinstance(value, Mapping):
            waiting.extend((inner, _names_a_path(str(key))) for key, inner in value.items())
        elif isinstance(value, list):
            waiting.extend((inner, is_path) for inner in value)


def _names_a_path(key: str) -> bool:
    return _PATH_KEY.search(_CAMEL.sub("_", key).lower()) is not None

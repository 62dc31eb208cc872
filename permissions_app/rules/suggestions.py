"""What an answer may widen a session by, and whether what was allowed covers a call. Pure, like all rules."""

from dataclasses import dataclass
from enum import StrEnum

from permissions_app.rules.setting import Setting
from permissions_app.rules.tools import Kind, ToolCall, kind_of


class Scope(StrEnum):
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
    scope: Scope
    pattern: str  # empty for `once`
    label: str  # for a person: "the folder Plans/"


_TYPES = {
    Kind.READ: PermissionType.READ,
    Kind.WRITE: PermissionType.WRITE,
    Kind.SHELL: PermissionType.BASH,
    Kind.MCP: PermissionType.MCP,
}


def permission_type(call: ToolCall) -> PermissionType:
    return _TYPES.get(kind_of(call.name, call.input), PermissionType.OTHER)


def suggested(call: ToolCall, setting: Setting) -> tuple[Suggestion, ...]:
    """From the narrowest to the widest; the first is always `once`."""
    return (Suggestion(Scope.ONCE, "", "once"),)

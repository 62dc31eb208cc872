"""The ladder: the first rung that answers decides. Every call gets an answer, whatever a model sends."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from permissions_app.rules import shell
from permissions_app.rules.control_files import is_control_file
from permissions_app.rules.decision import Decision, allow, ask, deny
from permissions_app.rules.deny_list import has_secret_name, what_is_denied
from permissions_app.rules.ground import Ground, ground_of
from permissions_app.rules.hosts import is_public
from permissions_app.rules.paths import NotUnderstood, Place, find, refuse_unclear
from permissions_app.rules.setting import Setting, Trust
from permissions_app.rules.tools import (
    GLOB_ARGUMENT,
    SEARCHERS,
    Kind,
    ToolCall,
    fixed_part,
    glob_pieces,
    kind_of,
    named_paths,
    optional_text,
    server_of,
    text_argument,
)

__all__ = ["ToolCall", "decide"]


@dataclass(frozen=True)
class _Request:
    """A call, read: what it does, and where."""

    call: ToolCall
    kind: Kind
    places: tuple[Place, ...]
    glob: str
    ground: Ground
    setting: Setting


def decide(call: ToolCall, setting: Setting) -> Decision:
    if setting.trust is Trust.FULL and not setting.operator:
        return deny(
            "not_operator", "Only an operator's session may run at full trust. Choose a lower trust level."
        )
    try:
        request = _read(call, setting)
        return next(answer for rung in _LADDER if (answer := rung(request)))
    except NotUnderstood as problem:
        return deny(
            "not_understood", f"This call was refused because it cannot be read with certainty: {problem}."
        )


def _read(call: ToolCall, setting: Setting) -> _Request:
    _refuse_unless_mapping(call.input)
    kind = kind_of(call.name, call.input)
    ground = ground_of(setting)
    glob = optional_text(call, GLOB_ARGUMENT[call.name]) if call.name in GLOB_ARGUMENT else ""
    refuse_unclear(glob)
    return _Request(call, kind, tuple(_places(call, glob, ground)), glob, ground, setting)


def _refuse_unless_mapping(value: object) -> None:
    if not isinstance(value, Mapping):
        raise NotUnderstood("its input is no object")


def _places(call: ToolCall, glob: str, ground: Ground) -> Iterator[Place]:
    start = ground.working_directory.stops[0]
    yield from (find(path, start) for path in named_paths(call))
    if call.name in SEARCHERS:
        folder = find(optional_text(call, "path"), start)
        yield folder
        if call.name == "Glob":
            text_argument(call, "pattern")
            yield find(fixed_part(glob), folder.stops[0])


def _deny_list(request: _Request) -> Decision | None:
    found = next((what for place in request.places if (what := what_is_denied(place, request.ground))), None)
    if found is None and any(has_secret_name(piece) for piece in glob_pieces(request.glob)):
        found = "a file that usually holds secrets"
    if found is None:
        return None
    return deny(
        "deny_list",
        f"This path is on the deny list: {found}. "
        "No trust level lifts it; only who runs the server can change the list.",
    )


def _not_offered(request: _Request) -> Decision | None:
    if request.kind is not Kind.NOT_OFFERED:
        return None
    return deny(
        "not_offered",
        "Parachute does not offer this tool, because it would go around its schedules, folders and agents.",
    )


def _trust_level(request: _Request) -> Decision | None:
    if request.setting.trust is Trust.FULL or not _is_file_tool(request):
        return None
    if not all(request.ground.is_inside(place) for place in request.places):
        return deny(
            "outside_vault",
            "This path leads outside the vault. Below full trust a session stays in its vault and its "
            "scratch folder; an operator may start one at full trust.",
        )
    if not request.setting.behind_wall and any(
        request.ground.crosses_link(place) for place in request.places
    ):
        return deny(
            "link",
            "This path goes through a link, which could be pointed elsewhere before it is opened. "
            "Name the file itself; links work where a wall stands.",
        )
    return None


def _control_file(request: _Request) -> Decision | None:
    if request.kind is not Kind.WRITE or not any(is_control_file(p, request.ground) for p in request.places):
        return None
    return ask(
        "control_file",
        "This file steers agents, editors or git, so a person decides about each change to it.",
    )


def _read_only_box(request: _Request) -> Decision | None:
    if request.setting.trust is not Trust.SANDBOXED or request.kind is not Kind.WRITE:
        return None
    if all(request.ground.in_scratch(end) for place in request.places for end in place.ends):
        return None
    return deny(
        "read_only_box",
        "This session runs in a read-only box: it may write in its scratch folder only. "
        "A person may start one with another trust level.",
    )


def _what_it_does(request: _Request) -> Decision:
    return _ANSWERS[request.kind](request)


def _shell(request: _Request) -> Decision:
    command = text_argument(request.call, "command")
    if request.setting.behind_wall:
        return allow("behind_wall", "A wall of the operating system stands around this command.")
    if request.setting.trust is Trust.FULL:
        return shell.judge(command, request.ground)
    return ask("shell", "No wall stands around this session, so a person decides about each command.")


def _web(request: _Request) -> Decision:
    if is_public(text_argument(request.call, "url")):
        return allow("public_host", "Pages of the public web may be fetched.")
    return deny(
        "private_host",
        "This address is not on the public web. Agents fetch nothing from this computer or its network.",
    )


def _mcp(request: _Request) -> Decision:
    if server_of(request.call.name) in request.setting.own_servers:
        return allow("own_server", "This tool is Parachute's own.")
    return ask(
        "foreign_server", "This tool belongs to a server that is not Parachute's own, so a person decides."
    )


def _always(decision: Decision) -> Callable[[_Request], Decision]:
    return lambda request: decision


_ANSWERS: dict[Kind, Callable[[_Request], Decision]] = {
    Kind.READ: _always(allow("reading", "Reading is allowed here.")),
    Kind.WRITE: _always(allow("writing", "Writing is allowed here.")),
    Kind.SHELL: _shell,
    Kind.WEB: _web,
    Kind.FREE: _always(allow("always_allowed", "This tool is always allowed.")),
    Kind.QUESTION: _always(ask("question", "This tool asks a person.")),
    Kind.MCP: _mcp,
    Kind.UNKNOWN: _always(ask("unknown_tool", "Parachute does not know this tool, so a person decides.")),
}

_LADDER: tuple[Callable[[_Request], Decision | None], ...] = (
    _deny_list,
    _not_offered,
    _trust_level,
    _control_file,
    _read_only_box,
    _what_it_does,
)


def _is_file_tool(request: _Request) -> bool:
    return request.kind in {Kind.READ, Kind.WRITE}

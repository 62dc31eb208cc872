"""The ladder: the first rung that answers decides. Every call gets an answer, whatever a model sends."""

from collections.abc import Callable

from permissions_app.rules import patterns
from permissions_app.rules.control_files import is_control_file
from permissions_app.rules.decision import Decision, allow, ask, deny
from permissions_app.rules.deny_list import has_secret_name, what_is_denied
from permissions_app.rules.hosts import host_of, is_public
from permissions_app.rules.paths import NotUnderstood
from permissions_app.rules.request import Request, read
from permissions_app.rules.setting import Setting, Trust
from permissions_app.rules.shell import Outcome
from permissions_app.rules.shell.danger import is_system_file
from permissions_app.rules.tools import ToolCall, ToolKind, glob_pieces, server_of, text_argument

__all__ = ["ToolCall", "decide"]


def decide(call: ToolCall, setting: Setting) -> Decision:
    if setting.trust is Trust.FULL and not setting.operator:
        return deny(
            "not_operator", "Only an operator's session may run at full trust. Choose a lower trust level."
        )
    try:
        request = read(call, setting)
        return next(answer for rung in _LADDER if (answer := rung(request)))
    except NotUnderstood as problem:
        return deny(
            "not_understood", f"This call was refused because it cannot be read with certainty: {problem}."
        )


_OPENS = (
    "This command opens a path on the deny list, or names one where a file is opened: such files usually "
    "hold secrets. No trust level lifts it. A person may run the command themselves; only who runs the "
    "server can change the list."
)
_WRITES = (
    "This command writes a file on the deny list: such files usually hold secrets, so agents neither read "
    "nor make them. No trust level lifts it. Tell a person what belongs in it: they may run the command "
    "themselves. Only who runs the server can change the list."
)


def _deny_list(request: Request) -> Decision | None:
    if request.reading and request.reading.outcome is Outcome.SECRET:
        writes = any(what_is_denied(place, request.ground) for place in request.writes)
        return deny("deny_list", _WRITES if writes else _OPENS)
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


def _dangerous(request: Request) -> Decision | None:
    if request.reading is None or request.reading.outcome is not Outcome.DANGEROUS:
        return None
    return deny(
        "dangerous",
        "This command can destroy the computer or take it over. No trust level allows it; "
        "a person may run it.",
    )


def _not_offered(request: Request) -> Decision | None:
    if request.kind is not ToolKind.NOT_OFFERED:
        return None
    return deny(
        "not_offered",
        "Parachute does not offer this tool, because it would go around its schedules, folders and agents.",
    )


def _trust_level(request: Request) -> Decision | None:
    if request.setting.trust is Trust.FULL or not request.is_file_tool:
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


def _control_file(request: Request) -> Decision | None:
    """In Bash behind a wall it is the wall that shows them read-only."""
    if request.reading and not request.runs_freely:
        return _git_settings(request)
    if not any(is_control_file(place, request.ground) for place in request.writes):
        return None
    return ask(
        "control_file",
        "This file steers agents, editors or git, so a person decides about each change to it.",
    )


def _git_settings(request: Request) -> Decision | None:
    """The wall would end such a command with words that nobody understands."""
    changes = request.held_settings
    if not changes:
        return None
    if any(change.by == "init" for change in changes):
        return deny(
            "control_file",
            "There is a repository here already. git init would write its settings anew, and .git/config is "
            "read-only in here. Go on without it.",
        )
    if not all(change.edits for change in changes):
        return deny(
            "control_file",
            "This would change settings of git in .git/config, which is read-only in here because git can "
            "start programs by it. Parachute sets names, addresses of remotes, upstreams and the like "
            "once a person allows it, and not this. A person may run the command themselves.",
        )
    if not request.is_only_settings:
        return deny(
            "control_file",
            "This line would change settings of git in .git/config, which is read-only in here. Give the git "
            "command that changes them by itself, with its words written out: then a person is asked, and "
            "Parachute makes the change. Leave it out of other lines.",
        )
    return ask(
        "control_file",
        "This changes settings of git in .git/config, so a person decides. Parachute makes the change.",
    )


def _read_only_box(request: Request) -> Decision | None:
    if request.setting.trust is not Trust.SANDBOXED or request.kind is not ToolKind.WRITE:
        return None
    if all(request.ground.in_scratch(end) for place in request.places for end in place.ends):
        return None
    return deny(
        "read_only_box",
        "This session runs in a read-only box: it may write in its scratch folder only. "
        "A person may start one with another trust level.",
    )


def _what_it_does(request: Request) -> Decision:
    return _ANSWERS[request.kind](request)


def _read(request: Request) -> Decision:
    """Below full trust an earlier rung has kept it in the vault, and reading the vault is always allowed."""
    if all(request.ground.is_inside(place) for place in request.places) or request.setting.trust_mode:
        return allow("reading", "Reading is allowed here.")
    return ask("reading_outside", "This path is outside the vault, so a person decides about reading it.")


def _write(request: Request) -> Decision:
    if all(request.ground.in_scratch(end) for place in request.places for end in place.ends):
        return allow("writing", "Writing is allowed here.")
    if _is_beyond_agent(request):
        return _ask_beyond_agent()
    if _concerns_computer(request):
        return _ask_about_computer()
    return _by_pattern_or_trust(request, allow("writing", "Writing is allowed here.")) or ask(
        "write", "This session does not act without asking, so a person decides about this change."
    )


def _shell(request: Request) -> Decision:
    if request.setting.behind_wall:
        return allow("behind_wall", "A wall of the operating system stands around this command.")
    if request.setting.trust is not Trust.FULL:
        return ask("shell", "No wall stands around this session, so a person decides about each command.")
    if request.reading is None or request.reading.outcome is not Outcome.WORDS:
        return ask(
            "unreadable_command", "What this command does cannot be read with certainty, so a person decides."
        )
    if _is_beyond_agent(request):
        return _ask_beyond_agent()
    if _concerns_computer(request):
        return _ask_about_computer()
    freely = allow("operator", "An operator's session at full trust runs commands that are not dangerous.")
    return _by_pattern_or_trust(request, freely) or ask(
        "shell", "This session does not act without asking, so a person decides about this command."
    )


def _is_beyond_agent(request: Request) -> bool:
    """Does it write where its agent's `write_permissions` do not lead?"""
    allowed, ground = request.setting.agent_writes, request.ground
    if allowed is None:
        return False
    return not all(
        all(ground.in_scratch(end) for end in place.ends) or patterns.covers_write(place, allowed, ground)
        for place in request.writes
    )


def _ask_beyond_agent() -> Decision:
    return ask(
        "agent_writes",
        "This agent's definition does not let it write here, so a person decides about this change.",
    )


def _concerns_computer(request: Request) -> bool:
    """Does it change a file of the system, or stop the computer? Without a wall nothing else holds it."""
    if request.reading and request.reading.stops_computer:
        return True
    # A vault may stand below a folder of the system.
    return any(
        is_system_file(path)
        for place in request.writes
        if not request.ground.is_inside(place)
        for path in {*place.stops, *place.ends}
    )


def _ask_about_computer() -> Decision:
    return ask(
        "whole_computer",
        "This changes a file of the system, or stops the computer or all that runs on it, so a person "
        "decides, whatever mode.",
    )


def _by_pattern_or_trust(request: Request, trusted: Decision) -> Decision | None:
    pattern = patterns.covering(request)
    if pattern is not None:
        return allow("pattern", f"A person allowed this: {pattern}", pattern)
    return trusted if request.setting.trust_mode else None


def _web(request: Request) -> Decision:
    url = text_argument(request.call, "url")
    if not is_public(url):
        return deny(
            "private_host",
            "This address is not on the public web. Agents fetch nothing from this computer or its network.",
        )
    setting = request.setting
    if not setting.has_read_strangers:
        return allow("public_host", "Pages of the public web may be fetched.")
    if host_of(url) in setting.server_hosts:
        return allow("accepted_server", "An owner accepted an MCP server at this host.")
    if host_of(url) in {name.lower().rstrip(".") for name in setting.named_hosts}:
        return allow("named_host", "A person named this host in the session.")
    pattern = patterns.covering_host(url, setting.patterns.read)
    if pattern is not None:
        return allow("pattern", f"A person allowed this: {pattern}", pattern)
    return ask(
        "unnamed_host",
        "This session has read text from the web or from a stranger, and nobody named this host in it. "
        "An address can carry away what the session knows, so a person decides.",
    )


def _mcp(request: Request) -> Decision:
    if server_of(request.call.name) in request.setting.own_servers:
        return allow("own_server", "This tool is Parachute's own.")
    if server_of(request.call.name) in request.setting.accepted_servers:
        return _of_accepted(request)
    return ask(
        "foreign_server", "This tool belongs to a server that is not Parachute's own, so a person decides."
    )


def _of_accepted(request: Request) -> Decision:
    name, setting = request.call.name, request.setting
    if server_of(name) in setting.asking_servers and name not in setting.allowed_tools:
        return ask(
            "first_use",
            "The server of this tool asks before each of its tools is first used in a chat, so a "
            "person decides. Once allowed, it is not asked about again in this chat.",
        )
    return allow("accepted_server", "An owner of this workspace accepted the server of this tool.")


def _always(decision: Decision) -> Callable[[Request], Decision]:
    return lambda request: decision


_ANSWERS: dict[ToolKind, Callable[[Request], Decision]] = {
    ToolKind.READ: _read,
    ToolKind.WRITE: _write,
    ToolKind.SHELL: _shell,
    ToolKind.WEB: _web,
    ToolKind.FREE: _always(allow("always_allowed", "This tool is always allowed.")),
    ToolKind.QUESTION: _always(ask("question", "This tool asks a person.")),
    ToolKind.MCP: _mcp,
    ToolKind.UNKNOWN: _always(ask("unknown_tool", "Parachute does not know this tool, so a person decides.")),
}

_LADDER: tuple[Callable[[Request], Decision | None], ...] = (
    _deny_list,
    _dangerous,
    _not_offered,
    _trust_level,
    _control_file,
    _read_only_box,
    _what_it_does,
)

"""Which servers a turn is given: those that its agent or its chat names, that an owner accepted, and that can
work at its trust level. What is left out is said, with what would help."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents_app.definitions.choosing import Cast, Warned, cast_of
from agents_app.definitions.definition import inline_name, inline_servers
from agents_app.sandboxes.base import Sandbox
from agents_app.tools.mcp import secrets
from agents_app.tools.mcp.entries import ALL, VAULT, Entry, entry
from agents_app.tools.mcp.given import GivenServer, given
from agents_app.tools.mcp.services import Server, chosen_in, servers_of
from sessions_app.access.models import TrustLevel, Workspace
from sessions_app.models import Session
from sessions_app.models.session import OF_BOTS

NOT_CONNECTED = "mcp_connection_failed"
NOT_ACCEPTED = gettext_lazy("No owner has accepted it as it is. One can, on the page Tools.")
NOT_ALLOWED = gettext_lazy(
    "Its agent's file asks for it, and no owner has accepted that. One can, on the page Agents."
)


@dataclass(frozen=True)
class Chosen:
    servers: tuple[GivenServer, ...] = ()
    hosts: frozenset[str] = frozenset()  # that an owner named by accepting a server there
    warned: tuple[Warned, ...] = ()


def chosen_for(session: Session, cast: Cast, sandbox: Sandbox) -> Chosen:
    wanted, warned = _wanted(session, cast)
    values = values_for(session.workspace, wanted)
    found: list[GivenServer] = []
    hosts: set[str] = set()
    for each in wanted:
        problem = each.problem or cannot_work(each, session.trust_level, sandbox) or missing(each, values)
        if problem:
            warned.append(_not_started(each.name, problem))
            continue
        found.append(given(each.name, each.resolved(values), asks=each.asks))
        hosts |= {each.host} if each.host else set()
    return Chosen(tuple(found), frozenset(hosts), tuple(warned))


def names_given(session: Session) -> set[str]:
    """Of the vault's own, as things stand: for people who choose."""
    return {each.name for each in _wanted(session, cast_of(session))[0]}


def values_for(workspace: Workspace, entries: list[Entry]) -> dict[str, str]:
    asked = {name for each in entries for name in each.all_variables}
    vault = str(Path(workspace.vault_path).resolve())
    return {**(secrets.opened(workspace, asked) if asked else {}), VAULT: vault}


def cannot_work(server: Entry, trust: str, sandbox: Sandbox) -> str:
    """Why not at this trust level, and what would help; empty where it can."""
    if server.is_process and not sandbox.is_wall and trust != TrustLevel.FULL:
        return _("Its process would run without a wall. Settings say what to install for one.")
    if server.is_process or trust == TrustLevel.FULL:
        return ""
    if trust == TrustLevel.SANDBOXED:
        return _("A read-only box has no network. It needs a chat that reaches “This folder”.")
    if server.is_local:
        return _("It is on this computer or beside it. It needs a chat with “Whole computer”.")
    return ""


def missing(server: Entry, values: Mapping[str, str]) -> str:
    gone = [name for name in server.variables if name not in values]
    said = _("The secret %(names)s is not there. An owner enters it on the page Tools.")
    return said % {"names": ", ".join(gone)} if gone else ""


def not_connected(servers: tuple[GivenServer, ...], states: Mapping[str, str]) -> Iterator[Warned]:
    """Of what a CLI has told when it was ready."""
    for each in servers:
        state = states.get(each.name, "missing")
        if state == "connected":
            continue
        how = _("did not answer within 10 seconds") if state == "pending" else _("could not be started")
        if not each.is_process:
            how = _("could not be reached (agents reach the ports 80, 443, 8080 and 8443)")
        said = _("It %(how)s. “Try it” on the page Tools says more.")
        yield _not_started(each.name, said % {"how": how})


def _wanted(session: Session, cast: Cast) -> tuple[list[Entry], list[Warned]]:
    listed, problem = servers_of(session.workspace)
    by_name = {each.name: each for each in listed}
    own = [entry(name, config) for name, config in inline_servers(cast.definition, cast.rights).items()]
    names, chosen = _named(cast, by_name, of_strangers=session.source in OF_BOTS), chosen_in(session)
    warned = [_not_started(name, str(NOT_ALLOWED)) for name in _waiting(cast) if name not in chosen]
    for name, on in chosen.items():
        names = [*names, name] if on else [each for each in names if each != name]
        own = own if on else [each for each in own if each.name != name]
    found = list(own)
    for name in dict.fromkeys(names):
        server = by_name.get(name)
        if any(each.name == name for each in own):
            continue  # the agent's own counts
        if server is None:
            warned.append(_not_started(name, problem or _("There is no such entry in .mcp.json.")))
        elif not server.is_accepted and not server.entry.problem:
            warned.append(_not_started(name, str(NOT_ACCEPTED)))
        else:
            found.append(server.entry)
    return found, warned


def _waiting(cast: Cast) -> list[str]:
    """What the agent's file asks for beyond its rights."""
    asked = [each for each in cast.definition.wanted.servers if each not in cast.rights.servers]
    return [] if ALL in cast.rights.servers else [inline_name(each) or each for each in asked]


def _named(cast: Cast, by_name: Mapping[str, Server], *, of_strangers: bool) -> list[str]:
    """What is on for all is not for the chats of bots: who writes there is a stranger, and a server acts for
    whoever gave it its secret."""
    servers = cast.rights.servers
    if ALL in servers:
        return [name for name, each in by_name.items() if each.is_accepted]
    is_said = cast.definition.fields.mcpServers is not None
    if servers or is_said or cast.is_replaced or of_strangers:
        return [each for each in servers if inline_name(each) is None]
    return [name for name, each in by_name.items() if each.is_on]


def _not_started(name: str, why: str) -> Warned:
    title = _("The servers are not there") if name == ALL else _("The server %(name)s is not there")
    return Warned(NOT_CONNECTED, title % {"name": name}, why)

"""Which entries count: those that an owner accepted as they are. The only writer of `KnownServer`.

What an owner adds here is accepted by that. What appears in the file by other ways waits; and so does an
entry that has changed since.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from agents_app.rights.owners import check_owns, record
from agents_app.tools.mcp import files
from agents_app.tools.mcp.entries import MASK, Entry, entry, problem_of_name
from agents_app.tools.mcp.models import KnownServer, SessionServer
from permissions_app.audit import Outcome
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.errors import Conflict, Invalid, NotFound
from sessions_app.models import Session

TOOL = "mcp-server"


@dataclass(frozen=True)
class Server:
    """An entry, and what people said of it."""

    entry: Entry
    known: KnownServer | None = None

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def is_accepted(self) -> bool:
        entry = self.entry
        return not entry.problem and self.known is not None and self.known.hash == entry.hash

    @property
    def is_on(self) -> bool:
        """For agents whose files say nothing of servers."""
        return self.is_accepted and self.known is not None and self.known.is_on

    @property
    def state(self) -> str:
        if self.entry.problem:
            return "wrong"
        return "accepted" if self.is_accepted else "changed" if self.known else "new"


def servers_of(workspace: Workspace) -> tuple[list[Server], str]:
    """As the file has them now, and what is wrong with the file as a whole."""
    listed = files.read(Path(workspace.vault_path))
    known = {row.name: row for row in KnownServer.objects.filter(workspace=workspace)}
    return [Server(each, known.get(each.name)) for each in listed.entries], listed.problem


def server_of(workspace: Workspace, name: str) -> Server:
    found = next((each for each in servers_of(workspace)[0] if each.name == name), None)
    if found is None:
        raise NotFound(_("There is no such server in .mcp.json."))
    return found


def save(caller: Caller, workspace: Workspace, name: str, config: dict[str, Any]) -> Server:
    """Writes the entry. Where it shows a mask, what stood there stays."""
    check_owns(caller, workspace)
    if problem := problem_of_name(name):
        raise Invalid.field("name", problem)
    before = files.read(Path(workspace.vault_path)).named(name)
    whole = _unmasked(config, before)
    made = entry(name, whole)
    if made.problem or made.config is None:
        raise Invalid.field("config", made.problem)
    kept = {key: value for key, value in whole.items() if key not in ("type", "transport")}
    with _writing():
        files.change(Path(workspace.vault_path), partial(_put_in, name, {"type": made.kind, **kept}))
    _accept(caller, workspace, made)
    return server_of(workspace, name)


def remove(caller: Caller, workspace: Workspace, name: str) -> None:
    check_owns(caller, workspace)
    server_of(workspace, name)
    with _writing():
        files.change(Path(workspace.vault_path), partial(_take_out, name))
    if any(each.name == name for each in servers_of(workspace)[0]):
        raise Conflict(_("Only a person can take it out of .mcp.json: it stands there in an unusual place."))
    KnownServer.objects.filter(workspace=workspace, name=name).delete()
    record(caller, workspace, TOOL, Outcome.REVOKED, {"name": name})


def accept(caller: Caller, workspace: Workspace, name: str, seen: str) -> Server:
    """`seen` is the hash of the entry that the person read: it may be another by now."""
    check_owns(caller, workspace)
    found = server_of(workspace, name)
    if found.entry.problem:
        raise Conflict(_("There is something wrong in this entry. Mend it first."))
    if seen and seen != found.entry.hash:
        raise Conflict(_("The entry is another by now. Read it again."))
    _accept(caller, workspace, found.entry)
    return server_of(workspace, name)


def switch(caller: Caller, workspace: Workspace, name: str, *, on: bool) -> Server:
    """For agents whose files say nothing of servers."""
    check_owns(caller, workspace)
    if not server_of(workspace, name).is_accepted:
        raise Conflict(_("An owner has to accept this entry first."))
    KnownServer.objects.filter(workspace=workspace, name=name).update(is_on=on)
    record(caller, workspace, TOOL, Outcome.GRANTED if on else Outcome.REVOKED, {"name": name, "on": on})
    return server_of(workspace, name)


def choose(session: Session, name: str, on: bool | None) -> None:
    """For one chat; None: as its agent has it. Its caller has looked at who asks."""
    if problem_of_name(name):
        raise NotFound(_("There is no such server in .mcp.json."))
    if on and not server_of(session.workspace, name).is_accepted:
        raise Conflict(_("An owner has to accept this entry first."))
    if on is None:
        SessionServer.objects.filter(session=session, name=name).delete()
    else:
        SessionServer.objects.update_or_create(session=session, name=name, defaults={"is_on": on})


def in_chat(session: Session) -> list[tuple[str, bool | None]]:
    """The servers that may be switched there, and how they are."""
    chosen = chosen_in(session)
    names = [each.name for each in servers_of(session.workspace)[0] if each.is_accepted]
    return [(name, chosen.get(name)) for name in dict.fromkeys([*names, *chosen])]


def chosen_in(session: Session) -> dict[str, bool]:
    return dict(SessionServer.objects.filter(session=session).values_list("name", "is_on"))


def remember(workspace: Workspace, tried: Entry, tools: list[dict[str, str]], problem: str) -> None:
    """What came of starting it, for the page."""
    rows = KnownServer.objects.filter(workspace=workspace, name=tried.name, hash=tried.hash)
    rows.update(tried_at=timezone.now(), tools=tools, problem=problem)


def _accept(caller: Caller, workspace: Workspace, accepted: Entry) -> None:
    fresh: dict[str, Any] = {
        "hash": accepted.hash,
        "accepted_at": timezone.now(),
        "accepted_by_id": caller.user_id,
        **{"tried_at": None, "tools": [], "problem": ""},
    }
    with transaction.atomic():
        KnownServer.objects.update_or_create(workspace=workspace, name=accepted.name, defaults=fresh)
        told = {"name": accepted.name, "hash": accepted.hash, "kind": accepted.kind, "what": accepted.what}
        record(caller, workspace, TOOL, Outcome.GRANTED, told)


def _put_in(name: str, config: dict[str, Any], servers: dict[str, Any]) -> None:
    servers[name] = config


def _take_out(name: str, servers: dict[str, Any]) -> None:
    servers.pop(name, None)


def _unmasked(config: dict[str, Any], before: Entry | None) -> dict[str, Any]:
    if before is None or before.config is None:
        return config
    old = before.config.model_dump()
    whole = dict(config)
    for kept in ("env", "headers"):
        given = whole.get(kept)
        if isinstance(given, dict):
            held = old.get(kept) or {}
            whole[kept] = {key: held.get(key, "") if value == MASK else value for key, value in given.items()}
    if whole.get("url") == before.masked().get("url"):
        whole["url"] = old.get("url")
    return whole


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except files.NotRead as problem:
        raise Conflict(_("Nothing was written. %(problem)s") % {"problem": problem}) from problem
    except files.ChangedMeanwhile as problem:
        raise Conflict(_("The file was changed meanwhile. Try again.")) from problem
    except OSError as error:
        said = _(".mcp.json cannot be written: %(reason)s.")
        raise Conflict(said % {"reason": error.strerror or error}) from error

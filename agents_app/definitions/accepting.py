"""What of a file counts where it speaks of rights. The only writer of `AgentRights`.

A file may always give rights up, and that counts when it is next read, for good: whoever writes them back
waits for a person. So an agent that edits its own file, or another's, gains nothing.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from agents_app.definitions.definition import Definition
from agents_app.definitions.rights import Rights
from agents_app.models import AgentRights
from agents_app.rights.owners import owns
from agents_app.signals import rights_accepted
from permissions_app import audit
from permissions_app.audit import PLATFORM, AuditKind, Entry, Outcome
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.errors import Conflict, Forbidden

TOOL = "agent-rights"
FOR_OPERATORS = "bash"  # behind a wall no command asks anyway, and below full trust without one each does


def counting(workspace: Workspace, definitions: Iterable[Definition]) -> dict[str, tuple[Rights, Any]]:
    """For each slug the rights that count, and when a person accepted some."""
    rows = {row.slug: row for row in AgentRights.objects.filter(workspace=workspace)}
    return {each.slug: _of_one(workspace, each, rows.get(each.slug)) for each in definitions if each.slug}


def held(workspace: Workspace, slug: str) -> Rights:
    """Of an agent whose file is gone, or cannot be read."""
    row = AgentRights.objects.filter(workspace=workspace, slug=slug).first()
    return Rights.of_json(row.accepted) if row else Rights()


def accept(caller: Caller, workspace: Workspace, definition: Definition, seen: str) -> None:
    """`seen` is the hash of the rights that the person read: the file may be another by now."""
    if not owns(caller, workspace):
        raise Forbidden(_("Only an owner of this workspace may accept what its agents ask for."))
    if not definition.is_usable:
        raise Conflict(_("There is something wrong in this file. Mend it first."))
    wanted = definition.wanted
    if seen and seen != wanted.hash:
        raise Conflict(_("The file asks for something else by now. Read it again."))
    before = held(workspace, definition.slug)
    if not caller.is_operator and FOR_OPERATORS in before.beyond(wanted):
        raise Forbidden(_("Commands that run without asking run on the whole computer: an operator accepts."))
    with transaction.atomic():
        AgentRights.objects.update_or_create(
            workspace=workspace,
            slug=definition.slug,
            defaults={
                "accepted": wanted.as_json(),
                "hash": wanted.hash,
                "accepted_at": timezone.now(),
                "accepted_by_id": caller.user_id,
            },
        )
        _record(caller, workspace, definition, before)
        rights_accepted.send(accept, workspace=workspace)


def accept_of_sample(workspace: Workspace, definition: Definition) -> None:
    """Of the sample notes, which are ours, before anybody was here: so that a first look shows what agents
    can do. Not that it runs by itself: that costs money, and is a person's to say."""
    wanted = replace(definition.wanted, schedule="")
    if AgentRights.objects.exists() or not definition.is_usable:
        return
    AgentRights.objects.create(
        workspace=workspace,
        slug=definition.slug,
        accepted=wanted.as_json(),
        hash=wanted.hash,
        accepted_at=timezone.now(),
    )
    _record(None, workspace, definition, Rights())


def _of_one(workspace: Workspace, definition: Definition, row: AgentRights | None) -> tuple[Rights, Any]:
    accepted, since = (Rights.of_json(row.accepted), row.accepted_at) if row else (Rights(), None)
    if not definition.is_usable or not definition.path:
        return accepted, since
    counts = accepted.narrowed(definition.wanted)
    is_shown = row is not None or counts == definition.wanted  # what waits has a row in the console
    if counts != accepted or not is_shown:
        _give_up(workspace, definition.slug, row, counts)
    return counts, since


def _give_up(workspace: Workspace, slug: str, row: AgentRights | None, counts: Rights) -> None:
    """Two who read it at once write the same; who is late to a click of a person writes nothing."""
    fresh = {"accepted": counts.as_json(), "hash": counts.hash}
    if row is not None:
        AgentRights.objects.filter(pk=row.pk, hash=row.hash).update(**fresh)
        return
    try:
        with transaction.atomic():
            AgentRights.objects.create(workspace=workspace, slug=slug, **fresh)
    except IntegrityError:
        return  # the other one was quicker, and the next who reads goes on from there


def _record(caller: Caller | None, workspace: Workspace, definition: Definition, before: Rights) -> None:
    wanted, old = definition.wanted.as_json(), before.as_json()
    entry = Entry(
        kind=AuditKind.GRANT,
        outcome=Outcome.GRANTED,
        who=caller.name if caller else PLATFORM,
        workspace_id=workspace.pk,
        tool=TOOL,
        arguments={
            "agent": definition.slug,
            "hash": definition.wanted.hash,
            "accepted": {name: wanted[name] for name in before.beyond(definition.wanted)},
            "before": {name: old[name] for name in before.beyond(definition.wanted)},
        },
    )
    audit.record_on_commit(entry)

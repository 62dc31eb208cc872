"""The only writers of grants."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from permissions_app import audit
from permissions_app.audit import PLATFORM, AuditKind, Entry, Outcome
from permissions_app.grants import rights
from permissions_app.models.grants import GrantScope, GrantType, PermissionGrant
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.errors import Invalid, NotFound


@dataclass(frozen=True)
class NewGrant:
    agent: str
    child_agent: str
    scope: GrantScope
    session_id: UUID | None = None
    grant_type: GrantType = GrantType.SPAWN

    def check(self) -> None:
        if self.agent == self.child_agent:
            raise Invalid.field(
                "details.childAgentId", _("An agent cannot start itself. Choose another one.")
            )
        if self.scope == GrantScope.PERSISTENT and self.session_id is not None:
            raise Invalid.field("sessionId", _("A persistent grant is for every session. Leave this out."))


def holds_spawn_grant(workspace: Workspace, agent: str, child: str, session_id: UUID | None) -> bool:
    """Whether this agent may start that one now, from this session. Read at every spawn: what was taken back
    counts at once."""
    held = PermissionGrant.objects.of(workspace.pk, agent, session_id)
    return held.filter(grant_type=GrantType.SPAWN, child_agent=child).exists()


def spawnable(workspace: Workspace, agent: str, session_id: UUID | None = None) -> list[str]:
    """The slugs of all agents that this one may start; without a session, those that it may always start."""
    held = PermissionGrant.objects.of(workspace.pk, agent, session_id).filter(grant_type=GrantType.SPAWN)
    return sorted(set(held.values_list("child_agent", flat=True)))


@transaction.atomic
def make_grant(caller: Caller, slug: str, wanted: NewGrant) -> tuple[PermissionGrant, bool]:
    """The grant, and whether it is new: a box that two people tick at once is one grant."""
    workspace = rights.workspace_of(caller, slug)
    rights.check(caller, workspace, wanted.scope)
    wanted.check()
    if wanted.scope == GrantScope.SESSION:
        rights.session_of(caller, workspace, wanted.agent, wanted.session_id)
    return given(caller, workspace, wanted)


def given(caller: Caller, workspace: Workspace, wanted: NewGrant) -> tuple[PermissionGrant, bool]:
    """For whoever has looked at the caller's rights. The database says that it is there once."""
    named = {
        "workspace": workspace,
        "agent": wanted.agent,
        "grant_type": wanted.grant_type,
        "child_agent": wanted.child_agent,
        "scope": wanted.scope,
        "session_id": wanted.session_id,
    }
    try:
        with transaction.atomic():
            made: PermissionGrant = PermissionGrant.objects.create(**named, granted_by_id=caller.user_id)
    except IntegrityError:
        there = PermissionGrant.objects.active().filter(**named).first()
        if there is None:
            raise
        return there, False
    _record(caller, made, Outcome.GRANTED)
    return made, True


@transaction.atomic
def revoke_grant(caller: Caller, slug: str, grant_id: UUID) -> None:
    """From the next spawn on. Sessions that were started by it go on."""
    workspace = rights.workspace_of(caller, slug)
    grant = PermissionGrant.objects.visible_to(caller).filter(workspace=workspace, pk=grant_id).first()
    if grant is None:
        raise NotFound
    rights.check(caller, workspace, grant.scope)
    still = PermissionGrant.objects.active().filter(pk=grant.pk)
    if still.update(revoked_at=timezone.now(), revoked_by_id=caller.user_id) != 1:
        raise NotFound(_("This grant is taken back already."))
    _record(caller, grant, Outcome.REVOKED)


@transaction.atomic
def revoke_of_the_gone(workspace: Workspace, there: Collection[str]) -> int:
    """Those that name an agent which is not there any more, on either side. One that comes back is granted
    anew."""
    active = PermissionGrant.objects.active().filter(workspace=workspace)
    dangling = [grant for grant in active if grant.agent not in there or grant.child_agent not in there]
    for grant in dangling:
        PermissionGrant.objects.active().filter(pk=grant.pk).update(revoked_at=timezone.now())
        _record(None, grant, Outcome.REVOKED)
    return len(dangling)


def _record(caller: Caller | None, grant: PermissionGrant, outcome: Outcome) -> None:
    entry = Entry(
        kind=AuditKind.GRANT,
        outcome=outcome,
        who=caller.name if caller else PLATFORM,
        workspace_id=grant.workspace_id,
        session_id=grant.session_id,
        tool=f"grant:{grant.grant_type}",
        arguments={"agent": grant.agent, **grant.details, "scope": str(grant.scope), "grant": str(grant.pk)},
    )
    audit.record_on_commit(entry)

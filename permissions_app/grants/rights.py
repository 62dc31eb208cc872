"""Who may decide about grants: nobody gives what they could not do themselves.

What an agent may always do is the business of the workspace's owners. What it may do in one session is for
whoever may write there, since they could start the child themselves. Who only looks decides nothing.
"""

from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from permissions_app.models.grants import GrantScope
from sessions_app.access.caller import MAY_WRITE, Caller
from sessions_app.access.models import Role, Workspace
from sessions_app.errors import Forbidden, Invalid, NotFound
from sessions_app.models import Session


def workspace_of(caller: Caller, slug: str) -> Workspace:
    workspace = Workspace.objects.visible_to(caller).filter(slug=slug).first()
    if workspace is None:
        raise NotFound
    return workspace  # type: ignore[no-any-return]


def check(caller: Caller, workspace: Workspace, scope: str) -> None:
    """Raises Forbidden."""
    if _where(caller, scope).filter(pk=workspace.pk).exists():
        return
    if scope == GrantScope.PERSISTENT:
        raise Forbidden(_("Only an owner of this workspace may decide what its agents may always do."))
    raise Forbidden(_("You may read here, and decide nothing. An owner of the workspace can change that."))


def somewhere(caller: Caller) -> list[GrantScope]:
    """What the caller may decide about in one workspace at least."""
    return [scope for scope in GrantScope if _where(caller, scope).exists()]


def _where(caller: Caller, scope: str) -> QuerySet[Workspace]:
    roles = (Role.OWNER,) if scope == GrantScope.PERSISTENT else MAY_WRITE
    return Workspace.objects.filter(caller.within(roles=roles))


def session_of(caller: Caller, workspace: Workspace, agent: str, session_id: UUID | None) -> Session:
    """The session that a grant is for; it must be one of the agent's."""
    if session_id is None:
        raise Invalid.field(
            "sessionId", _("Name the session that this is for, or make the grant persistent.")
        )
    session = Session.objects.visible_to(caller).filter(pk=session_id, workspace=workspace).first()
    if session is None or session.agent_slug != agent:
        raise Invalid.field("sessionId", _("This agent has no such session in this workspace."))
    return session  # type: ignore[no-any-return]

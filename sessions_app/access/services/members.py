"""Who is in a workspace. Only its owners say so, and one of them always stays."""

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from sessions_app.access.caller import Caller
from sessions_app.access.models import Membership, Role, Workspace
from sessions_app.errors import Conflict, Forbidden, Invalid, NotFound


@transaction.atomic
def add_member(caller: Caller, slug: str, name: str, role: Role) -> Membership:
    workspace = _owned(caller, slug)
    user = User.objects.filter(username=name.strip(), is_active=True).first()
    if user is None:
        raise Invalid.field("user", _("Nobody here has this name. An operator adds people in the admin."))
    membership, made = Membership.objects.get_or_create(
        workspace=workspace, user=user, defaults={"role": role}
    )
    if not made:
        raise Conflict(_("They are a member already. Change their role in the list."))
    return membership


@transaction.atomic
def change_role(caller: Caller, slug: str, user_id: int, role: Role) -> None:
    workspace = _owned(caller, slug)
    if role != Role.OWNER:
        _keep_an_owner(workspace, besides=user_id)
    if not workspace.memberships.filter(user_id=user_id).update(role=role):
        raise NotFound


@transaction.atomic
def remove_member(caller: Caller, slug: str, user_id: int) -> None:
    """They see nothing of it from now on; a stream that they have open ends within a minute."""
    workspace = _owned(caller, slug)
    _keep_an_owner(workspace, besides=user_id)
    if not workspace.memberships.filter(user_id=user_id).delete()[0]:
        raise NotFound


def _owned(caller: Caller, slug: str) -> Workspace:
    """Locked until the transaction ends: of two owners who put each other out at once, one must stay.

    That holds across two rows, which no conditional UPDATE of one of them sees. The role is read after the
    lock was got, or somebody put out a moment ago would still act.
    """
    workspace = Workspace.objects.select_for_update(of=("self",)).filter(slug=slug).first()
    if workspace is None or not Workspace.objects.visible_to(caller).filter(pk=workspace.pk).exists():
        raise NotFound
    if not Workspace.objects.filter(caller.within(roles=(Role.OWNER,)), pk=workspace.pk).exists():
        raise Forbidden(_("Only an owner of this workspace may change who is in it."))
    return workspace  # type: ignore[no-any-return]


def _keep_an_owner(workspace: Workspace, *, besides: int) -> None:
    """Somebody who was switched off can not act, and so is no owner who would be left."""
    others = workspace.memberships.filter(role=Role.OWNER, user__is_active=True).exclude(user_id=besides)
    if not others.exists():
        raise Conflict(_("This is the last owner. Make somebody else an owner first."))

"""Who is in a workspace. Only its owners say so, and one of them always stays."""

from datetime import timedelta

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from sessions_app.access.caller import Caller
from sessions_app.access.models import ApiKey, Membership, Role, SignInLink, Workspace
from sessions_app.access.services.links import make_sign_in_link
from sessions_app.errors import Conflict, Forbidden, Invalid, NotFound

INVITATION_LIVES = timedelta(days=3)


@transaction.atomic
def add_member(caller: Caller, slug: str, name: str, role: Role) -> Membership:
    workspace = owned(caller, slug)
    user = User.objects.filter(username=name.strip(), is_active=True).first()
    if user is None:
        raise Invalid.field(
            "user", _("Nobody here has this name. Invite them: they get a link of their own.")
        )
    membership, made = Membership.objects.get_or_create(
        workspace=workspace, user=user, defaults={"role": role}
    )
    if not made:
        raise Conflict(_("They are a member already. Change their role in the list."))
    return membership


@transaction.atomic
def invite(caller: Caller, slug: str, name: str, role: Role) -> tuple[User, str]:
    """Somebody who has no account here: the account, and the token of the link that signs them in once. For
    whoever has been here nobody else gets a link: it would be a way into what is theirs."""
    workspace = owned(caller, slug)
    name = name.strip()
    user = User.objects.filter(username=name).first()
    if user is None:
        user = User(username=name)
        user.set_unusable_password()
        _check_name(user)
        user.save()
    elif not _has_never_come(caller, user):
        raise Conflict(_("Somebody here has this name already. Add them, or choose another name."))
    Membership.objects.update_or_create(workspace=workspace, user=user, defaults={"role": role})
    SignInLink.objects.filter(user=user, used_at=None).update(used_at=timezone.now())  # the one before
    return user, make_sign_in_link(user, lives=INVITATION_LIVES)


def _has_never_come(caller: Caller, user: User) -> bool:
    """Invited by an owner of the same workspaces, and not in yet: their link may have got lost."""
    is_new = (
        user.is_active and not user.is_staff and user.last_login is None and not user.has_usable_password()
    )
    elsewhere = Workspace.objects.filter(memberships__user=user).exclude(
        pk__in=Workspace.objects.filter(caller.within(roles=(Role.OWNER,))).values("pk")
    )
    return (
        is_new
        and not user.is_staff
        and not ApiKey.objects.filter(user=user).exists()
        and not elsewhere.exists()
    )


def _check_name(user: User) -> None:
    try:
        user.full_clean(exclude=["password"])
    except ValidationError as error:
        codes = {each.code for each in error.error_dict.get("username", [])}
        said = _("A name has letters, digits and @ . + - _ and no blanks, such as ben.miller: at most 150.")
        is_no_name = codes & {"invalid", "max_length", "blank"}
        raise Invalid.field("user", said if is_no_name else " ".join(error.messages)) from error


@transaction.atomic
def change_role(caller: Caller, slug: str, user_id: int, role: Role) -> None:
    workspace = owned(caller, slug)
    if role != Role.OWNER:
        _keep_an_owner(workspace, besides=user_id)
    if not workspace.memberships.filter(user_id=user_id).update(role=role):
        raise NotFound


@transaction.atomic
def remove_member(caller: Caller, slug: str, user_id: int) -> None:
    """They see nothing of it from now on; a stream that they have open ends within a minute."""
    workspace = owned(caller, slug)
    _keep_an_owner(workspace, besides=user_id)
    if not workspace.memberships.filter(user_id=user_id).delete()[0]:
        raise NotFound
    if not Membership.objects.filter(user=user_id).exists():
        _take_back_invitation(user_id)


def _take_back_invitation(user_id: int) -> None:
    """Of somebody who has not come yet. The links of others are an operator's, who let them in again."""
    links = SignInLink.objects.filter(user=user_id, user__last_login=None, used_at=None)
    links.update(used_at=timezone.now())


def owned(caller: Caller, slug: str) -> Workspace:
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

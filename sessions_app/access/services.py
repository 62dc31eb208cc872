"""The only writers of workspaces, members, keys and sign-in links."""

import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from sessions_app.access.caller import Caller
from sessions_app.access.models import ApiKey, Membership, Role, Scope, SignInLink, Workspace, digest

LINK_LIVES = timedelta(minutes=10)
LAST_USE_IS_KEPT_TO = timedelta(minutes=1)  # a busy key does not write a row for each call


@transaction.atomic
def first_workspace(vault: Path, *, vault_is_chosen: bool) -> Workspace:
    """The workspace `default`. A vault that the environment names wins over the one it had."""
    workspace, made = Workspace.objects.get_or_create(
        slug="default", defaults={"name": "Default", "vault_path": str(vault)}
    )
    if not made and vault_is_chosen:
        Workspace.objects.filter(pk=workspace.pk).exclude(vault_path=str(vault)).update(vault_path=str(vault))
        workspace.refresh_from_db()
    return workspace


@transaction.atomic
def first_admin(workspace: Workspace) -> User:
    """The oldest superuser, made where there is none, and owner of the first workspace."""
    users = get_user_model().objects
    admin = users.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if admin is None:
        admin = users.create_superuser(username=_free_name("admin"), password=None)
    Membership.objects.get_or_create(workspace=workspace, user=admin, defaults={"role": Role.OWNER})
    return admin


def _free_name(wanted: str) -> str:
    users = get_user_model().objects
    taken = set(users.filter(username__startswith=wanted).values_list("username", flat=True))
    return next(name for n in range(len(taken) + 1) if (name := f"{wanted}{n or ''}") not in taken)


def make_sign_in_link(user: User) -> str:
    """The token of a fresh link, which nothing but the link holds."""
    token = secrets.token_urlsafe(32)
    SignInLink.objects.create(user=user, digest=digest(token), expires_at=timezone.now() + LINK_LIVES)
    return token


def link_is_good(token: str) -> bool:
    return _good_link(token) is not None


def use_sign_in_link(token: str) -> User | None:
    """The person behind a link, once. Two presses at once: one of them wins.

    The UPDATE names the link's own columns only. Through a join it would be a subquery, and PostgreSQL would
    not look at that again for the second press.
    """
    link = _good_link(token)
    if link and SignInLink.objects.filter(pk=link.pk, used_at=None).update(used_at=timezone.now()):
        return link.user
    return None


def _good_link(token: str) -> SignInLink | None:
    good = SignInLink.objects.filter(used_at=None, expires_at__gt=timezone.now(), user__is_active=True)
    return good.select_related("user").filter(digest=digest(token)).first()


@transaction.atomic
def make_key(
    user: User,
    name: str,
    *,
    scopes: Iterable[Scope] = (Scope.READ, Scope.CHAT),
    workspaces: Iterable[Workspace] = (),
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """A key and its token, which nobody can read again. No workspaces named: all of its owner's, always."""
    token = ApiKey.new_token()
    named = list(workspaces)
    key: ApiKey = ApiKey.objects.create(
        user=user,
        name=name,
        digest=digest(token),
        scopes=[str(scope) for scope in scopes],
        is_limited=bool(named),
        expires_at=expires_at,
    )
    key.workspaces.set(named)
    return key, token


def caller_of_key(token: str) -> Caller | None:
    key = ApiKey.objects.usable().select_related("user").filter(digest=digest(token)).first()
    if key is None:
        return None
    _note_use(key)
    named = frozenset(key.workspaces.values_list("pk", flat=True)) if key.is_limited else None
    return Caller(
        user_id=key.user_id,
        name=f"key:{key.pk}",
        is_operator=key.user.is_staff,
        scopes=frozenset(key.scopes),
        workspace_ids=named,
        key_id=key.pk,
    )


def caller_of_user(user: User) -> Caller:
    return Caller(user_id=user.pk, name=f"user:{user.pk}", is_operator=user.is_staff)


def _note_use(key: ApiKey) -> None:
    now = timezone.now()
    if key.last_used_at is None or key.last_used_at < now - LAST_USE_IS_KEPT_TO:
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)

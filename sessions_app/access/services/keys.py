from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from sessions_app.access.caller import Caller
from sessions_app.access.models import ApiKey, KeyScope, Workspace, digest
from sessions_app.errors import Forbidden, Invalid, NotFound

LONGEST_NAME = 100


@dataclass(frozen=True)
class NewKey:
    """The key that somebody asks for. No workspaces and no end: those of whoever asks."""

    name: str
    scopes: tuple[KeyScope, ...] = (KeyScope.READ, KeyScope.CHAT)
    workspaces: tuple[str, ...] | None = None  # slugs
    expires_at: datetime | None = None


def create_key(caller: Caller, wanted: NewKey) -> tuple[ApiKey, str]:
    """A key that may do no more than its maker: no other scope, no other workspace, no later end."""
    name = wanted.name.strip()
    if not 0 < len(name) <= LONGEST_NAME:
        raise Invalid.field(
            "name", _("Say in 1 to %(most)d characters what the key is for.") % {"most": LONGEST_NAME}
        )
    return make_key(
        User.objects.get(pk=caller.user_id),
        name,
        scopes=_scopes(caller, wanted.scopes),
        workspaces=_workspaces(caller, wanted.workspaces),
        expires_at=_end(caller, wanted.expires_at),
    )


@transaction.atomic
def make_key(
    user: User,
    name: str,
    *,
    scopes: Iterable[KeyScope] = (KeyScope.READ, KeyScope.CHAT),
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


def revoke_key(caller: Caller, key_id: int) -> None:
    """At once for calls; a stream that the key has open ends within a minute."""
    if not ApiKey.objects.visible_to(caller).filter(pk=key_id).exists():
        raise NotFound
    if revoke_keys(ApiKey.objects.filter(pk=key_id)) != 1:
        raise NotFound  # somebody else was quicker


def revoke_keys(keys: QuerySet[ApiKey]) -> int:
    """Once each; how many there were."""
    return keys.filter(revoked_at=None).update(revoked_at=timezone.now())


def _scopes(caller: Caller, wanted: Iterable[KeyScope]) -> list[KeyScope]:
    scopes = [scope for scope in KeyScope if scope in set(wanted)]
    if not scopes:
        raise Invalid.field("scopes", _("Choose at least one scope."))
    if missing := [str(scope) for scope in scopes if not caller.may(scope)]:
        raise Forbidden(
            _("This key has no scope `%(scope)s`, so it can give it to no other.") % {"scope": missing[0]}
        )
    return scopes


def _workspaces(caller: Caller, slugs: Iterable[str] | None) -> list[Workspace]:
    """An empty list means all of the owner's, now and later: a limited caller never gets one."""
    if slugs is None and caller.workspace_ids is None:
        return []
    wanted = None if slugs is None else set(slugs)
    if wanted is not None and not wanted:
        raise Invalid.field("workspaces", _("Name at least one, or leave this out for all of yours."))
    visible = Workspace.objects.visible_to(caller)
    found = list(visible if wanted is None else visible.filter(slug__in=wanted))
    if not found or (wanted is not None and len(found) != len(wanted)):
        raise NotFound(_("There is no such workspace, or none that you may see."))
    return found


def _end(caller: Caller, wanted: datetime | None) -> datetime | None:
    if wanted is not None and wanted <= timezone.now():
        raise Invalid.field("expiresAt", _("This is over already. Choose a time to come."))
    if caller.key_id is None:
        return wanted
    own = ApiKey.objects.filter(pk=caller.key_id).values_list("expires_at", flat=True).first()
    if own is not None and wanted is not None and wanted > own:
        raise Forbidden(
            _("This key ends at %(end)s, so it can make none that ends later.") % {"end": own.isoformat()}
        )
    return wanted or own

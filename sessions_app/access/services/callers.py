from datetime import timedelta

from django.contrib.auth.models import User
from django.utils import timezone

from sessions_app.access.caller import Caller
from sessions_app.access.models import ApiKey, digest

LAST_USE_IS_KEPT_TO = timedelta(minutes=1)  # a busy key does not write a row for each call


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
        username=key.user.get_username(),
    )


def caller_of_user(user: User) -> Caller:
    return Caller(
        user_id=user.pk,
        name=f"user:{user.pk}",
        is_operator=user.is_staff,
        username=user.get_username(),
    )


def shown_name(name: str) -> str:
    """Of what rows remember of a caller, what people read: the person, also where a key of theirs did it."""
    kind, _colon, number = name.partition(":")
    through = {"user": "pk", "key": "api_keys"}.get(kind)
    found = User.objects.filter(**{through: number}).first() if through and number.isdecimal() else None
    return found.get_username() if found else name


def _note_use(key: ApiKey) -> None:
    now = timezone.now()
    if key.last_used_at is None or key.last_used_at < now - LAST_USE_IS_KEPT_TO:
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)

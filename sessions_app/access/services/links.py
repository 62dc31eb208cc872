import secrets
from datetime import timedelta

from django.contrib.auth.models import User
from django.utils import timezone

from sessions_app.access.models import SignInLink, digest

LINK_LIVES = timedelta(minutes=10)


def make_sign_in_link(user: User, lives: timedelta = LINK_LIVES) -> str:
    """The token of a fresh link, which nothing but the link holds."""
    token = secrets.token_urlsafe(32)
    SignInLink.objects.create(user=user, digest=digest(token), expires_at=timezone.now() + lives)
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

"""Who is speaking: an account that was let in, and what it may have where it speaks."""

from django.db.models import F
from django.utils import timezone

from agents_app.rights.trust import narrowest
from bots_app.models import BotChat, BotUser
from sessions_app.access.caller import MAY_WRITE, NOBODY, Caller, OnPhone
from sessions_app.access.models import KeyScope, Membership
from sessions_app.access.services import caller_of_user


def find(platform: str, platform_user_id: str) -> BotUser | None:
    """Who is let in at this moment. Whoever is linked to somebody here has no more rights than they have."""
    found = BotUser.objects.filter(platform=platform, platform_user_id=platform_user_id, revoked_at=None)
    user = found.select_related("workspace", "user").first()
    return user if user is not None and is_let_in(user) else None


def now(user: BotUser) -> BotUser:
    """As they are at this moment: they may have been put out since somebody looked."""
    found: BotUser = BotUser.objects.select_related("workspace", "user").get(pk=user.pk)
    return found


def is_still_in(user: BotUser) -> bool:
    """And nobody puts them out before this transaction ends."""
    return BotUser.objects.select_for_update().filter(pk=user.pk, revoked_at=None).first() is not None


def is_let_in(user: BotUser) -> bool:
    if not user.is_in or user.workspace.archived_at is not None:
        return False
    if user.user is None:
        return True
    writes = Membership.objects.filter(user=user.user_id, workspace=user.workspace_id, role__in=MAY_WRITE)
    return bool(user.user.is_active and writes.exists())


def caller_in(user: BotUser, chat: BotChat) -> Caller:
    """In their own chat somebody who is linked is the author of what they say. In a group nobody is: what is
    said there belongs to its workspace."""
    is_private = not chat.is_group and user.user_id is not None
    return Caller(
        user_id=user.user_id if is_private and user.user_id else NOBODY,
        name=f"bot:{user.pk}",
        scopes=frozenset({KeyScope.READ.value, KeyScope.CHAT.value}),
        username=user.display,
        on_phone=OnPhone(
            platform=chat.platform,
            chat=chat.key,
            chat_type=chat.chat_type,
            workspace_id=user.workspace_id,
            trust=narrowest(user.trust_level, chat.trust_level if chat.is_group else None),
            is_private=is_private,
        ),
    )


def person(user: BotUser) -> Caller | None:
    """Whoever is behind it, with all that they may do here, for what they decide."""
    return caller_of_user(user.user) if user.user is not None and user.user.is_active else None


def takes_one(user: BotUser) -> bool:
    """Counts one message of today; False where there are no more."""
    today = timezone.localdate()
    BotUser.objects.filter(pk=user.pk).exclude(day=today).update(day=today, said=0)
    mine = BotUser.objects.filter(pk=user.pk)
    if user.messages_per_day is not None:
        mine = mine.filter(said__lt=user.messages_per_day)
    return mine.update(said=F("said") + 1) == 1

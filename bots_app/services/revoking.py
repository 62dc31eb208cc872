"""How somebody is put out again."""

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from agents_app.turns.said.abort import stop
from bots_app.models import BotChat, BotUser, Delivery, DeliveryState, Heard, HeardState
from bots_app.services import saying
from bots_app.services.owners import known, note, owned_by, refuse
from bots_app.services.places import hold
from permissions_app.audit import Outcome
from permissions_app.audit.entry import PLATFORM
from sessions_app.access.caller import NOBODY, Caller
from sessions_app.models import Turn

PUT_OUT = "You are not let in here any more."


def revoke(caller: Caller, platform: str, platform_user_id: str) -> None:
    """At once: what waits is not said any more, and what runs for them is stopped."""
    user = known(caller, platform, platform_user_id)
    if not owned_by(caller).filter(pk=user.workspace_id).exists() and not _is_theirs(caller, user):
        refuse(caller, platform, platform_user_id, user.workspace_id)
    put_out(user, caller)


def sweep() -> None:
    """Those whose time is over."""
    over = BotUser.objects.filter(revoked_at=None, expires_at__lte=timezone.now())
    for user in over.select_related("direct"):
        put_out(user, Caller(NOBODY, PLATFORM))


@transaction.atomic
def put_out(user: BotUser, caller: Caller) -> None:
    hold(user.direct_id)
    if not BotUser.objects.filter(pk=user.pk, revoked_at=None).update(revoked_at=timezone.now()):
        return
    waiting = Heard.objects.filter(bot_user=user, state=HeardState.WAITING)
    waiting.update(state=HeardState.REFUSED)
    turns = Heard.objects.filter(bot_user=user, turn__isnull=False).values("turn")
    open_turns = list(Turn.objects.open().filter(pk__in=turns))
    theirs = Q(turn__in=turns) | Q(chat=user.direct_id or 0)
    Delivery.objects.filter(theirs, state=DeliveryState.WAITING).delete()
    transaction.on_commit(lambda: _stop(open_turns, caller), robust=True)
    if (chat := user.direct) is not None:
        BotChat.objects.filter(pk=chat.pk).update(session=None)
        saying.notice(chat, f"revoked:{user.pk}", _(PUT_OUT))
    note(caller, Outcome.REVOKED, user, user.workspace_id)


def _stop(turns: list[Turn], caller: Caller) -> None:
    """In transactions of their own: a turn is locked before its session."""
    for turn in turns:
        stop(turn, caller.name)


def _is_theirs(caller: Caller, user: BotUser) -> bool:
    return user.user_id is not None and user.user_id == caller.user_id

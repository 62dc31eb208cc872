"""Named reads for the API and the pages. Who owns no workspace sees nobody who knocked."""

from django.db.models import Exists, QuerySet
from django.utils.translation import gettext as _

from bots_app.models import Bot, BotChat, BotUser, ChatType, Delivery, DeliveryState, PairingRequest
from bots_app.services import bots, pairing
from bots_app.services.owners import owned_by
from sessions_app.access.caller import Caller
from sessions_app.errors import Forbidden

MOST = 200


def may_decide(caller: Caller) -> bool:
    return owned_by(caller).exists()


def statuses(caller: Caller) -> list[Bot]:
    return bots.all_bots()


def configs(caller: Caller) -> dict[str, Bot]:
    bots.check_operator(caller)
    return {bot.platform: bot for bot in bots.all_bots()}


def requests(caller: Caller, status: str = "pending") -> list[PairingRequest]:
    _check_may_decide(caller)
    pairing.expire()
    found = PairingRequest.objects.filter(status=status).select_related("resolved_by")
    order = "created_at" if status == "pending" else "-resolved_at"
    return list(found.order_by(order, "pk")[:MOST])


def count(caller: Caller) -> int:
    """For whoever may not decide there are none. One query: it stands on every page."""
    return pairing.pending().filter(Exists(owned_by(caller))).count()


def people(caller: Caller) -> QuerySet[BotUser]:
    """Whom the caller let in, or could put out; and their own account."""
    own = BotUser.objects.filter(revoked_at=None).select_related("workspace", "user", "approved_by")
    mine = own.filter(user=caller.user_id)
    return (own.filter(workspace__in=owned_by(caller)) | mine).distinct().order_by("display", "pk")


def linked(caller: Caller) -> list[BotUser]:
    return list(BotUser.objects.filter(revoked_at=None, user=caller.user_id).order_by("platform"))


def groups(caller: Caller) -> list[BotChat]:
    found = BotChat.objects.filter(chat_type=ChatType.GROUP, workspace__in=owned_by(caller))
    return list(found.select_related("workspace").order_by("title", "pk")[:MOST])


def undelivered(caller: Caller) -> list[Delivery]:
    """What could not be said to those people."""
    theirs = people(caller).values("direct")
    failed = Delivery.objects.filter(state=DeliveryState.FAILED).select_related("chat")
    mine = failed.filter(chat__in=theirs) | failed.filter(chat__in=[each.pk for each in groups(caller)])
    return list(mine.distinct().order_by("-created_at")[:MOST])


def _check_may_decide(caller: Caller) -> None:
    if not may_decide(caller):
        raise Forbidden(_("Only an owner of a workspace sees who wants to be let in."))

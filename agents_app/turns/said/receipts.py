"""What an idempotency key of a caller led to: the same request within a day leads to the same turn."""

from datetime import timedelta

from django.utils import timezone
from django.utils.translation import gettext as _

from sessions_app.access.caller import Caller
from sessions_app.errors import IdempotencyMismatch, NotFound
from sessions_app.models import Receipt, Session, Turn

LIVE = timedelta(hours=24)


def new(caller: Caller, key: str, digest: str) -> Receipt:
    """An `IntegrityError` where the key was used within the day."""
    old = timezone.now() - LIVE
    Receipt.objects.filter(caller=caller.name, key=key, created_at__lt=old).delete()
    return Receipt.objects.create(caller=caller.name, key=key, body_digest=digest)


def turn_of(caller: Caller, key: str, digest: str) -> Turn | None:
    """The turn that the same request has led to, as long as its caller may see it."""
    fresh = Receipt.objects.filter(caller=caller.name, key=key, created_at__gte=timezone.now() - LIVE)
    receipt = fresh.select_related("turn").first()
    if receipt is None or receipt.turn is None:
        return None
    if receipt.body_digest != digest:
        raise IdempotencyMismatch(_("This Idempotency-Key was used for another request. Choose a new one."))
    if not Session.objects.visible_to(caller).filter(pk=receipt.turn.session_id).exists():
        raise NotFound(_("There is no such session any more, or you may not see it any more."))
    return receipt.turn

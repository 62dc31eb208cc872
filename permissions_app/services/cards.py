"""A card that somebody has open does not run out: its clock stands, for half an hour at most.

Whoever has it open says so again and again. After a minute without a word it counts as closed, and the time
that was left when it was opened runs on from there: `expires_at` is always `opened_until` and that rest.

A page says so in the very moment in which somebody else may answer. That is no mistake of anybody's: a card
that is decided is told as it is, and no clock of it moves.
"""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from permissions_app.models import RequestStatus, ToolRequest
from permissions_app.services.deciding import check_may_decide, found
from sessions_app.access.caller import Caller
from sessions_app.services import check_writable

BEAT = timedelta(seconds=60)
AT_MOST = timedelta(minutes=30)


@transaction.atomic
def open_card(caller: Caller, request_id: UUID) -> ToolRequest:
    request, now = _seen(caller, request_id), timezone.now()
    until = min(now + BEAT, request.created_at + AT_MOST)
    return _stands(request, max(until, now), now)


@transaction.atomic
def close_card(caller: Caller, request_id: UUID) -> ToolRequest:
    request, now = _seen(caller, request_id), timezone.now()
    return _stands(request, now, now)


def _seen(caller: Caller, request_id: UUID) -> ToolRequest:
    """As it is in this moment: nobody answers it before this transaction is over."""
    request = found(caller, request_id)
    check_writable(caller, request.session_id)
    check_may_decide(caller, request)
    locked: ToolRequest | None = ToolRequest.objects.select_for_update().filter(pk=request_id).first()
    return locked or found(caller, request_id)  # which says that it went meanwhile


def _stands(request: ToolRequest, until: datetime, now: datetime) -> ToolRequest:
    if request.status != RequestStatus.PENDING:
        return request
    is_open = request.opened_until is not None and request.opened_until > now
    rest = request.expires_at - (request.opened_until if is_open and request.opened_until else now)
    request.opened_until, request.expires_at = until, until + rest
    request.save(update_fields=["opened_until", "expires_at"])
    return request

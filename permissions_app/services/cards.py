"""A card that somebody has open does not run out: its clock stands, for half an hour at most.

Whoever has it open says so again and again. After a minute without a word it counts as closed, and the time
that was left when it was opened runs on from there: `expires_at` is always `opened_until` and that rest.
"""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from permissions_app.models import ToolRequest
from permissions_app.services.deciding import already_decided, check_may_decide, found
from sessions_app.access.caller import Caller
from sessions_app.services import check_writable

BEAT = timedelta(seconds=60)
AT_MOST = timedelta(minutes=30)


@transaction.atomic
def open_card(caller: Caller, request_id: UUID) -> ToolRequest:
    request = _pending(caller, request_id)
    now = timezone.now()
    until = min(now + BEAT, request.created_at + AT_MOST)
    return _stands(request, max(until, now), now)


@transaction.atomic
def close_card(caller: Caller, request_id: UUID) -> ToolRequest:
    now = timezone.now()
    return _stands(_pending(caller, request_id), now, now)


def _pending(caller: Caller, request_id: UUID) -> ToolRequest:
    request = found(caller, request_id)
    check_writable(caller, request.session_id)
    check_may_decide(caller, request)
    pending = ToolRequest.objects.pending().select_for_update().filter(pk=request_id)
    locked: ToolRequest | None = pending.first()
    if locked is None:
        raise already_decided(request)
    return locked


def _stands(request: ToolRequest, until: datetime, now: datetime) -> ToolRequest:
    is_open = request.opened_until is not None and request.opened_until > now
    rest = request.expires_at - (request.opened_until if is_open and request.opened_until else now)
    request.opened_until, request.expires_at = until, until + rest
    request.save(update_fields=["opened_until", "expires_at"])
    return request

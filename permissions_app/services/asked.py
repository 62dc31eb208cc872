"""What the worker that asks writes, fenced by its hold."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from permissions_app.models import RequestKind, RequestStatus, ToolRequest
from permissions_app.models.requests import GOOD
from permissions_app.services.telling import let_turn_go_on, tell_asked, tell_end
from sessions_app.models import Turn, TurnStatus
from sessions_app.streaming.log import Hold

GOOD_FOR = timedelta(hours=24)


@dataclass(frozen=True)
class NewRequest:
    """One call, read: all that a person is shown of it, and what makes it exactly this call."""

    session_id: UUID
    kind: RequestKind
    tool_name: str
    tool_use_id: str
    permission_type: str
    rule: str
    why: str
    input: Mapping[str, Any]
    file_path: str
    directory: str
    suggested_grants: list[dict[str, str]]
    subject: str
    agent_name: str
    digest: str
    on_host: bool


@transaction.atomic
def ask(hold: Hold, wanted: NewRequest, *, once_a_turn: bool = False) -> ToolRequest:
    """A new request, or one for exactly this call that a person has decided already and that nobody used.
    What is asked `once_a_turn` may have been used, refused, or not answered in time: that stays so."""
    hold.check()
    decided = _unused(wanted) or (_asked_before(hold, wanted) if once_a_turn else None)
    if decided is not None:
        return decided
    now = timezone.now()
    request = ToolRequest.objects.create(
        **vars(wanted),
        turn_id=hold.turn_id,
        attempt=hold.attempt,
        created_at=now,
        expires_at=now + _time_for(wanted.kind),
    )
    Turn.objects.filter(pk=hold.turn_id, status=TurnStatus.RUNNING).update(status=TurnStatus.WAITING)
    tell_asked(request)
    return request


@transaction.atomic
def use(hold: Hold, request_id: UUID) -> bool:
    """Of what was granted: once, whoever else makes the same call."""
    hold.check()
    unused = ToolRequest.objects.filter(pk=request_id).unused(timezone.now() - GOOD_FOR)
    return unused.update(used_at=timezone.now()) == 1


@transaction.atomic
def expire(hold: Hold, request_id: UUID) -> bool:
    """False where somebody answered, or opened its card, in the last moment."""
    hold.check()
    late = ToolRequest.objects.pending().filter(pk=request_id, expires_at__lte=timezone.now())
    return _ended(request_id, late.update(status=RequestStatus.EXPIRED, decided_at=timezone.now()))


@transaction.atomic
def close(hold: Hold, request_id: UUID) -> bool:
    """Nobody waits for it any more."""
    hold.check()
    pending = ToolRequest.objects.pending().filter(pk=request_id)
    return _ended(request_id, pending.update(status=RequestStatus.ABORTED, decided_at=timezone.now()))


def close_all(turn_id: UUID) -> None:
    """Where a turn ends or is put back, in that transaction."""
    for request_id in ToolRequest.objects.pending().filter(turn=turn_id).values_list("pk", flat=True):
        pending = ToolRequest.objects.pending().filter(pk=request_id)
        _ended(request_id, pending.update(status=RequestStatus.ABORTED, decided_at=timezone.now()))


def _ended(request_id: UUID, moved: int) -> bool:
    if moved:
        request = ToolRequest.objects.get(pk=request_id)
        tell_end(request, request.turn_id)
        let_turn_go_on(request.turn_id)
    return bool(moved)


def _unused(wanted: NewRequest) -> ToolRequest | None:
    same = ToolRequest.objects.filter(session=wanted.session_id, kind=wanted.kind, digest=wanted.digest)
    found: ToolRequest | None = same.unused(timezone.now() - GOOD_FOR).order_by("decided_at").first()
    assert found is None or found.status in GOOD
    return found


def _asked_before(hold: Hold, wanted: NewRequest) -> ToolRequest | None:
    over = (RequestStatus.GRANTED, RequestStatus.DENIED, RequestStatus.EXPIRED)
    same = ToolRequest.objects.filter(turn=hold.turn_id, digest=wanted.digest, status__in=over)
    found: ToolRequest | None = same.order_by("-created_at").first()
    return found


def _time_for(kind: RequestKind) -> timedelta:
    is_question = kind == RequestKind.QUESTION
    seconds = settings.PARACHUTE_QUESTION_TIMEOUT if is_question else settings.PARACHUTE_PERMISSION_TIMEOUT
    return timedelta(seconds=seconds)

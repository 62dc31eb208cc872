"""The end of a turn: its status and its terminal event, in one transaction, once."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from agents_app.orchestration import ending
from agents_app.turns.running.announcing import announce
from agents_app.turns.running.kept import Row
from permissions_app.services import close_all
from sessions_app.access.services import shown_name
from sessions_app.models import (
    EventType,
    Message,
    Session,
    SessionEvent,
    SessionStatus,
    Speaker,
    Turn,
    TurnStatus,
)
from sessions_app.querysets import TurnQuerySet
from sessions_app.streaming.log import Hold, HoldLost, record, record_all

FREE = {"boot": None, "leased_at": None}


@transaction.atomic
def done(
    turn: Turn,
    hold: Hold,
    payload: dict[str, Any],
    *,
    usage: Mapping[str, int],
    cost_usd: float,
    warm_on: str = "",
) -> None:
    cost = Decimal(str(round(cost_usd, 6)))
    _end(turn, hold, TurnStatus.DONE, usage=dict(usage), cost_usd=cost)
    said = Message.objects.filter(turn=turn).exclude(source=Speaker.PLATFORM).count()
    Session.objects.filter(pk=turn.session_id).update(
        message_count=F("message_count") + said + 1,
        cost_usd=F("cost_usd") + cost,
        last_accessed=timezone.now(),
        warm_on=warm_on,
    )
    count = Session.objects.values_list("message_count", flat=True).get(pk=turn.session_id)
    told = {**payload, "spawned": _spawned(turn, payload), "messageCount": count}
    record(turn.session_id, EventType.DONE, told, turn_id=turn.pk)
    if _ends_with(turn):
        ending.end(turn.session_id, SessionStatus.COMPLETE)


def _spawned(turn: Turn, payload: Mapping[str, Any]) -> list[str]:
    """In any of its attempts."""
    if turn.attempt <= 1 and not payload.get("toolCalls"):
        return []
    told = SessionEvent.objects.filter(turn=turn, type=EventType.CHILD_SPAWNED).order_by("seq")
    return [row.payload["childSessionId"] for row in told]


def _ends_with(turn: Turn) -> bool:
    session = turn.session
    if not session.is_errand or Turn.objects.open().filter(session=session).exists():
        return False
    return not ending.awaits_answer(session, turn)


@transaction.atomic
def aborted(turn: Turn, hold: Hold) -> None:
    _end(turn, hold, TurnStatus.ABORTED)
    tell_aborted(turn)


def tell_aborted(turn: Turn) -> None:
    """What was said so far is in rows, whichever worker wrote them, and is told as the partial response."""
    ending.lock_parent(turn.session)
    by, stopped_at = Turn.objects.values_list("aborted_by", "abort_requested_at").get(pk=turn.pk)
    said = SessionEvent.objects.filter(turn=turn, type=EventType.TEXT).order_by("seq")
    partial = "\n\n".join(event.payload["content"] for event in said)
    payload = {
        "partialResponse": partial,
        "abortedBy": by,
        "stoppedAt": stopped_at and stopped_at.isoformat().replace("+00:00", "Z"),
    }
    record(turn.session_id, EventType.ABORTED, payload, turn_id=turn.pk)
    ending.fail_if_an_errand(turn.session, _("%(who)s stopped it.") % {"who": shown_name(by)})


@transaction.atomic
def failed(turn: Turn, hold: Hold, kind: EventType, payload: dict[str, Any]) -> None:
    """A failed turn makes an errand `failed`; a chat goes on."""
    _end(turn, hold, TurnStatus.FAILED, error_code=payload.get("code", "internal"))
    record(turn.session_id, kind, payload, turn_id=turn.pk)
    ending.fail_if_an_errand(turn.session, payload.get("message") or payload.get("error", ""))


@transaction.atomic
def put_back(hold: Hold, *cut_off: Row) -> bool:
    """To the front of its queue again, by a worker that cannot go on: the next one resumes it, after what was
    `cut_off`. False where it is to be ended, because somebody stopped it, or is somebody else's already."""
    wanted = held(hold).filter(abort_requested_at=None)
    if wanted.update(status=TurnStatus.QUEUED, **FREE) != 1:
        return False
    close_all(hold.turn_id)
    if cut_off:
        session_id = Turn.objects.values_list("session_id", flat=True).get(pk=hold.turn_id)
        record_all(session_id, cut_off, turn_id=hold.turn_id)
    return True


def held(hold: Hold) -> TurnQuerySet:
    """The turn, as long as this hold is good."""
    return Turn.objects.active().filter(pk=hold.turn_id, attempt=hold.attempt)


def is_held(hold: Hold) -> bool:
    return held(hold).exists()


def _end(turn: Turn, hold: Hold, status: TurnStatus, **more: Any) -> None:
    if held(hold).update(status=status, ended_at=timezone.now(), **FREE, **more) != 1:
        raise HoldLost(f"turn {hold.turn_id}, attempt {hold.attempt}")
    ending.lock_parent(turn.session)
    close_all(hold.turn_id)  # before its terminal event, which is its last
    transaction.on_commit(lambda: announce(hold.turn_id), robust=True)

"""What was told in the turns of a session that are over, a few at a time, from the newest back."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q

from sessions_app.models import EventType, Session, SessionEvent, Turn
from sessions_app.streaming.log import ON_THE_WIRE, on_the_wire

# What nobody looks at later: how a turn was set up, and how long it waited.
LEFT_OUT = (
    EventType.PROMPT_METADATA,
    EventType.INIT,
    EventType.MODEL,
    EventType.TURN_WAITING,
)

ANSWERS = (EventType.PERMISSION_RESOLVED, EventType.QUESTION_ANSWERED, EventType.GRANT_RESOLVED)


@dataclass(frozen=True)
class Past:
    turns: list[tuple[UUID, int]]  # their ids and `opened_seq`, oldest first
    events: list[dict[str, Any]]  # their rows, in order
    before: int | None  # ask for the turns before this `opened_seq`; None where there are none


def past(session: Session, *, limit: int, before: int | None = None, from_seq: int | None = None) -> Past:
    """The newest `limit` turns that are over (of those before `before`), and all after `from_seq`."""
    over = Turn.objects.over().filter(session=session).order_by("-opened_seq")
    if before is not None:
        over = over.filter(opened_seq__lt=before)
    found = list(over.values_list("pk", "opened_seq")[: limit + 1])
    turns, has_more = found[:limit], len(found) > limit
    if has_more and from_seq is not None and turns[-1][1] > from_seq:
        turns = list(over.filter(opened_seq__gt=from_seq).values_list("pk", "opened_seq"))
        has_more = over.filter(opened_seq__lte=from_seq).exists()
    turns.reverse()
    rows = SessionEvent.objects.filter(_of(session, turns)).exclude(type__in=LEFT_OUT)
    name = str(session.pk)
    events = [on_the_wire(name, *row) for row in rows.order_by("seq").values_list(*ON_THE_WIRE)]
    return Past(turns, events, turns[0][1] if has_more and turns else None)


def _of(session: Session, turns: list[tuple[UUID, int]]) -> Q:
    """The rows of these turns, and what was answered when they were over."""
    since = turns[0][1] if turns else 0
    late = Q(session=session, turn=None, type__in=ANSWERS, seq__gt=since)
    return Q(turn_id__in=[pk for pk, _ in turns]) | late

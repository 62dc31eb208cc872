"""The event log: the only writer of `SessionEvent` rows."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F

from sessions_app import bus
from sessions_app.models import EventType, Session, SessionEvent, Turn
from sessions_app.models.turn import ACTIVE
from sessions_app.storable import storable

ANNOUNCED = "isAnnounced"
LARGEST_RING = 16_000  # characters; a larger row is announced by its number and read from the database


class HoldLost(Exception):
    """Another worker has this turn now, or it is over: whoever gets this stops, and writes nothing more."""


@dataclass(frozen=True)
class Hold:
    """A worker's right to write for a turn. When it is taken back, `attempt` is another."""

    turn_id: UUID
    attempt: int

    def check(self) -> None:
        """Locks the turn's row for the rest of the transaction, so that nobody takes it back in between."""
        held = Turn.objects.select_for_update().filter(
            pk=self.turn_id, attempt=self.attempt, status__in=ACTIVE
        )
        if held.values_list("pk").first() is None:
            raise HoldLost(f"turn {self.turn_id}, attempt {self.attempt}")


@transaction.atomic
def record(
    session_id: UUID,
    kind: EventType,
    payload: dict[str, Any],
    *,
    turn_id: UUID | None = None,
    hold: Hold | None = None,
) -> SessionEvent:
    """Writes one event with the next `seq` and rings for it after commit. With a `hold` it is fenced."""
    if hold is not None:
        hold.check()
        turn_id = hold.turn_id
    Session.objects.filter(pk=session_id).update(last_seq=F("last_seq") + 1)
    seq = Session.objects.values_list("last_seq", flat=True).get(pk=session_id)
    event: SessionEvent = SessionEvent.objects.create(
        session_id=session_id, seq=seq, turn_id=turn_id, type=kind, payload=storable(payload)
    )
    # The row is there, whatever a ring does. (No partial: `robust` asks what it calls for its name.)
    transaction.on_commit(lambda: _ring(event), robust=True)
    return event


def as_payload(event: SessionEvent) -> dict[str, Any]:
    """An event as it goes over the wire."""
    return {
        "type": event.type,
        "sessionId": str(event.session_id),
        "turnId": str(event.turn_id) if event.turn_id else None,
        "seq": event.seq,
        "ts": event.created_at.isoformat().replace("+00:00", "Z"),
        **event.payload,
    }


def _ring(event: SessionEvent) -> None:
    payload = as_payload(event)
    if len(repr(event.payload)) > LARGEST_RING:
        payload = {key: payload[key] for key in ("type", "sessionId", "turnId", "seq")} | {ANNOUNCED: True}
    bus.ring(bus.session_topic(event.session_id), payload)

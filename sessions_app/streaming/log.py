"""The event log: the only writer of `SessionEvent` rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from sessions_app.models import EventType, SessionEvent
from sessions_app.models.event import ASKING, TERMINAL
from sessions_app.storable import storable
from sessions_app.streaming import bus, statements

ON_THE_WIRE = ("type", "turn_id", "seq", "created_at", "payload")
ANNOUNCED = "isAnnounced"
# After these a list of sessions shows something else: a turn opened, over, or waiting for a person, a title,
# a status. (That a worker took a turn changes nothing there.)
SHOWN_IN_LISTS = frozenset({EventType.USER_MESSAGE, EventType.SESSION_UPDATED, *ASKING, *TERMINAL})
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
        if not statements.lock_held(self.turn_id, self.attempt):
            raise HoldLost(f"turn {self.turn_id}, attempt {self.attempt}")


def record(
    session_id: UUID,
    kind: EventType,
    payload: dict[str, Any],
    *,
    turn_id: UUID | None = None,
    hold: Hold | None = None,
) -> SessionEvent:
    """Writes one event with the next `seq` and rings for it after commit. With a `hold` it is fenced. The
    event that comes back has no `pk`: what names it is its session and `seq`."""
    return record_all(session_id, [(kind, payload)], turn_id=turn_id, hold=hold)[0]


@transaction.atomic
def record_all(
    session_id: UUID,
    events: Sequence[tuple[EventType, dict[str, Any]]],
    *,
    turn_id: UUID | None = None,
    hold: Hold | None = None,
) -> list[SessionEvent]:
    """Several events that belong together, in one transaction."""
    if hold is not None:
        hold.check()
        turn_id = hold.turn_id
    last, workspace_id = statements.count(session_id, len(events))
    written = [
        SessionEvent(session_id=session_id, seq=seq, turn_id=turn_id, type=kind, payload=storable(payload))
        for seq, (kind, payload) in enumerate(events, last - len(events) + 1)
    ]
    statements.insert(written)
    # The rows are there, whatever a ring does. (No partial: `robust` asks what it calls for its name.)
    for event in written:
        transaction.on_commit(lambda event=event: _ring(event), robust=True)  # type: ignore[misc]
    if any(kind in SHOWN_IN_LISTS for kind, _ in events):
        transaction.on_commit(lambda: bus.ring_lists(workspace_id), robust=True)
    return written


def as_payload(event: SessionEvent) -> dict[str, Any]:
    """An event as it goes over the wire."""
    return on_the_wire(str(event.session_id), *(getattr(event, name) for name in ON_THE_WIRE))


def on_the_wire(
    session_id: str, kind: str, turn_id: UUID | None, seq: int, at: datetime, payload: dict[str, Any]
) -> dict[str, Any]:
    return {
        "type": kind,
        "sessionId": session_id,
        "turnId": str(turn_id) if turn_id else None,
        "seq": seq,
        "ts": at.isoformat().replace("+00:00", "Z"),
        **payload,
    }


def in_short_for_the_bus(payload: dict[str, Any]) -> dict[str, Any]:
    """As it is, or, where that is too much, that it is there."""
    if len(repr(payload)) <= LARGEST_RING:
        return payload
    return {key: payload[key] for key in ("type", "sessionId", "turnId", "seq")} | {ANNOUNCED: True}


def _ring(event: SessionEvent) -> None:
    bus.ring(bus.session_topic(event.session_id), in_short_for_the_bus(as_payload(event)))

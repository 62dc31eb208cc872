"""The tail of a session: the text of the block that is being written, kept for readers that join.

It is kept as the first delta whole, and the later ones in short. What is read back stops at a piece that is
missing, and leaves out what an older attempt still says: a reader gets a true beginning, or nothing.
"""

from collections.abc import Iterable

from sessions_app.models.event import TERMINAL, EventType
from sessions_app.streaming.bus.base import Payload

LIVES = 3_600  # seconds; a tail that nobody ends any more goes away by itself
ENDING = frozenset({EventType.TEXT, EventType.THINKING, EventType.SESSION, *TERMINAL})

DELETED = "deleted"  # a ring and no event: the session is gone, and what was being written in it

Piece = tuple[int, int, str]


def is_delta(payload: Payload) -> bool:
    return "delta" in payload


def piece(delta: Payload) -> Piece:
    return delta["after"], delta["offset"], delta["delta"]


def ends(row: Payload, delta: Payload) -> bool:
    """Whether a row says that the block of a delta is over. One of a turn that waits says nothing about the
    turn that runs, and the ring of an older row may come after the first delta of the next block."""
    is_of_its_turn = row.get("type") in ENDING and row["turnId"] == delta["turnId"]
    return is_of_its_turn and bool(row["seq"] > delta["after"])


def joined(first: Payload, pieces: Iterable[Piece]) -> Payload:
    text = [str(first["delta"])]
    length = len(text[0])
    for after, offset, more in pieces:
        if offset == length and after >= first["after"]:
            text.append(more)
            length += len(more)
    return {**first, "delta": "".join(text)}

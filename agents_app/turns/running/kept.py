"""What people had read of a text that its worker did not finish: kept as a row, and told to whoever goes on.

While a text is written it is in no row. The bus has it so far (`bus.tails`), and that outlives the worker.
Who takes the turn back writes it into the rows by the right of the attempt that is lost, in the same
transaction: so it is written once, whatever dies next, and before anything of the next attempt.
"""

from itertools import takewhile
from typing import Any

from sessions_app.models import EventType, SessionEvent, Turn
from sessions_app.models.event import WORK
from sessions_app.streaming import bus
from sessions_app.streaming.bus import Payload, tails
from sessions_app.streaming.log import Hold, record

Row = tuple[EventType, dict[str, Any]]

WHAT_A_TEXT_FOLLOWS = tuple(kind for kind in WORK if kind != EventType.THINKING)


def row_of(kind: str, block: int, content: str) -> Row:
    return EventType(kind), {"block": block, "content": content, "interrupted": True}


def unfinished(turn: Turn) -> Payload | None:
    """What the bus has of the text that the turn is at; None where it has lost it. It waits for the bus, so
    it is called outside of transactions."""
    tail = bus.unfinished(turn.session_id)
    return tail if tail and tail["turnId"] == str(turn.pk) else None


def keep(turn: Turn, hold: Hold, tail: Payload | None) -> None:
    """Unless the rows know by now that this block is over: it was finished or kept, or a later attempt has
    begun, and only the ring by which the bus forgets it was lost."""
    if tail is None or _is_over(turn, tail):
        return
    kind, payload = row_of(tail["type"], tail["block"], tail["delta"])
    record(turn.session_id, kind, payload, hold=hold)


def _is_over(turn: Turn, tail: Payload) -> bool:
    later = SessionEvent.objects.filter(turn=turn, seq__gt=tail["after"])
    return later.filter(type__in=tails.ENDING).exists()


def begun(turn: Turn) -> str:
    """The text with which the turn was interrupted and that nothing has followed yet: what is said next goes
    on from there. It may have been interrupted there more than once."""
    newest = SessionEvent.objects.filter(turn=turn, type__in=WHAT_A_TEXT_FOLLOWS).order_by("-seq")
    rows = newest.values_list("type", "payload").iterator(chunk_size=10)
    cut_off = [payload for _, payload in takewhile(lambda row: _was_cut_off(*row), rows)]
    return joined([payload["content"] for payload in reversed(cut_off)])


def joined(texts: list[str]) -> str:
    return "\n\n".join(text for text in texts if text)


def _was_cut_off(kind: str, payload: dict[str, Any]) -> bool:
    return kind == EventType.TEXT and bool(payload.get("interrupted"))

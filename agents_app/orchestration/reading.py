"""What may be read of children: by whoever started them, and by people."""

import json
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from agents_app.orchestration.errors import NotYourChild
from permissions_app import strangers
from sessions_app.models import Session, SessionEvent

MOST_EVENTS, USUAL_EVENTS = 1_000, 200
LONGEST_TEXT = 4_000  # of one text in an event
LONGEST_ANSWER = 60_000


def child_output(
    parent_id: UUID, child_id: UUID, after: int = 0, limit: int = USUAL_EVENTS
) -> dict[str, Any]:
    """Its rows after the one that is named, the oldest first, as many as an answer holds."""
    child = Session.objects.filter(pk=child_id, parent=parent_id).first()
    if child is None:
        raise NotYourChild(_("You have started no such session."))
    if child.has_read_strangers:
        strangers.mark(parent_id)
    rows = SessionEvent.objects.after(child_id, max(after, 0))[: max(1, min(limit, MOST_EVENTS))]
    events: list[dict[str, Any]] = []
    room = LONGEST_ANSWER
    last_seq = after
    for row in rows.iterator():
        event = {
            "seq": row.seq,
            "type": row.type,
            "payload": _shortened(row.payload),
            "timestamp": row.created_at.isoformat().replace("+00:00", "Z"),
        }
        room -= len(json.dumps(event))
        if events and room < 0:
            break
        events.append(event)
        last_seq = row.seq
    about = {"id": str(child.pk), "status": child.status}
    return {"child": about, "status": child.status, "last_seq": last_seq, "events": events}


def _shortened(value: Any) -> Any:
    match value:
        case str() if len(value) > LONGEST_TEXT:
            return f"{value[:LONGEST_TEXT]}… ({len(value):,} characters)"
        case dict():
            return {key: _shortened(each) for key, each in value.items()}
        case list():
            return [_shortened(each) for each in value]
    return value

"""The statements of the event log, written out.

Two events come with each call of a tool, and whoever decides about the call waits for the interpreter
meanwhile. To make these statements anew from querysets takes four times as long as to run them.
"""

from collections.abc import Sequence
from uuid import UUID

from django.db import connection
from django.db.models import Field, Model

from sessions_app.models import Session, SessionEvent, Turn
from sessions_app.models.turn import ACTIVE


def _field(model: type[Model], name: str) -> "Field[object, object]":
    return model._meta.get_field(name)


_TURNS, _SESSIONS, _EVENTS = (model._meta.db_table for model in (Turn, Session, SessionEvent))
_TURN_ID, _SESSION_ID = Turn._meta.pk, Session._meta.pk
_WRITTEN = [field for field in SessionEvent._meta.concrete_fields if not field.primary_key]

_HELD = f"SELECT 1 FROM {_TURNS} WHERE id = %s AND attempt = %s AND status IN ({', '.join(['%s'] * len(ACTIVE))})"
_COUNT = f"UPDATE {_SESSIONS} SET last_seq = last_seq + %s WHERE id = %s"
_COUNTED = f"SELECT last_seq, workspace_id FROM {_SESSIONS} WHERE id = %s"
_INSERT = f"INSERT INTO {_EVENTS} ({', '.join(field.column for field in _WRITTEN)}) VALUES "
_ROW = f"({', '.join(['%s'] * len(_WRITTEN))})"


def lock_held(turn_id: UUID, attempt: int) -> bool:
    """Whether a turn runs in this attempt; if so its row is locked for the rest of the transaction."""
    locking = " FOR UPDATE" if connection.features.has_select_for_update else ""
    with connection.cursor() as cursor:
        cursor.execute(_HELD + locking, [_TURN_ID.get_db_prep_value(turn_id, connection), attempt, *ACTIVE])
        return cursor.fetchone() is not None


def count(session_id: UUID, more: int) -> tuple[int, int]:
    """The number of the last of so many more events, and the workspace of their session."""
    pk = _SESSION_ID.get_db_prep_value(session_id, connection)
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [more, pk])
        cursor.execute(_COUNTED, [pk])
        found = cursor.fetchone()
    if found is None:
        raise Session.DoesNotExist(f"session {session_id}")
    last, workspace_id = found
    return last, workspace_id


def insert(events: Sequence[SessionEvent]) -> None:
    values = [
        field.get_db_prep_save(field.pre_save(event, add=True), connection)
        for event in events
        for field in _WRITTEN
    ]
    with connection.cursor() as cursor:
        cursor.execute(_INSERT + ", ".join([_ROW] * len(events)), values)

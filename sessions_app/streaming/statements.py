"""The statements that each call of a tool waits for, written out: those of the event log, of which two rows
come with each call, and the look at the session of a turn that goes before each decision.

To make them from querysets takes four times as long as to run them. What is put together here are names of
our own tables and columns.
"""

# ruff: noqa: S608

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Model

from sessions_app.metadata import Metadata
from sessions_app.models import Session, SessionEvent, Turn
from sessions_app.models.turn import ACTIVE


def _columns(model: type[Model]) -> SimpleNamespace:
    return SimpleNamespace(**{field.name: field.column for field in model._meta.concrete_fields})


_TURNS, _SESSIONS, _EVENTS = (model._meta.db_table for model in (Turn, Session, SessionEvent))
_TURN_ID, _SESSION_ID = Turn._meta.pk, Session._meta.pk
_WRITTEN = [field for field in SessionEvent._meta.concrete_fields if not field.primary_key]
_turn, _session = _columns(Turn), _columns(Session)

_IS_HELD = (
    f"turn.{_turn.id} = %s AND turn.{_turn.attempt} = %s "
    f"AND turn.{_turn.status} IN ({', '.join(['%s'] * len(ACTIVE))})"
)
_HELD = f"SELECT 1 FROM {_TURNS} turn WHERE {_IS_HELD}"
_STANDING = (
    f"SELECT session.{_session.metadata}, session.{_session.has_read_strangers} FROM {_TURNS} turn "
    f"JOIN {_SESSIONS} session ON session.{_session.id} = turn.{_turn.session} WHERE {_IS_HELD}"
)
_COUNT = (
    f"UPDATE {_SESSIONS} SET {_session.last_seq} = {_session.last_seq} + %s WHERE {_session.id} = %s "
    f"RETURNING {_session.last_seq}, {_session.workspace}"
)
_INSERT = f"INSERT INTO {_EVENTS} ({', '.join(str(field.column) for field in _WRITTEN)}) VALUES "
_ROW = f"({', '.join(['%s'] * len(_WRITTEN))})"


class Standing(NamedTuple):
    """Of a session: what people have allowed it by now, and whether it has read what strangers wrote."""

    metadata: Metadata
    has_read_strangers: bool


def standing_if_held(turn_id: UUID, attempt: int) -> Standing | None:
    """How the session of a turn stands; None where this attempt does not hold the turn any more."""
    with connection.cursor() as cursor:
        cursor.execute(_STANDING, _of_hold(turn_id, attempt))
        row = cursor.fetchone()
    return None if row is None else Standing(json.loads(row[0]), bool(row[1]))


def lock_held(turn_id: UUID, attempt: int) -> bool:
    """Whether this attempt holds the turn; if so, the row is locked for the rest of the transaction."""
    locking = " FOR UPDATE" if connection.features.has_select_for_update else ""
    with connection.cursor() as cursor:
        cursor.execute(_HELD + locking, _of_hold(turn_id, attempt))
        return cursor.fetchone() is not None


def _of_hold(turn_id: UUID, attempt: int) -> tuple[Any, ...]:
    return _TURN_ID.get_db_prep_value(turn_id, connection), attempt, *ACTIVE


def count(session_id: UUID, more: int) -> tuple[int, int]:
    """The number of the last of so many more events, and the workspace of their session."""
    pk = _SESSION_ID.get_db_prep_value(session_id, connection)
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [more, pk])
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

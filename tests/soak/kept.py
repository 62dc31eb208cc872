"""What is left in the database file when everything has stopped: the rows, and no opinion of the server's."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID


@dataclass(frozen=True)
class KeptTurn:
    id: str
    session: str
    status: str
    attempt: int
    restarts: int
    is_leased: bool
    messages: tuple[str, ...]  # but for those of the platform


@dataclass(frozen=True)
class KeptEvent:
    session: str
    seq: int
    turn: str
    type: str
    payload: dict[str, Any]


@dataclass(frozen=True)
class Kept:
    turns: list[KeptTurn]
    events: list[KeptEvent]

    def turns_of(self, session: str) -> list[KeptTurn]:
        return [turn for turn in self.turns if turn.session == session]

    def events_of(self, session: str) -> list[KeptEvent]:
        return [event for event in self.events if event.session == session]


def read(home: Path) -> Kept:
    with _database(home / "db.sqlite3") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return Kept(list(_turns(database)), list(_events(database)))


@contextmanager
def _database(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        yield database


def _turns(database: sqlite3.Connection) -> Iterator[KeptTurn]:
    messages: dict[str, tuple[str, ...]] = {}
    spoken = (
        "SELECT turn_id, content FROM sessions_app_message WHERE source != 'platform' ORDER BY created_at"
    )
    for turn, content in database.execute(spoken):
        messages[turn] = (*messages.get(turn, ()), content)
    columns = "id, session_id, status, attempt, restarts, boot IS NOT NULL OR leased_at IS NOT NULL"
    for turn, session, status, attempt, restarts, is_leased in database.execute(
        f"SELECT {columns} FROM sessions_app_turn ORDER BY session_id, opened_seq"
    ):
        said = messages.get(turn, ())
        yield KeptTurn(_id(turn), _id(session), status, attempt, restarts, bool(is_leased), said)


def _events(database: sqlite3.Connection) -> Iterator[KeptEvent]:
    columns = "session_id, seq, turn_id, type, payload"
    order = "ORDER BY session_id, seq"
    for session, seq, turn, kind, payload in database.execute(
        f"SELECT {columns} FROM sessions_app_sessionevent {order}"
    ):
        yield KeptEvent(_id(session), seq, _id(turn), kind, json.loads(payload))


def _id(hexadecimal: str | None) -> str:
    return str(UUID(hexadecimal)) if hexadecimal else ""

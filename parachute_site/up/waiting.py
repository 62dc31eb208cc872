"""Before there is a token the process of the bots waits here, without Django: that is 16 MB instead of 72.

It asks the rows for no more than whether anybody has entered one. What it cannot ask for it leaves to Django,
which says what is wrong.
"""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote, urlsplit

from parachute_site.env import Environment

LOOKS_EVERY = 2.0  # seconds
IS_THERE = "SELECT 1 FROM bots_app_bot WHERE sealed <> '' LIMIT 1"


def wait_for_a_token(environment: Environment, *, looks_every: float = LOOKS_EVERY) -> None:
    never = threading.Event()
    while not has_token(environment):
        never.wait(looks_every)


def has_token(environment: Environment) -> bool:
    if any(access.token for access in environment.bots.values()):
        return True
    url = environment.database_url
    if url is None:
        return _in_sqlite(environment.home / "db.sqlite3")
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return _in_sqlite(Path(unquote(parts.path).removeprefix("/")))
    return _in_postgres(url) if parts.scheme in ("postgres", "postgresql") else True


def _in_sqlite(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5)) as rows:
            return rows.execute(IS_THERE).fetchone() is not None
    except sqlite3.OperationalError:  # its tables are being made, or it is busy
        return False


def _in_postgres(url: str) -> bool:
    import psycopg  # 12 MB

    try:
        with psycopg.connect(url, connect_timeout=5) as rows:
            return rows.execute(IS_THERE).fetchone() is not None
    except psycopg.errors.UndefinedTable:
        return False
    except psycopg.Error:
        return True

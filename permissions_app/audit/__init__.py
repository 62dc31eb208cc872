"""Every decision, request, answer and grant, as a row that nobody can change unseen. See docs/audit.md.

`record(entry)` is all that others call. It returns at once, never raises, and may be called from any thread
and any loop; inside a transaction it is `record_on_commit`, so that nothing is told that did not happen.
"""

from collections.abc import Callable
from pathlib import Path
from threading import Lock

from django.conf import settings
from django.db import transaction

from permissions_app.audit.appending import append
from permissions_app.audit.entry import PLATFORM, Entry
from permissions_app.audit.spool import Spool
from permissions_app.audit.writer import Writer
from permissions_app.models.audit import AuditKind, Outcome

__all__ = ["PLATFORM", "AuditKind", "Entry", "Outcome", "flush", "record", "record_on_commit", "spool"]

_making = Lock()
_writer: Writer | None = None


def record(entry: Entry) -> None:
    _sink(entry)


def record_on_commit(entry: Entry) -> None:
    transaction.on_commit(lambda: record(entry), robust=True)


def flush(within: float = 5.0) -> bool:
    """Waits until what was recorded in this process is written; whether it came to that."""
    return _writer is None or _writer.flush(within)


def spool() -> Spool:
    return Spool(Path(settings.PARACHUTE_HOME) / "audit")


def _write(entry: Entry) -> None:
    global _writer
    if _writer is None:
        with _making:
            _writer = _writer or Writer(append, spool())
    _writer.record(entry)


_sink: Callable[[Entry], None] = _write

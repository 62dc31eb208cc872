"""Beside the gate's own path: a bounded queue, and a thread that appends what is in it, some at a time."""

import atexit
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from queue import Empty, Full, Queue
from time import monotonic

from django.db import close_old_connections

from permissions_app.audit.entry import Entry, Finished
from permissions_app.audit.spool import Spool

log = logging.getLogger(__name__)

MOST_WAITING = 5_000
MOST_TOGETHER = 200
ENDS_WITHIN = 5.0  # seconds, when the process ends

Append = Callable[[Sequence[Finished]], None]


class Writer:
    """What is handed over is in the database soon; where that is away, or the queue is full, in the spool.
    Only what is still in the queue when the process is killed is lost."""

    def __init__(self, append: Append, spool: Spool, *, most_waiting: int = MOST_WAITING) -> None:
        self._append, self._spool = append, spool
        self._queue: Queue[Entry] = Queue(most_waiting)
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._in_hand: list[Entry] = []

    def record(self, entry: Entry) -> None:
        """Returns at once and never raises: a decision is not held up by being written down."""
        try:
            self._start()
            self._queue.put_nowait(entry)
        except Full:
            self._keep([finished(entry)], "the queue is full")
        except Exception:
            log.exception("An audit record was not handed over: %r", entry)

    def flush(self, within: float = ENDS_WITHIN) -> bool:
        """Waits until all that was handed over is written or spooled; whether it came to that."""
        deadline = monotonic() + within
        with self._queue.all_tasks_done:
            while self._queue.unfinished_tasks:
                left = deadline - monotonic()
                if left <= 0:
                    return False
                self._queue.all_tasks_done.wait(left)
        return True

    def close(self) -> None:
        """The last of the process: what the database does not take in time goes to the spool."""
        if self._thread is None or self.flush():
            return
        # What the thread has in hand may be written after all: then it is there already when it is taken up.
        left = [*self._in_hand, *self._taken(None)]
        self._keep([finished(entry) for entry in left], "the process ends")

    def _start(self) -> None:
        if self._thread is not None and self._thread.is_alive():
            return
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                if self._thread is None:
                    atexit.register(self.close)
                self._thread = threading.Thread(target=self._write_on, name="audit", daemon=True)
                self._thread.start()

    def _write_on(self) -> None:
        while True:
            batch = self._in_hand = self._taken(self._queue.get())
            try:
                self._write([finished(entry) for entry in batch])
            except Exception:
                log.exception("%d audit records could not be kept.", len(batch))
            finally:
                self._in_hand = []
                for _ in batch:
                    self._queue.task_done()

    def _taken(self, first: Entry | None) -> list[Entry]:
        batch = [first] if first is not None else []
        while len(batch) < MOST_TOGETHER:
            try:
                batch.append(self._queue.get_nowait())
            except Empty:
                break
        return batch

    def _write(self, entries: list[Finished]) -> None:
        try:
            close_old_connections()
            self._append(entries)
            self._spool.take_up(self._append)
        except Exception as error:  # noqa: BLE001 - whatever it was, they go to the spool
            self._keep(entries, type(error).__name__)  # what is in the database already is not written twice

    def _keep(self, entries: list[Finished], why: str) -> None:
        if not entries:
            return
        try:
            self._spool.write(entries)
        except OSError:
            for entry in entries:  # the last place that is left
                log.critical("An audit record could be kept nowhere (%s): %s", why, entry.as_line())
        else:
            log.warning("%d audit records wait in the spool: %s.", len(entries), why)


def finished(entry: Entry) -> Finished:
    """Arguments that cannot be read, nested a thousand deep perhaps, shall not cost the record."""
    try:
        return entry.finished()
    except (ValueError, TypeError, RecursionError) as error:
        return replace(entry, arguments={"unreadable": type(error).__name__}).finished()

"""Where the curator runs: a thread with a loop of its own in the background worker, begun when it is first
needed, with all that it imports. One run at a time; what waits is in the rows.

Tasks only ring: the worker's few threads are for sweeps, which must not wait for a model.
"""

import asyncio
import logging
import os
import sys
import threading
from importlib import import_module

log = logging.getLogger(__name__)

ENDS_WITHIN = 5.0  # seconds
NICENESS = 10


class CuratorWorker:
    def __init__(self, name: str) -> None:
        self._name = name
        self._loop = asyncio.new_event_loop()
        self._rung = asyncio.Event()
        self._thread: threading.Thread | None = None
        self._work: asyncio.Task[None] | None = None
        self._state = threading.Lock()
        self._is_closed = False

    def ring(self) -> None:
        """There may be a run that waits."""
        with self._state:
            if self._is_closed:
                return
            if self._thread is None or not self._thread.is_alive():  # it may have failed to begin
                self._thread = threading.Thread(target=self._run, name="curator", daemon=True)
                self._thread.start()
        self._loop.call_soon_threadsafe(self._rung.set)

    def close(self) -> None:
        """What runs goes back to those that wait."""
        with self._state:
            self._is_closed = True
            if self._thread is None:
                return
        self._loop.call_soon_threadsafe(self._cancel)
        self._thread.join(ENDS_WITHIN)

    def _cancel(self) -> None:
        if self._work is not None:
            self._work.cancel()

    def _run(self) -> None:
        if sys.platform == "linux":  # where it is this thread's alone, and of what this thread starts
            os.nice(NICENESS)  # chats go first
        serving = import_module("curator_app.serving")
        self._work = self._loop.create_task(serving.serve(self._name, self._rung))
        try:
            self._loop.run_until_complete(self._work)
        except asyncio.CancelledError:
            log.info("The curator ends.")
        except Exception:
            log.exception("The curator cannot begin; the next ring tries again.")


_running: CuratorWorker | None = None


def begin(name: str) -> None:
    global _running
    _running = CuratorWorker(name)


def ring() -> None:
    if _running is None:
        raise RuntimeError("The curator was rung for in a process that is no background worker.")
    _running.ring()


def end() -> None:
    if _running is not None:
        _running.close()

"""The bus: rings for whoever follows a session. Rows are the truth; whoever hears a ring may re-read.

Coroutines use `current()`. Sync code rings with `ring`, after commit: it hands over to a loop of its own,
returns at once and never fails, because a lost ring costs a reader some seconds and not an event. What it has
to know of an `unfinished` text it waits for, and not in a transaction.
"""

import asyncio
import atexit
import logging
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, wait
from importlib import import_module
from time import monotonic
from typing import Any, cast
from uuid import UUID

from django.conf import settings

from sessions_app.streaming.bus import tails
from sessions_app.streaming.bus.base import Bus, Listener, Payload

__all__ = [
    "LISTS",
    "Bus",
    "Listener",
    "Payload",
    "current",
    "ring",
    "ring_deleted",
    "ring_lists",
    "session_topic",
    "turn_topic",
    "unfinished",
]

log = logging.getLogger(__name__)

LISTS = "sessions"  # the topic of whoever shows a list of sessions; `workspace` says in whose list
RINGS_TOGETHER = 0.05  # seconds
ENDS_WITHIN = 3.0  # seconds, when the process ends
READ_WITHIN = 5.0  # seconds; a bus that is away says so in two

_starting = threading.Lock()
_in_order = asyncio.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_not_rung_yet = set[Future[None]]()
_lists_ring_at: dict[int, float] = {}


def current() -> Bus:
    return cast(Bus, import_module(settings.PARACHUTE_BUS).bus)


def session_topic(session_id: UUID) -> str:
    return f"session.{session_id.hex}"


def turn_topic(turn_id: UUID) -> str:
    """Orders for the worker that runs a turn, such as: abort."""
    return f"turn.{turn_id.hex}"


def ring(topic: str, payload: Payload) -> Future[None]:
    return _handed_over(_publish(current(), topic, payload))


def ring_deleted(session_id: UUID) -> None:
    """For the readers of a session whose rows are gone: there is nothing to read again."""
    ring(session_topic(session_id), {"type": tails.DELETED})


def ring_lists(workspace_id: int) -> None:
    """One ring for all that changes in a moment: what one transaction changed is one read for each list. A
    ring that is left out comes before the one that it is left out for, so none is lost."""
    now = monotonic()
    if now >= _lists_ring_at.get(workspace_id, 0.0):
        _lists_ring_at[workspace_id] = now + RINGS_TOGETHER
        _handed_over(_ring_lists(workspace_id))


def unfinished(session_id: UUID) -> Payload | None:
    """The text that is being written in a session, so far, as one delta. None between texts, and where the
    bus has lost it or cannot be asked."""
    reading = asyncio.run_coroutine_threadsafe(current().tail(session_topic(session_id)), _ringing())
    try:
        tail = reading.result(READ_WITHIN)
    except Exception:
        reading.cancel()
        log.exception("What is being written in session %s could not be read.", session_id)
        return None
    return tail[0] if tail else None


async def _ring_lists(workspace_id: int) -> None:
    await asyncio.sleep(RINGS_TOGETHER)
    await _publish(current(), LISTS, {"workspace": workspace_id})


async def _publish(bus: Bus, topic: str, payload: Payload) -> None:
    """One ring after the other: two that overtake each other would send every reader to the rows."""
    async with _in_order:
        try:
            await bus.publish(topic, payload)
        except Exception:
            log.exception("A ring for %s was lost", topic)


def _handed_over(ringing: Coroutine[Any, Any, None]) -> Future[None]:
    rung = asyncio.run_coroutine_threadsafe(ringing, _ringing())
    _not_rung_yet.add(rung)
    rung.add_done_callback(_not_rung_yet.discard)
    return rung


def _ringing() -> asyncio.AbstractEventLoop:
    global _loop
    with _starting:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            thread = threading.Thread(target=_loop.run_forever, name="bell", daemon=True)
            thread.start()
            atexit.register(_ring_out, _loop, thread)
        return _loop


def _ring_out(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """The last of the process. Python ends a thread that is left over by an exception, and the process dies
    of it where that is loading a module of foreign code, as for its first ring."""
    wait(set(_not_rung_yet), ENDS_WITHIN)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(ENDS_WITHIN)

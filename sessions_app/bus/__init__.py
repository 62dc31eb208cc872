"""The bus: rings for whoever follows a session. Rows are the truth; whoever hears a ring may re-read.

Coroutines use `current()`. Sync code rings with `ring`, after commit: it hands over to a loop of its own,
returns at once and never fails, because a lost ring costs a reader some seconds and not an event.
"""

import asyncio
import logging
import threading
from concurrent.futures import Future
from importlib import import_module
from typing import cast
from uuid import UUID

from django.conf import settings

from sessions_app.bus.base import Bus, Listener, Payload

__all__ = ["Bus", "Listener", "Payload", "current", "ring", "session_topic", "turn_topic"]

log = logging.getLogger(__name__)

_starting = threading.Lock()
_in_order = asyncio.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def current() -> Bus:
    return cast(Bus, import_module(settings.PARACHUTE_BUS).bus)


def session_topic(session_id: UUID) -> str:
    return f"session.{session_id.hex}"


def turn_topic(turn_id: UUID) -> str:
    """Orders for the worker that runs a turn, such as: abort."""
    return f"turn.{turn_id.hex}"


def ring(topic: str, payload: Payload) -> Future[None]:
    return asyncio.run_coroutine_threadsafe(_publish(current(), topic, payload), _ringing())


async def _publish(bus: Bus, topic: str, payload: Payload) -> None:
    """One ring after the other: two that overtake each other would send every reader to the rows."""
    async with _in_order:
        try:
            await bus.publish(topic, payload)
        except Exception:
            log.exception("A ring for %s was lost", topic)


def _ringing() -> asyncio.AbstractEventLoop:
    global _loop
    with _starting:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="bell", daemon=True).start()
        return _loop

"""What a Celery worker process does beside its tasks, by the queue that it serves."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING
from uuid import uuid4

from celery import Celery
from celery.beat import EmbeddedService
from django.conf import settings
from django.db import close_old_connections

from agents_app.workers import living
from curator_app import worker as curator

if TYPE_CHECKING:
    from agents_app.workers.turn_worker import TurnWorker

log = logging.getLogger(__name__)

_ended = threading.Event()
_turns: TurnWorker | None = None


def begin(app: Celery, name: str) -> None:
    global _turns
    if "turns" in app.amqp.queues.consume_from:
        from agents_app.workers import turn_worker  # here, because the others have no use for 20 MB of it

        _turns = turn_worker.start(name)
    else:
        curator.begin(name)
        threading.Thread(target=_say_alive, args=(name,), name="alive", daemon=True).start()
    if settings.PARACHUTE_BEAT:
        EmbeddedService(app, thread=True, scheduler_cls="agents_app.schedules.beat:HouseClock").start()
        app.send_task("sessions_app.tasks.index_changed")  # beat waits a minute for its first
    log.info("%s is ready.", name)


def stop_soon() -> None:
    """Called in Celery's signal handler, which must not wait: Celery itself waits for the tasks that run the
    turns."""
    _ended.set()
    if _turns is not None:
        _turns.drain(settings.PARACHUTE_DRAIN)


def end() -> None:
    """Called when the last task has ended, and the process is about to."""
    curator.end()
    if _turns is not None:
        _turns.close()


def _say_alive(name: str) -> None:
    boot = uuid4()
    while True:
        try:
            close_old_connections()
            living.say_alive(name, boot, "background")
        except Exception:
            log.exception("The worker could not say that it lives; trying again.")
        if _ended.wait(living.SAID_EVERY):
            living.say_goodbye(name, boot)
            return

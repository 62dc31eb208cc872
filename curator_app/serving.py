"""The curator's own door and runtime, open while its worker is, and what waits, one run after another."""

import asyncio
import logging
from importlib import import_module
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError

from agents_app.model import chosen
from agents_app.model.door import Door
from agents_app.runtimes.base import Runtime
from curator_app import memory, services
from curator_app.models import CuratorRun
from curator_app.observing import observe
from sessions_app.models import Session
from sessions_app.threads import in_thread

log = logging.getLogger(__name__)


async def serve(name: str, rung: asyncio.Event) -> None:
    """Until it is cancelled."""
    socket = Path(settings.PARACHUTE_RUN) / f"curator-{name.partition('@')[0]}.sock"
    door = Door(socket, await in_thread(chosen.current)())
    await door.open()
    runtime = _runtime(door)
    try:
        while True:
            await rung.wait()
            rung.clear()
            await _look_at_what_waits(door, runtime)
    finally:
        await runtime.close()
        await door.close()


async def _look_at_what_waits(door: Door, runtime: Runtime) -> None:
    try:
        while run := await in_thread(services.claim_next)():
            await _look_for_key(door)
            await observe(run, runtime)
            await in_thread(_let_go_if_deleted)(run)
    except Exception:
        log.exception("The curator stopped in the middle of what waits; it goes on with the next ring.")


async def _look_for_key(door: Door) -> None:
    """What a person enters counts from the next run on."""
    try:
        await door.lead_to(await in_thread(chosen.current)())
    except DatabaseError:
        log.exception("Which model answers could not be read; the curator asks the one before.")


def _let_go_if_deleted(run: CuratorRun) -> None:
    """Whoever deleted the chat removed the curator's folder at once. This is what was written since."""
    if not Session.objects.filter(pk=run.session_id).exists():
        memory.remove(run.session_id)


def _runtime(door: Door) -> Runtime:
    if settings.PARACHUTE_RUNTIME == "claude":
        made: Runtime = import_module("agents_app.runtimes.claude.runtime").ClaudeRuntime(door, most_warm=0)
        return made
    scripted: Runtime = import_module(settings.PARACHUTE_RUNTIME).runtime
    return scripted

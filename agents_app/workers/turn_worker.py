"""What a worker process holds besides Celery: one event loop in which all of its turns run."""

import asyncio
import logging
import resource
import threading
from concurrent.futures import CancelledError
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.db import Error as DatabaseProblem

from agents_app.egress.door import Egress
from agents_app.model import chosen
from agents_app.model.door import Door
from agents_app.runtimes.base import Runtime
from agents_app.sandboxes import walls
from agents_app.turns.held import leases, ringing
from agents_app.turns.held.holder import Holder
from agents_app.turns.running.run import run_waiting_turns
from agents_app.workers import living
from sessions_app.threads import in_thread

log = logging.getLogger(__name__)

STOPS_WITHIN = 2.0  # seconds, once turns were told to end
MOST_FILES = 65_536  # open at once: each repository of a vault takes one while an agent works there
LOOKS_EVERY = 1.0  # seconds, for a key that was entered while a turn runs

_running: "TurnWorker | None" = None


def _may_open_many_files() -> None:
    """As many as this user may. Most systems say 1,024 until a program asks for more."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if most == resource.RLIM_INFINITY else min(most, MOST_FILES)
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


class TurnWorker:
    def __init__(self, name: str) -> None:
        self.holder = Holder(name)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="turns", daemon=True)
        self._turns: set[asyncio.Task[None]] = set()
        self._runtime: Runtime
        self._door: Door
        self._egress: Egress
        self._look = asyncio.Lock()
        self._renewing: asyncio.Task[None]
        self._looking: asyncio.Task[None]

    def start(self) -> None:
        _may_open_many_files()
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()

    def serve(self, session_id: UUID) -> None:
        """Returns when nothing waits in the session any more. Called by many threads at once."""
        if self.holder.is_draining:
            ringing.ring_workers(session_id)  # for a worker that stays, or the next start
            return
        try:
            asyncio.run_coroutine_threadsafe(self._serve(session_id), self._loop).result()
        except CancelledError:
            log.info("Session %s goes back to the queue.", session_id)

    def drain(self, grace: float) -> None:
        """Takes no more. Its turns may end within the grace; the others are put back, and whoever is left, or
        the next start, goes on with them."""
        self.holder.is_draining = True
        self._loop.call_soon_threadsafe(self._loop.call_later, grace, self._cancel_turns)

    def close(self) -> None:
        self.holder.is_draining = True
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()

    async def _serve(self, session_id: UUID) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._turns.add(task)
        try:
            await self._look_for_key()
            await run_waiting_turns(session_id, self.holder, self._runtime)
        finally:
            self._turns.discard(task)

    def _cancel_turns(self) -> None:
        for turn in self._turns:
            turn.cancel()

    async def _open(self) -> None:
        run, name = Path(settings.PARACHUTE_RUN), self.holder.name.partition("@")[0]
        self._door = Door(run / f"door-{name}.sock", await in_thread(chosen.current)())
        await self._door.open()
        self._egress = Egress(run / f"egress-{name}")
        self._runtime = _runtime(self._door, self._egress)
        await in_thread(leases.release_predecessor)(self.holder)
        await asyncio.to_thread(walls.sweep)
        await self._say_alive()
        # What waits may have been rung for in the worker's last life, when nobody took it any more.
        await in_thread(leases.ring_for_waiting)(timedelta())
        self._renewing = asyncio.create_task(self._renew())
        self._looking = asyncio.create_task(self._keep_looking())

    async def _look_for_key(self) -> None:
        """As a turn begins, and each second while one runs: what a person enters counts from then on, and no
        request to the model waits for a query."""
        if chosen.is_fixed():
            return
        try:
            async with self._look:  # or an older look that ends later would lead back
                await self._door.lead_to(await in_thread(chosen.current)())
        except DatabaseProblem:
            log.exception("Which model answers could not be read; the door leads where it led.")

    async def _keep_looking(self) -> None:
        while not chosen.is_fixed():
            await asyncio.sleep(LOOKS_EVERY)
            if self._turns:
                await self._look_for_key()

    async def _renew(self) -> None:
        """In the loop and not beside it: a loop that is stuck shall lose its turns."""
        while True:
            await asyncio.sleep(living.SAID_EVERY)
            try:
                await self._say_alive()
            except Exception:
                log.exception("The leases were not renewed; trying again.")

    async def _say_alive(self) -> None:
        await in_thread(leases.renew)(self.holder)
        await in_thread(living.say_alive)(self.holder.name, self.holder.boot, "turns")

    async def _close(self) -> None:
        self._cancel_turns()
        if self._turns:
            _, left = await asyncio.wait(tuple(self._turns), timeout=STOPS_WITHIN)
            if left:
                log.warning("%s turns did not end in time; the next start takes them up.", len(left))
        self._renewing.cancel()
        self._looking.cancel()
        await self._runtime.close()
        await self._door.close()
        self._egress.close()
        await in_thread(living.say_goodbye)(self.holder.name, self.holder.boot)


def start(name: str) -> TurnWorker:
    global _running
    _running = TurnWorker(name)
    _running.start()
    return _running


def running() -> TurnWorker:
    if _running is None:
        raise RuntimeError(
            "A turn was rung for in a process that is no turn worker. Start it with `-Q turns`."
        )
    return _running


def _runtime(door: Door, egress: Egress) -> Runtime:
    """The SDK is imported here, when a turn worker starts, and by nobody else."""
    if settings.PARACHUTE_RUNTIME == "claude":
        runtime: Runtime = import_module("agents_app.runtimes.claude.runtime").ClaudeRuntime(door, egress)
        return runtime
    chosen: Runtime = import_module(settings.PARACHUTE_RUNTIME).runtime
    return chosen

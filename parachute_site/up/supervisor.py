"""Keeps processes alive, and ends them with whatever they started."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from parachute_site.up import pipes, processes
from parachute_site.up.output import Output
from parachute_site.up.plan import Child

SHORTEST_WAIT, LONGEST_WAIT = 0.5, 30.0
LONG_ENOUGH = 15.0  # seconds; whoever lived that long has not failed to start
DRAIN = 6.0  # seconds that web and workers get to end by themselves
LAST_DRAIN = 1.0  # and those that serve them, and each step after
ONE_SIGNAL = 1.0  # `make` passes on what its whole group got already: within this time it is the same signal


@dataclass(eq=False)
class Running:
    child: Child
    popen: subprocess.Popen[bytes]
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class Supervisor:
    """One event loop, and one place that collects the dead: `_collect`, on SIGCHLD."""

    def __init__(self, output: Output) -> None:
        self.told_to_stop = asyncio.Event()
        self._output = output
        self._running: dict[int, Running] = {}
        self._keepers: set[asyncio.Task[None]] = set()
        self._readers: set[asyncio.Task[None]] = set()
        self._someone_ended = asyncio.Event()
        self._told_at = 0.0

    def listen(self) -> None:
        processes.become_subreaper()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self._collect)
        for told in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if told == signal.SIGHUP and signal.getsignal(told) == signal.SIG_IGN:
                continue  # started with nohup
            loop.add_signal_handler(told, self._told, told)

    def keep(self, child: Child) -> None:
        """Start it, and start it again whenever it ends."""
        _spin(self._keep(child), self._keepers)

    async def once(self, child: Child) -> tuple[int, bytes, bytes]:
        """Run it to its end: its exit code, and what it wrote, which goes nowhere else."""
        running = self._start(child, stderr=subprocess.PIPE)
        stdout, stderr = pipes.of(running.popen)
        written, errors = await asyncio.gather(pipes.everything(stdout), pipes.everything(stderr))
        await running.ended.wait()
        return running.popen.returncode, written, errors

    async def stop(self) -> None:
        """Within 10 s: those who work, then those who serve them, then whatever any of them left."""
        for keeper in self._keepers:
            keeper.cancel()
        await self._end([one for one in self._running.values() if not one.child.leaves_last], within=DRAIN)
        await self._end(list(self._running.values()), within=LAST_DRAIN)
        await self._sweep()
        if self._readers:
            await asyncio.wait(self._readers, timeout=LAST_DRAIN)

    async def _keep(self, child: Child) -> None:
        clock = asyncio.get_running_loop().time
        wait = SHORTEST_WAIT
        while True:
            began = clock()
            how = await self._live(child)
            await self._sweep()
            if clock() - began >= LONG_ENOUGH:
                wait = SHORTEST_WAIT
            self._output.say(f"{child.name} {how}; starting it again in {wait:g} s")
            await asyncio.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT)

    async def _live(self, child: Child) -> str:
        try:
            running = self._start(child, stderr=subprocess.STDOUT)
        except OSError as error:
            return f"could not be started ({error.strerror})"
        self._output.say(f"{child.name} started, process {running.popen.pid}")
        _spin(self._read(running), self._readers)
        await running.ended.wait()
        return _how_it_ended(running.popen.returncode)

    def _start(self, child: Child, *, stderr: int) -> Running:
        # A session of its own: the terminal's Ctrl-C is for `up`, which stops them in order.
        popen = subprocess.Popen(
            child.argv,
            env=child.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
        )
        self._running[popen.pid] = Running(child, popen)
        return self._running[popen.pid]

    async def _read(self, running: Running) -> None:
        async for line in pipes.lines(pipes.of(running.popen)[0]):
            if line.strip():
                self._output.line(running.child.name, line)

    async def _end(self, running: list[Running], *, within: float) -> None:
        for one in running:
            processes.kill(one.popen.pid, signal.SIGTERM)
        if await _all_ended(running, within):
            return
        for one in running:
            if not one.ended.is_set():
                self._output.say(f"{one.child.name} did not stop within {within:g} s and is killed")
                processes.kill(one.popen.pid)
        await _all_ended(running, LAST_DRAIN / 2)

    async def _sweep(self) -> None:
        """Kill what a process that ended left to us, with all that it started, until nothing is left."""
        left: set[int] = set()
        try:
            async with asyncio.timeout(LAST_DRAIN):
                while left := self._left_to_us():
                    self._someone_ended.clear()
                    for pid in left:
                        processes.kill(pid)
                    await self._someone_ended.wait()
        except TimeoutError:
            self._output.say(f"these processes do not end: {sorted(left)}")

    def _left_to_us(self) -> set[int]:
        self._collect()
        parent_of = processes.parents()
        orphans = {pid for pid, parent in parent_of.items() if parent == os.getpid()} - self._running.keys()
        return processes.with_descendants(orphans, parent_of)

    def _collect(self) -> None:
        """Everyone who ended: ours are told so, the orphans that came to us are buried."""
        with suppress(ChildProcessError):
            while (dead := os.waitpid(-1, os.WNOHANG))[0]:
                if running := self._running.pop(dead[0], None):
                    running.popen.returncode = os.waitstatus_to_exitcode(dead[1])
                    running.ended.set()
        self._someone_ended.set()

    def _told(self, how: signal.Signals) -> None:
        now = asyncio.get_running_loop().time()
        if not self.told_to_stop.is_set():
            self._output.say(f"stopping ({how.name})")
            self._told_at = now
            self.told_to_stop.set()
        elif now - self._told_at > ONE_SIGNAL:
            self._output.say(f"killing everything ({how.name} again)")
            for pid in self._running:
                processes.kill(pid)


def _spin(work: Coroutine[None, None, None], tasks: set[asyncio.Task[None]]) -> None:
    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)


async def _all_ended(running: Iterable[Running], within: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(within):
            for one in running:
                await one.ended.wait()
            return True
    return False


def _how_it_ended(code: int) -> str:
    names = {each.value: each.name for each in signal.Signals}
    return f"was ended by {names.get(-code, -code)}" if code < 0 else f"ended with exit code {code}"

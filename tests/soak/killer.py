"""Who dies, and when. All of it follows from a seed, but for that only what runs can be killed."""

import asyncio
import os
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from parachute_site.up import processes
from tests.processes.running import RunningUp

NAMES = ("web", "turns", "background", "valkey")
PAUSE = 3.0  # seconds between two kills, on average; some come at once, as misfortunes do
LONGEST_PAUSE = 9.0
CLI = re.compile(r"\S+/_bundled/claude .*--output-format stream-json .*--(?:resume|session-id)[ =](\S+)")


@dataclass
class Kill:
    name: str
    at: float
    recoveries: list[float] = field(default_factory=list)  # seconds, of each session that waited


@dataclass(frozen=True)
class Blow:
    pause: float
    order: tuple[str, ...]  # the first of them that runs is killed


def blows(dice: random.Random, seconds: float) -> Iterator[Blow]:
    """Each of them dies once before any dies twice; after that it is chance alone."""
    left, first = seconds, dice.sample(NAMES, len(NAMES))
    while (pause := min(dice.expovariate(1 / PAUSE), LONGEST_PAUSE)) < left:
        left -= pause
        order = dice.sample(NAMES, len(NAMES))
        yield Blow(pause, (first.pop(), *order) if first else tuple(order))


class Killer:
    def __init__(self, up: RunningUp, tell: Callable[[Kill], None]) -> None:
        self.kills: list[Kill] = []
        self.complaints: list[str] = []
        self._up = up
        self._tell = tell

    async def go(self, dice: random.Random, seconds: float) -> None:
        for blow in blows(dice, seconds):
            await asyncio.sleep(blow.pause)
            running = await asyncio.to_thread(self._up.left)
            self._look_for_two_holders(running)
            self._strike(blow, running)

    def _strike(self, blow: Blow, running: Mapping[int, str]) -> None:
        for name in blow.order:
            if (pid := self._up.pid_of(name)) in running:
                kill = Kill(name, time.time())
                os.kill(pid, signal.SIGKILL)
                self.kills.append(kill)
                self._tell(kill)
                return

    def _look_for_two_holders(self, running: Mapping[int, str]) -> None:
        """Two would go on side by side. So what looks like two is looked at again: one that ends in this very
        moment loses its wall first, and what it starts has its words until it has its own."""
        if max(clis(running).values(), default=0) > 1:
            still = self._up.left()
            both = {pid: command for pid, command in running.items() if still.get(pid) == command}
            for session, count in clis(both).items():
                if count > 1:
                    self.complaints.append(f"{session}: {count} CLIs at once: {sorted(both)}")


def clis(running: Mapping[int, str]) -> Counter[str]:
    """How many CLIs each session has. A wall around one says the same words, and is another program."""
    parent_of = processes.parents()
    session_of = {pid: found[1] for pid, command in running.items() if (found := CLI.match(command))}
    return Counter(
        session for pid, session in session_of.items() if session_of.get(parent_of.get(pid, 0)) != session
    )

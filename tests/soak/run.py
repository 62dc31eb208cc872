"""One soak, from the start of `up` to what is left of it.

1. Start the real thing against a scripted model.
2. Conversations and the killer, beside each other, for so many seconds.
3. No more kills: everything is answered within SETTLES_WITHIN.
4. Stop; no process is left.
5. Check the rows, and what each reader saw of them.
"""

import asyncio
import random
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from statistics import median
from time import monotonic

import aiohttp

from tests.processes.program import Program
from tests.processes.running import ROOT, RunningUp
from tests.scripted_model import ScriptedModel
from tests.soak import checks, kept, script
from tests.soak.killer import Kill, Killer
from tests.soak.load import Conversation
from tests.soak.report import Report

SETTLES_WITHIN = 120.0  # seconds
GOES_ON_WITHIN = 40.0  # the median; whoever waits for a lease of 45 s to run out was not taken up, but found

# `up` as it is, but for one number: what has lived a second has not failed to start. Else whatever is killed
# again and again is left alone for half a minute each time, and soon nothing runs that could be killed.
UP = (
    sys.executable,
    "-c",
    "import sys; from parachute_site import up; from parachute_site.up import supervisor; "
    "supervisor.LONG_ENOUGH = 1.0; sys.exit(up.main(sys.argv[1:]))",
)


def soak(folder: Path, variables: Mapping[str, str], *, seconds: float, sessions: int, seed: int) -> Report:
    """Bounded: it ends by itself, whatever the server does."""
    with ScriptedModel() as model:
        up = RunningUp(UP, folder, {**variables, "PYTHONPATH": str(ROOT), "ANTHROPIC_BASE_URL": model.url})
        report = Report(seed, up.home)
        try:
            up.wait_ready()
            script.give_to(model, up.vault)
            key = Program(up).key
            asyncio.run(_Soak(up, key, report).go(seconds=seconds, sessions=sessions))
            _stop(up, report)
        finally:
            up.end_at_any_price()
    report.kept = kept.read(up.home)
    report.problems += checks.problems(report.conversations, report.kept, script.runs(up.vault))
    report.problems += (
        f"half of the sessions went on {seconds:.1f} s or more after {name} was killed"
        for name, found in report.recoveries().items()
        if found and (seconds := median(found)) > GOES_ON_WITHIN
    )
    return report


class _Soak:
    def __init__(self, up: RunningUp, key: str, report: Report) -> None:
        self._up = up
        self._key = key
        self._report = report
        self._enough = asyncio.Event()

    async def go(self, *, seconds: float, sessions: int) -> None:
        headers = {"Authorization": f"Bearer {self._key}"}
        async with aiohttp.ClientSession(
            self._up.address, headers=headers, connector=aiohttp.TCPConnector(limit=0, force_close=True)
        ) as web:
            dice = random.Random(self._report.seed)
            talks = [Conversation(web, random.Random(dice.random())) for _ in range(sessions)]
            self._report.conversations = talks
            quiet = monotonic()
            with suppress(TimeoutError):  # who is not answered by then, the checks find
                async with asyncio.timeout(seconds + SETTLES_WITHIN), asyncio.TaskGroup() as tasks:
                    for talk in talks:
                        tasks.create_task(talk.go(self._enough))
                    await self._kill(dice, seconds)
                    quiet = monotonic()
            self._report.settled = monotonic() - quiet
            self._report.problems += [complaint for talk in talks for complaint in talk.complaints]

    async def _kill(self, dice: random.Random, seconds: float) -> None:
        killer = Killer(self._up, self._tell)
        self._report.kills = killer.kills
        await killer.go(dice, seconds)
        self._report.problems += killer.complaints
        self._enough.set()

    def _tell(self, kill: Kill) -> None:
        for talk in self._report.conversations:
            talk.suffers(kill)


def _stop(up: RunningUp, report: Report) -> None:
    report.stopped = up.stop()
    if left := up.left():
        report.problems.append(f"processes are left: {left}")

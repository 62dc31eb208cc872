"""What a wall adds to a new chat: the same chat at each trust level, beside the one that has no wall.

The aims are 30 and 400 ms on the machine that they were set on, where a chat without a wall says its first
text after 330. Others take three times as long for all of it, so what is judged is the ratio. And where other
work on the same processor makes one chat in two half as slow again, the slower ones tell of that and not of
the wall: what counts is the median of the quicker half, on both sides.
"""

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import django

from tests.bench.measures import Row
from tests.bench.ours import NotAnswered, Ours
from tests.engines import engine_here
from tests.engines.missing import NotTested

TIMES, ROUNDS = 20, 30
PAUSE = 0.3  # seconds in which the chat before puts its things away: no person is as quick
BUBBLEWRAP_AIM, CONTAINER_AIM = 1 + 30 / 330, 1 + 400 / 330


@dataclass(frozen=True)
class AnEngine:
    variables: Mapping[str, str]  # by which a server finds it
    why_not: str = "no container engine runs here"


@contextmanager
def an_engine() -> Iterator[AnEngine]:
    """As the tests have it."""
    with ExitStack() as ends:
        try:
            here = ends.enter_context(engine_here("docker"))
        except NotTested as why:
            yield AnEngine({}, str(why))
            return
        yield AnEngine({**here.engine.environment, "PARACHUTE_SANDBOX_IMAGE": here.engine.image})


async def by_itself(folder: Path) -> Row:
    """In this process. Django is set up only here: nothing else of the bench needs it."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    from tests.bench.runtime import first_texts

    took = await first_texts(folder, ("none", "bubblewrap"), TIMES)
    return _beside("bubblewrap by itself", took["bubblewrap"], took["none"], BUBBLEWRAP_AIM)


async def added(ours: Ours, no_engine: str) -> list[Row]:
    """Each level beside the one without a wall, in series of two: what a container leaves to be put away is
    not to fall upon another level."""
    return [
        await _beside_none(ours, "vault", "new chat, bubblewrap and the way to the web", BUBBLEWRAP_AIM),
        await _beside_none(ours, "sandboxed", "new chat in a container", CONTAINER_AIM, no_engine),
    ]


async def _beside_none(ours: Ours, level: str, name: str, aim: float, why_not: str = "") -> Row:
    """In turn, so that a moment in which the machine is busy falls upon both of them, and forth and back."""
    took: dict[str, list[float]] = {"full": [], level: []}
    for round_ in range(ROUNDS):
        for each, times in list(took.items())[:: -1 if round_ % 2 else 1]:
            await asyncio.sleep(PAUSE)
            try:
                times.append(await ours.new_chat("in words", trustLevel=each) * 1e3)
            except NotAnswered as answer:
                if answer.code != "sandbox_unavailable" or not why_not:
                    raise
                return Row(name, why_not=why_not)
    return _beside(name, took[level], took["full"], aim)


def _beside(name: str, walled: list[float], without: list[float], aim: float) -> Row:
    alone = _quicker_half(without)
    return Row(name, _quicker_half(walled), alone, alone * aim)


def _quicker_half(times: list[float]) -> float:
    return median(sorted(times)[: len(times) // 2])

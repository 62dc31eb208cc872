"""What a wall adds to a new chat: the same chat at each trust level, beside the one that has no wall."""

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

TIMES, ROUNDS = 9, 30
PAUSE = 0.3  # seconds in which the chat before puts its things away: no person is as quick
BUBBLEWRAP_AIM, CONTAINER_AIM = 30.0, 400.0  # ms


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

    without, walled = await first_texts(folder, ("none", "bubblewrap"), TIMES)
    return Row("bubblewrap by itself", walled, without, without + BUBBLEWRAP_AIM)


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
    without = median(took["full"])
    return Row(name, median(took[level]), without, without + aim)

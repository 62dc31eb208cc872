"""What a wall adds to a new chat: the same chat at each trust level, beside the one that has no wall."""

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

TIMES, ROUNDS = 9, 16
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
    """In turn, so that a moment in which the machine is busy falls upon all of them, and forth and back, as
    each begins while the one before still puts its things away."""
    took: dict[str, list[float]] = {"full": [], "vault": [], "sandboxed": []}
    for round_ in range(ROUNDS):
        for level, times in list(took.items())[:: -1 if round_ % 2 else 1]:
            try:
                times.append(await ours.new_chat("in words", trustLevel=level) * 1e3)
            except NotAnswered as answer:
                if answer.code != "sandbox_unavailable":
                    raise
                del took[level]
    without = median(took["full"])
    row = Row(
        "new chat, bubblewrap and the way to the web",
        median(took["vault"]),
        without,
        without + BUBBLEWRAP_AIM,
    )
    if "sandboxed" not in took:
        return [row, Row("new chat in a container", why_not=no_engine)]
    return [row, Row("new chat in a container", median(took["sandboxed"]), without, without + CONTAINER_AIM)]

"""The runtime without the server around it, and without the way to the web. To be imported when Django is set
up, in a process that measures nothing else with it."""

from pathlib import Path
from time import perf_counter

from agents_app.model.demo.wire import say
from agents_app.model.door import Door
from agents_app.runtimes.base import Run
from agents_app.runtimes.claude.runtime import ClaudeRuntime
from agents_app.sandboxes import named
from permissions_app.rules.setting import Trust
from tests.contracts.stage import Stage, door_to
from tests.scripted_model import ScriptedModel


async def first_texts(folder: Path, walls: tuple[str, ...], times: int) -> dict[str, list[float]]:
    """Milliseconds until a new chat's first text behind each wall, in turn."""
    took: dict[str, list[float]] = {wall: [] for wall in walls}
    with ScriptedModel(say("A few words.")) as model:
        async with door_to(model.url) as door:
            for wall in walls * times:
                took[wall].append(await _first_text(folder, wall, door) * 1e3)
    return took


async def _first_text(folder: Path, wall: str, door: Door) -> float:
    runtime = ClaudeRuntime(door, most_warm=0)
    stage = Stage(runtime, named(wall), folder / "vault", folder / "home", Trust.VAULT)
    heard = list[float]()

    async def hear(run: Run) -> None:
        await stage.has_heard_text.wait()
        heard.append(perf_counter())

    began = perf_counter()
    await stage.play("say it", hear)
    return heard[0] - began

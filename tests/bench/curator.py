"""What a chat is kept waiting by the curator, which looks at the one before it meanwhile."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median

from agents_app.model.demo.wire import say
from tests.bench.measures import Row
from tests.bench.ours import Ours
from tests.scripted_model import ScriptedModel, calls

TIMES = 7
LOOKS_WITHIN = 120  # seconds, until it has looked at all that it was rung for


def script(model: ScriptedModel) -> None:
    model.script("in words", [say("A few words, and no more than that.")])
    tools = {"update_title": {"title": "A few words"}, "log_activity": {"summary": "Said a few words."}}
    steps = [calls(f"mcp__curator__{name}", **given) for name, given in tools.items()]
    model.script("Exchange number:", [*steps, say("done")])


async def beside_a_chat(ours: Ours, home: Path) -> list[Row]:
    """A chat is begun, then another, and more is said in that one: right after the first, and while the
    curator looks at the first. By turns it is on and off: a machine has its moods."""
    _switch(home, is_on=True)
    await ours.new_chat("in words")
    await _until(home, _is_over)  # the first of all pays for imports
    took: dict[tuple[str, bool, bool], list[float]] = {}
    for is_on, is_later in ((False, False), (True, False), (True, True)) * TIMES:
        _switch(home, is_on=is_on)
        await ours.new_chat("in words")
        _switch(home, is_on=False)
        if is_later:
            await _until(home, lambda found: "running" in found)
        async with ours.web() as web:
            first, session = await ours.say(web, "in words")
            took.setdefault(("new chat", is_on, is_later), []).append(first)
            more = [(await ours.say(web, "in words", session))[0] for _ in range(2)]
            took.setdefault(("next message", is_on, is_later), []).extend(more)
        looked_at = await _until(home, _is_over)
    assert looked_at["done"] == 2 * TIMES + 1, looked_at
    return [
        Row(
            f"{name}, {when} (alone: off)",
            median(took[name, True, is_later]) * 1e3,
            median(took[name, False, False]) * 1e3,
        )
        for is_later, when in ((False, "curator is rung"), (True, "curator at work"))
        for name in ("new chat", "next message")
    ]


def _switch(home: Path, *, is_on: bool) -> None:
    with closing(sqlite3.connect(home / "db.sqlite3")) as rows, rows:
        rows.execute("UPDATE sessions_app_workspace SET curates = ?", (is_on,))


def _is_over(found: dict[str, int]) -> bool:
    return bool(found) and not found.keys() & {"queued", "running"}


async def _until(home: Path, is_so: Callable[[dict[str, int]], bool]) -> dict[str, int]:
    """How many runs there are of each status."""
    count = "SELECT status, count(*) FROM curator_app_curatorrun GROUP BY status"
    async with asyncio.timeout(LOOKS_WITHIN):
        while True:
            with closing(sqlite3.connect(home / "db.sqlite3")) as rows:
                found = dict(rows.execute(count).fetchall())
            if is_so(found):
                return found
            await asyncio.sleep(0.1)

"""What a chat is kept waiting by the curator, which looks at the one before it meanwhile."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from statistics import median

from agents_app.model.demo.wire import say
from tests.bench.measures import Row
from tests.bench.ours import Ours
from tests.scripted_model import ScriptedModel, calls

TIMES = 9
LOOKS_WITHIN = 120  # seconds, until it has looked at all that it was rung for


def script(model: ScriptedModel) -> None:
    model.script("in words", [say("A few words, and no more than that.")])
    tools = {"update_title": {"title": "A few words"}, "log_activity": {"summary": "Said a few words."}}
    steps = [calls(f"mcp__curator__{name}", **given) for name, given in tools.items()]
    model.script("Exchange number:", [*steps, say("done")])


async def beside_a_chat(ours: Ours, home: Path) -> list[Row]:
    """New chats, one after another, of which none is looked at, or each while the next one is answered; and
    the second and third message of a chat whose first is looked at."""
    rows = dict[bool, list[float]]()
    _switch(home, is_on=True)
    await ours.new_chat("in words")
    await _until_all_is_looked_at(home)  # the first of all pays for imports
    for is_on in (False, True):
        _switch(home, is_on=is_on)
        await ours.new_chat("in words")
        new = [await ours.new_chat("in words") for _ in range(TIMES)]
        next_ones = [each for _ in range(TIMES // 3) for each in await ours.next_messages("in words", 2)]
        rows[is_on] = [median(new) * 1e3, median(next_ones) * 1e3]
    looked_at = await _until_all_is_looked_at(home)
    assert looked_at >= TIMES, f"the curator looked at {looked_at} chats only"
    names = ("new chat, curator on (alone: off)", "next message, curator on (alone: off)")
    return [Row(name, on, off) for name, off, on in zip(names, rows[False], rows[True], strict=True)]


def _switch(home: Path, *, is_on: bool) -> None:
    with closing(sqlite3.connect(home / "db.sqlite3")) as rows, rows:
        rows.execute("UPDATE sessions_app_workspace SET curates = ?", (is_on,))


async def _until_all_is_looked_at(home: Path) -> int:
    """How many that were."""
    count = "SELECT status, count(*) FROM curator_app_curatorrun GROUP BY status"
    async with asyncio.timeout(LOOKS_WITHIN):
        while True:
            with closing(sqlite3.connect(home / "db.sqlite3")) as rows:
                found = dict(rows.execute(count).fetchall())
            if found and not found.keys() & {"queued", "running"}:
                return int(found.get("done", 0))
            await asyncio.sleep(0.2)

"""`make bench`: what it costs to start, to stand by and to answer, on this machine, as a table and as JSON.

A start is measured as a person has it: from the command to the first "ready" of `/api/health/ready`, Python's
own start and the imports included. The stack stands by without the demo model, as it does with a key. Answers
are measured beside the SDK alone, against one scripted model in one run: ratios, since machines differ.

`make bench ARGS="gate walls"` measures these parts alone; the parts are those of `MEASURED`.
"""

import asyncio
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from types import MappingProxyType

from agents_app.model.demo.wire import say
from tests.bench import curator, door, gate, measures, page, searching, waiting, walls
from tests.bench.alone import Alone
from tests.bench.measures import Row
from tests.bench.ours import Ours
from tests.bench.waiting import pss
from tests.browser.house import House, Shell, signed_in
from tests.processes.program import Program
from tests.processes.running import REAL, RunningUp, free_port
from tests.scripted_model import ScriptedModel

SECOND_START_AIM = 6_000.0  # ms
STANDING_BY_AIM = 330.0  # MB
SETTLES_IN = 5.0
PARTS = ("valkey", "web", "turns", "background")


def main(wanted: list[str]) -> int:
    if unknown := set(wanted) - set(MEASURED):
        sys.exit(f"There is no {', '.join(sorted(unknown))}. There are: {', '.join(MEASURED)}.")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        (Path(folder) / "vault").mkdir()
        rows = [row for name in wanted or MEASURED for row in MEASURED[name](Path(folder))]
    for row in rows:
        print(row)
    print(json.dumps([asdict(row) for row in rows]))
    return 0 if all(row.holds for row in rows if row.is_promise) else 1


def standing(folder: Path) -> list[Row]:
    with running(folder, "http://127.0.0.1:9") as (_, first):  # nobody answers there, and nobody is asked
        pass
    with running(folder, "http://127.0.0.1:9") as (up, second):
        threading.Event().wait(SETTLES_IN)
        names = {up.pid: "up"} | {up.pid_of(name): name for name in PARTS}
        memory = {name: pss([pid]) for pid, name in names.items()}
    return [
        Row("first start, ready after", first * 1e3),
        Row("second start, ready after", second * 1e3, aim=SECOND_START_AIM, is_promise=True),
        *(Row(f"standing by, {name}", size, unit="MB") for name, size in memory.items()),
        Row("standing by, all (PSS)", sum(memory.values()), aim=STANDING_BY_AIM, unit="MB", is_promise=True),
    ]


def answering(folder: Path) -> list[Row]:
    note = folder / "vault/Note.md"
    note.write_text("A note.\n")
    with ScriptedModel() as model, running(folder, model.url) as (up, _):
        measures.script(model, str(note))
        ours = Ours(up.address, Program(up).key)
        alone = Alone(model.url, folder / "vault")
        asyncio.run(ours.new_chat("in words"))  # the first of all pays for imports
        return [
            asyncio.run(waiting.resting_sessions(ours, up)),
            asyncio.run(waiting.replay(ours, folder / "home")),
            *asyncio.run(waiting.waiting_readers(ours, up)),
            *asyncio.run(measures.first_texts(ours, alone)),
            asyncio.run(measures.abort(ours, model)),
            *asyncio.run(measures.delay_of_a_delta(ours, model)),
            *asyncio.run(measures.many_readers(ours, model, readers=300, streams=20)),
            *asyncio.run(measures.chats_at_once(ours, alone)),
        ]


def curated(folder: Path) -> list[Row]:
    """Everywhere else it is off: it would be at work beside what is measured."""
    with ScriptedModel() as model, running(folder, model.url, {"PARACHUTE_CURATOR": "1"}) as (up, _):
        curator.script(model)
        ours = Ours(up.address, Program(up).key)
        return asyncio.run(curator.beside_a_chat(ours, folder / "home"))


def gate_of_calls(folder: Path) -> list[Row]:
    (folder / "vault/Note.md").write_text("A note.\n")
    with ScriptedModel() as model, running(folder, model.url) as (up, _):
        gate.script(model, folder / "vault")
        ours = Ours(up.address, Program(up).key)
        quiet = gate.by_itself()
        return [*quiet, *asyncio.run(gate.in_turns(ours, folder / "home", thread=quiet[0].alone))]


def behind_walls(folder: Path) -> list[Row]:
    by_itself = asyncio.run(walls.by_itself(folder))
    with (
        walls.an_engine() as engine,
        ScriptedModel() as model,
        running(folder, model.url, engine.variables) as (up, _),
    ):
        model.script("in words", [say("A few words, and no more than that.")])
        ours = Ours(up.address, Program(up).key)
        asyncio.run(ours.new_chat("in words"))  # the first of all pays for imports, and for the walls' probes
        return [by_itself, *asyncio.run(walls.added(ours, engine.why_not))]


def page_of_messages(folder: Path) -> list[Row]:
    """In a home of its own: its first start prints the link by which a person gets in."""
    (folder / "page/vault").mkdir(parents=True)
    with (
        ScriptedModel() as model,
        running(folder / "page", model.url) as (up, _),
        closing(Shell(environment(folder / "page", model.url))) as shell,
    ):
        return page.of_200_messages(House(up, model, Program(up), signed_in(up), shell))


def at_the_door(folder: Path) -> list[Row]:
    with running(folder, "http://127.0.0.1:9") as (up, _):
        return asyncio.run(door.under_attack(up))


MEASURED: dict[str, Callable[[Path], list[Row]]] = {
    "standing": standing,
    "answering": answering,
    "curator": curated,
    "gate": gate_of_calls,
    "walls": behind_walls,
    "page": page_of_messages,
    "door": at_the_door,
    "search": searching.measured,
}


@contextmanager
def running(
    folder: Path, model: str, more: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[RunningUp, float]]:
    """An `up`, and how long it took until it was ready."""
    began = monotonic()
    up = RunningUp(REAL, folder, {**environment(folder, model), **more})
    try:
        up.wait_ready()
        yield up, monotonic() - began
    finally:
        up.stop()


def environment(folder: Path, model: str) -> dict[str, str]:
    port_file = folder / "port"
    if not port_file.exists():
        port_file.write_text(str(free_port()))
    return {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "PARACHUTE_HOME": str(folder / "home"),
        "VAULT_PATH": str(folder / "vault"),
        "PORT": port_file.read_text(),
        "ANTHROPIC_BASE_URL": model,
        "PARACHUTE_CURATOR": "0",
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

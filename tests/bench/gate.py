"""What the gate costs a call: the rules by themselves, and all of it in a turn, as its audit rows say.

The aim is 1 ms at the median, on the machine that it was set on. Others take up to four times as long for
everything, so it is judged beside the answer of a thread in the same run, which took 0.04 ms there.
"""

import asyncio
import os
import sqlite3
import tempfile
import threading
from contextlib import closing
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter
from typing import Any

import django

from agents_app.model.demo.wire import Reply, ToolUse, say
from permissions_app.gate import Gate
from permissions_app.rules.decision import Decision, Verdict
from permissions_app.rules.setting import Setting, Trust
from permissions_app.rules.tools import ToolCall
from tests.bench.measures import Row
from tests.bench.ours import Ours
from tests.scripted_model import ScriptedModel

AIM = 25  # times as long as a thread takes to answer
ROUNDS = 100
TURNS = 20
PATIENCE = 30.0

ALL = {"replace_all": True}
SHORT = "ls -la {old}"
LONG = """set -e
cd {vault} && mkdir -p build/a build/b
for file in *.md; do
  echo "$file: $(wc -l < "$file") lines" >> build/log.txt
done
cat > build/pears{number}.py <<'END'
def pears() -> list[str]:
    return ["Conference", "Comice"]
END
find . -name '*.py' -not -path './.git/*' | xargs -r grep -ln 'def ' | sort -u | head -20
sed -i -e 's/Comice/Williams/' build/pears{number}.py && python3 -m compileall -q build >/dev/null || true
rm -rf build New{number}.md"""


def ten_calls(vault: Path, number: int) -> list[tuple[str, dict[str, Any]]]:
    """A mix as agents make it, of another file each time. What it writes it removes."""
    note, new = str(vault / "Note.md"), str(vault / f"New{number}.md")
    return [
        ("Read", {"file_path": note}),
        ("Glob", {"pattern": "**/*.md"}),
        ("Grep", {"pattern": "note", "output_mode": "content", "glob": "*.md"}),
        ("Bash", {"command": SHORT.format(old=f"Old{number}.md")}),
        ("Write", {"file_path": new, "content": "A new note.\n" * 200}),
        ("Edit", {"file_path": new, "old_string": "A new", "new_string": "Another"} | ALL),
        ("Read", {"file_path": new, "limit": 20}),
        ("Bash", {"command": "git status --short 2>/dev/null | head -20; echo looked"}),
        ("Bash", {"command": LONG.format(vault=vault, number=number)}),
        ("Bash", {"command": f"python3 -c 'print(1 + {number})'"}),
    ]


def by_itself() -> list[Row]:
    """In this process: the rules beside what it costs to answer from a thread at all, and with the row that
    says whose turn it is. Django is set up only here: nothing else of the bench needs it."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    from tests.bench.gate_and_row import latencies, running_turn

    with tempfile.TemporaryDirectory(prefix="gate-") as folder:
        (vault := Path(folder) / "vault").mkdir()
        (vault / "Note.md").write_text("A note.\n")
        turn = running_turn(Path(folder))
        calls = [ToolCall(f"toolu_{n}", *call) for n in range(ROUNDS) for call in ten_calls(vault, n)]
        rules = asyncio.run(_rules(vault, calls))
        took = asyncio.run(latencies(turn, _setting(vault), calls))
        return [rules, _beside("gate, the rules and the turn's row", median(took) * 1e3, rules.alone)]


async def _rules(vault: Path, calls: list[ToolCall]) -> Row:
    gate = Gate(_setting(vault), standing=lambda setting: setting, on_denied=unheard)
    took, alone = list[float](), list[float]()
    for call in calls:
        began = perf_counter()
        decision = await gate(call, vault)
        took.append(perf_counter() - began)
        assert decision.verdict is Verdict.ALLOW, decision
        began = perf_counter()
        await asyncio.to_thread(lambda: None)
        alone.append(perf_counter() - began)
    return _beside("gate, the rules (alone: a thread)", median(took) * 1e3, median(alone) * 1e3)


def _beside(name: str, ours: float, thread: float | None) -> Row:
    assert thread is not None
    return Row(name, ours, thread, AIM * thread)


def _setting(vault: Path) -> Setting:
    return Setting(
        trust=Trust.VAULT,
        behind_wall=True,
        operator=False,
        vault=vault,
        working_directory=vault,
        home=vault.parent / "home",
        scratch=None,
        own_config=None,
        own_servers=frozenset(),
    )


async def unheard(call: ToolCall, decision: Decision) -> None: ...


def script(model: ScriptedModel, vault: Path) -> None:
    for number in range(1 + TURNS):
        uses = (Reply((ToolUse(name, given),)) for name, given in ten_calls(vault, number))
        model.script(f"ten calls {number},", [*uses, say("Done.")])


async def in_turns(ours: Ours, home: Path, *, thread: float | None) -> list[Row]:
    """With its look at the turn's row, while the rest of the turn works too. The first turn of all pays for
    imports."""
    async with ours.web() as web:
        for number in range(1 + TURNS):
            await ours.say(web, f"ten calls {number}, please")
    took = sorted((await asyncio.to_thread(_latencies, home / "db.sqlite3", 10 + TURNS * 10))[10:])
    return [
        _beside("gate, a call in a turn, median", median(took), thread),
        Row("gate, a call in a turn, 9 of 10", took[len(took) * 9 // 10]),
    ]


def _latencies(file: Path, expected: int) -> list[float]:
    """The audit is written a moment later."""
    until = monotonic() + PATIENCE
    while monotonic() < until:
        with closing(sqlite3.connect(file, timeout=20)) as database:
            rows = database.execute(
                "SELECT latency_ms FROM permissions_app_auditrow WHERE kind = 'decision' AND latency_ms > 0 "
                "ORDER BY id"
            ).fetchall()
        if len(rows) >= expected:
            return [latency for (latency,) in rows]
        threading.Event().wait(0.2)
    raise AssertionError(f"{len(rows)} decisions of {expected} were written to the audit in {PATIENCE} s.")

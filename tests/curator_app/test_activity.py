import fcntl
import json
import os
import subprocess
import sys
import threading
from datetime import UTC, date, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from curator_app import activity
from sessions_app.access.models import Workspace
from sessions_app.files import folders

ROOT = Path(__file__).resolve().parents[2]
DAY = date(2026, 11, 20)
WRITES = """
import sys
from datetime import date
from pathlib import Path
from curator_app import activity
vault, who = sys.argv[1:]
print(flush=True)
sys.stdin.readline()
for number in range(200):
    activity.append(Path(vault), date(2026, 11, 20), {"of": who, "n": number, "text": "é" * 300})
"""


def lines(vault: Path) -> list[str]:
    return (vault / "Daily" / ".activity" / f"{DAY}.jsonl").read_text().splitlines()


def run_together(vault: Path, *programs: tuple[str, ...]) -> None:
    """Each a process with what it is given; none begins before all are there."""
    environment = {"DJANGO_SETTINGS_MODULE": "tests.settings", "PATH": "/usr/bin:/bin"}
    begin = "import django; from tests import settings; django.setup()\n"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", begin + program, str(vault), *given],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for program, *given in programs
    ]
    for each in running:
        assert each.stdout
        assert each.stdout.readline()
    for each in running:
        assert each.stdin
        each.stdin.write(b"\n")
        each.stdin.flush()
    for each in running:
        each.communicate(timeout=60)
    assert {each.returncode for each in running} == {0}


def test_several_processes_write_whole_lines(vault: Path) -> None:
    run_together(vault, *((WRITES, who) for who in ("a", "b", "c")))
    written = [json.loads(line) for line in lines(vault)]
    for who in ("a", "b", "c"):
        assert [line["n"] for line in written if line["of"] == who] == list(range(200))


TAKES_OUT = """
import sys
from datetime import date
from pathlib import Path
from uuid import UUID
from curator_app import activity
vault, gone, kept = sys.argv[1:]
print(flush=True)
sys.stdin.readline()
for number in range(100):
    for each in (gone, kept):
        activity.append(Path(vault), date(2026, 11, 20), {"session_id": each, "n": number, "text": "é" * 300})
    activity.take_away(Path(vault), date(2026, 11, 20), [UUID(gone)])
"""


def test_what_is_taken_out_while_others_append_costs_none_of_their_lines(vault: Path) -> None:
    gone, kept = (str(uuid4()) for _ in range(2))
    foreign = b'\xff\xfe no text\r\n{"session_id": 7}\n["' + gone.encode() + b'"]\n{"session_id": \n\n'
    file = vault / "Daily" / ".activity" / f"{DAY}.jsonl"
    file.parent.mkdir(parents=True)
    file.write_bytes(foreign)
    run_together(vault, (TAKES_OUT, gone, kept), (WRITES, "a"), (WRITES, "b"))
    written = file.read_bytes()
    assert written.startswith(foreign)
    told = [json.loads(line) for line in written.removeprefix(foreign).splitlines()]
    assert [line["n"] for line in told if line.get("session_id") == kept] == list(range(100))
    for who in ("a", "b"):
        assert [line["n"] for line in told if line.get("of") == who] == list(range(200))
    assert len(told) == 500


def test_a_last_line_without_an_end_gets_one(vault: Path) -> None:
    activity.append(vault, DAY, {"n": 1})
    file = vault / "Daily" / ".activity" / f"{DAY}.jsonl"
    file.write_text(file.read_text().rstrip("\n"))
    activity.append(vault, DAY, {"n": 2})
    assert [json.loads(line)["n"] for line in lines(vault)] == [1, 2]


@pytest.mark.parametrize("swapped", ["Daily", "Daily/.activity", f"Daily/.activity/{DAY}.jsonl"])
def test_nothing_is_written_through_a_link(vault: Path, tmp_path: Path, swapped: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    target = outside if not swapped.endswith("jsonl") else outside / "file"
    target.touch()
    (vault / swapped).parent.mkdir(parents=True, exist_ok=True)
    (vault / swapped).symlink_to(target)
    with pytest.raises(OSError, match=r"\w"):
        activity.append(vault, DAY, {"n": 1})
    assert [path for path in outside.rglob("*") if path.is_dir() or path.read_text()] == []


def test_who_holds_the_file_locked_does_not_hold_us(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent of the vault can, for ever, and the server has few threads."""
    monkeypatch.setattr(folders, "LOCK_WAITS", 0.05)
    activity.append(vault, DAY, {"n": 1})
    refusals: list[OSError] = []

    def append() -> None:
        try:
            activity.append(vault, DAY, {"n": 2})
        except OSError as error:
            refusals.append(error)

    with (vault / "Daily" / ".activity" / f"{DAY}.jsonl").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        writer = threading.Thread(target=append, daemon=True)
        writer.start()
        writer.join(10)
        assert not writer.is_alive()
    assert "locked" in str(refusals[0])
    assert [json.loads(line)["n"] for line in lines(vault)] == [1]


def test_what_lies_there_and_is_no_file_is_named(vault: Path) -> None:
    folder = vault / "Daily" / ".activity"
    folder.mkdir(parents=True)
    os.mkfifo(folder / f"{DAY}.jsonl")
    with pytest.raises(OSError) as refused:
        activity.append(vault, DAY, {"n": 1})
    assert "not a regular file" in (refused.value.strerror or "")


@pytest.mark.parametrize(
    ("zone", "day"),
    [("Pacific/Auckland", date(2026, 11, 21)), ("America/Los_Angeles", date(2026, 11, 20)), ("", None)],
)
def test_the_day_is_the_workspaces(zone: str, day: date | None) -> None:
    evening = datetime(2026, 11, 20, 20, tzinfo=UTC)
    found = activity.today(Workspace(time_zone=zone), evening)
    assert found == day if day else abs((found - evening.date()).days) <= 1


def test_an_unknown_zone_is_utc() -> None:
    night = datetime(2026, 11, 20, 23, 59, tzinfo=UTC)
    assert activity.today(Workspace(time_zone="Nowhere/At all"), night) == date(2026, 11, 20)

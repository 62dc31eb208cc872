"""All behind a wall are stopped by somebody who is there for a moment, and whom an agent cannot use."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from agents_app.launcher import standing_still, still
from agents_app.launcher.ended import Process, marked
from agents_app.sandboxes.base import VaultBusy
from tests.contracts.runs import PATIENCE, Runs
from tests.contracts.test_two_agents import agent
from tests.contracts.walled import on_bubblewrap

PYTHON = sys.executable  # a plain user's launcher has another one
TICKS = "until [ -e Notes/enough ]; do sleep 0.01; echo >> Notes/ticks; done"
# It knows who comes by a word in their line, and has one in its own service that it sees by the same.
LOOKS = """
sh -c "until [ -e Notes/enough ]; do sleep 0.01; done; : own come""rs" &
until [ -e Notes/enough ]; do
    for each in /proc/[0-9]*; do
        line=$(tr '\\0\\n' '  ' < "$each/cmdline")
        case $line in *come""rs*) echo "$line" >> Notes/seen ;; esac
    done
    echo >> Notes/looks
done
"""


@pytest.fixture(autouse=True)
def in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(still, "STILL_WITHIN", 0.5)


def goes_on(file: Path) -> None:
    before, deadline = file.stat().st_size, time.monotonic() + PATIENCE
    while file.stat().st_size == before:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@on_bubblewrap
@pytest.mark.parametrize(
    "what", ["kill -STOP $$", "kill -KILL $$", "exit 3", "kill -STOP $PPID 1 $$", "exec /nothing"]
)
def test_who_keeps_them_from_being_stopped_keeps_the_next_from_starting(
    walled: Runs, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """As an agent would that finds them: it may hold them up, or end them. Nobody waits for ever."""
    monkeypatch.setattr(still, "STOP_ALL", what)
    with agent(walled, TICKS, "Notes/ticks") as mark:
        goes_on(ticks := walled.vault / "Notes/ticks")
        with pytest.raises(VaultBusy, match="does not stand still"), standing_still([mark]):
            raise AssertionError("They do not stand.")
        goes_on(ticks)


@on_bubblewrap
def test_an_agent_does_not_see_who_stops_it(walled: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would be of the host but for the processes around them."""
    with agent(walled, LOOKS, "Notes/looks") as mark:
        looked = f"$(wc -l < {walled.vault}/Notes/looks)"
        waits = f"until=$(({looked} + 3)); until [ {looked} -ge $until ]; do sleep 0.01; done; : comers"
        monkeypatch.setattr(still, "STOP_ALL", waits)
        before = (looks := walled.vault / "Notes/looks").stat().st_size
        with still._stopped_behind_walls(still._again(marked(mark)), time.monotonic() + 30) as problem:
            assert (problem, looks.stat().st_size >= before + 3) == ("", True)
    seen = (walled.vault / "Notes/seen").read_text().splitlines()
    assert seen and all("own comers" in line for line in seen)


FORKS = """
for each in 1 2 3; do (until [ -e Notes/enough ]; do sleep 0.02; echo >> Notes/ticks; done) & done
wait
"""


def first(mark: str) -> list[Process]:
    """Of those who are behind the wall. Outside there is one, who built it."""
    return sorted(marked(mark), key=lambda process: (int(process.started), process.pid))[1:2]


def none_is_left_standing(mark: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while left := [each.pid for each in still._again(marked(mark)) if each.stands]:
        assert time.monotonic() < deadline, left
        time.sleep(0.01)


@on_bubblewrap
def test_nobody_is_left_standing_who_was_stopped_in_vain(
    walled: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those whom the look before had not found are stopped from within, too."""
    looks = 0

    def one_of(mark: str) -> list[Process]:
        nonlocal looks
        looks += 1
        return first(mark) if looks == 1 else marked(mark)

    def only_once(_until: float, why: str = "") -> None:
        if why != "?":
            raise VaultBusy(why)

    monkeypatch.setattr(still, "STOP_ALL", "kill -STOP -1; exit 3")
    monkeypatch.setattr(still, "_wait", only_once)
    monkeypatch.setattr(still, "marked", one_of)
    with agent(walled, FORKS, "Notes/ticks") as mark:
        for _ in range(3):
            looks = 0
            with pytest.raises(VaultBusy, match="ended with 3"), standing_still([mark]):
                raise AssertionError("They do not stand.")
            none_is_left_standing(mark)
            goes_on(walled.vault / "Notes/ticks")


# It finds only the first one behind the wall, as `first` does.
STOPS_AND_WAITS = """
import sys
from agents_app.launcher import marked, standing_still, still
still.marked = lambda mark: sorted(marked(mark), key=lambda each: (int(each.started), each.pid))[1:2]
still.STOP_ALL = f"kill -STOP -1; echo > {sys.argv[2]}; sleep 0.3"
with standing_still(sys.argv[1:2]): pass
"""


@pytest.mark.parametrize("turn", range(3))
@on_bubblewrap
def test_nobody_is_left_standing_whose_worker_is_killed_meanwhile(walled: Runs, turn: int) -> None:
    sign = walled.vault / "Notes/stopped"  # root, behind the wall of another user, cannot make it
    with agent(walled, FORKS, "Notes/ticks") as mark:
        sign.touch()
        worker = subprocess.Popen(
            (PYTHON, "-c", STOPS_AND_WAITS, mark, str(sign)), cwd=Path(__file__).parents[2]
        )
        with worker:
            goes_on(sign)
            worker.kill()
        none_is_left_standing(mark)
        goes_on(walled.vault / "Notes/ticks")

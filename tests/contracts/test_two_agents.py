"""What an agent behind one wall can do for another, behind a wall that is built meanwhile."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agents_app.launcher import MARK, end_everything, new_mark
from agents_app.launcher.walled import STANDS
from agents_app.sandboxes import bubblewrap, container, neighbours, placeholders
from agents_app.sandboxes.base import Launch, VaultChanged
from agents_app.sandboxes.checks import CHANGED, checked, take_back
from agents_app.sandboxes.looking import look_through
from tests.contracts.runs import PATIENCE, Runs
from tests.contracts.walled import give, launch, locks_of, on_bubblewrap, project_of, run
from tests.plain_user import acting_as

STARTS = 12
WAIT = "touch Notes/mounted; until [ -e Notes/back ]; do sleep 0.01; done; "
HOPS = """
mkdir -p A B; mv Project A/x; touch Notes/hopping
until [ -e Notes/enough ]; do mv A/x B/x; mv B/x A/x; done
"""
PARKS = "mkdir {0}; mv Project {0}/x; {1}; touch Notes/parked; until [ -e Notes/enough ]; do sleep 0.01; done"


@contextmanager
def agent(walled: Runs, script: str, sign: str, patterns: tuple[str, ...] | None = None) -> Iterator[str]:
    """Its mark. It runs its script behind its wall, of which it was told, until there are Notes/enough."""
    mark = new_mark()
    environment = {"PATH": "/usr/bin:/bin", MARK: mark}
    given = launch(walled, script, patterns, environment=environment, tells=STANDS)
    stands_still = mark if walled.sandbox.name == "bubblewrap" else ""
    with acting_as(walled.vault.stat().st_uid):
        end = neighbours.tell(walled.vault, look_through(walled.vault), locks_of(walled), stands_still)
    try:
        with walled.started(given) as process:
            assert process.stderr and process.stderr.readline().strip() == STANDS
            wait_for(walled.vault / sign)
            yield mark
            (walled.vault / "Notes/enough").touch()
            process.wait(PATIENCE)
    finally:
        end_everything(mark)
        walled.sandbox.end(mark)
        end()


def wait_for(path: Path) -> None:
    for _ in range(PATIENCE * 100):
        if path.exists():
            return
        time.sleep(0.01)
    raise AssertionError(f"{path} never came")


def what_is_seen(walled: Runs, patterns: tuple[str, ...] | None) -> str:
    """By the next one."""
    try:
        return run(walled, "find . -name .env -exec cat {} +; echo ran", patterns).stdout
    except VaultChanged as error:
        return str(error)


# Not in containers: docker's own program may wait for one in vain whose mounts could not be made.
@on_bubblewrap
@pytest.mark.parametrize("patterns", [None, ()])
def test_what_one_moves_to_and_fro_the_next_does_not_see(
    walled: Runs, patterns: tuple[str, ...] | None
) -> None:
    project_of(walled)
    with agent(walled, HOPS, "Notes/hopping"):
        assert {what_is_seen(walled, patterns) for _ in range(STARTS)} == {"ran\n"}
    assert what_is_seen(walled, patterns) == "ran\n"


SWAPS = """
mkdir -p Z/Documents/objects; touch Z/Documents/HEAD; ln -s {outside} L; touch Notes/hopping
until [ -e Notes/enough ]; do mv Z y; mv L Z; mv Z L; mv y Z; done
"""


@on_bubblewrap
def test_what_one_lays_a_link_in_the_place_of_the_next_does_not_follow(walled: Runs) -> None:
    """It would have been bound into its wall, to be read and written."""
    outside = walled.vault.parent / "outside"
    (outside / "Documents").mkdir(parents=True)
    (outside / "Documents/private").write_text("SECRET")
    give(walled, outside)
    script = f"cat {outside}/Documents/private; echo EVIL > {outside}/Documents/evil; echo ran"
    with agent(walled, SWAPS.format(outside=outside), "Notes/hopping"):
        assert {run(walled, script).stdout for _ in range(STARTS)} == {"ran\n"}
    assert not (outside / "Documents/evil").exists()


@pytest.mark.parametrize("file", ["CLAUDE.md", ".mcp.json", ".claude/settings.json", ".vscode/tasks.json"])
def test_what_steers_and_was_put_away_keeps_the_next_from_starting(walled: Runs, file: str) -> None:
    """It would come back without a mount on it."""
    (path := walled.vault / "Project" / file).parent.mkdir(parents=True)
    path.write_text("good")
    give(walled, walled.vault / "Project")
    with agent(walled, PARKS.format(".ssh", "true"), "Notes/parked"):
        assert what_is_seen(walled, None) == neighbours.PUT_AWAY


@pytest.mark.parametrize("put", [(".ssh", "true"), ("C", "chmod 000 C"), (".aws", "chmod 755 .aws")])
@pytest.mark.parametrize("patterns", [None, ()])
def test_what_one_puts_away_to_take_it_out_later_keeps_the_next_from_starting(
    walled: Runs, put: tuple[str, str], patterns: tuple[str, ...] | None
) -> None:
    project_of(walled)
    with agent(walled, PARKS.format(*put), "Notes/parked"):
        assert what_is_seen(walled, patterns) == neighbours.PUT_AWAY
    assert what_is_seen(walled, patterns) == "ran\n"


@pytest.mark.parametrize("patterns", [None, ()])
def test_what_is_too_deep_for_one_is_not_brought_up_by_the_next(
    walled: Runs, patterns: tuple[str, ...] | None
) -> None:
    """The mask of the first lies on a deep folder, and the next could take things out of it."""
    project_of(walled)
    deep = "/".join(["d"] * 66)
    run(walled, f"mkdir -p {deep}; mv Project {deep}/")
    waits = "until [ -e Notes/enough ]; do sleep 0.01; done"
    with agent(walled, waits, ".", patterns):
        run(walled, "mv d/d/d/d/d/d up")
        with pytest.raises(VaultChanged, match="by now"):
            run(walled, "mv up/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/* Notes/")
    assert what_is_seen(walled, patterns) == "ran\n"


@pytest.mark.parametrize("held", ["Project/.git", "Work"])
def test_what_is_held_for_one_that_moved_it_is_not_given_back_by_another(walled: Runs, held: str) -> None:
    """Who ends in the place of the moved one gives back names of its own."""
    project_of(walled)
    (walled.vault / "Work").mkdir()
    give(walled, walled.vault / "Work")
    folder, moved = walled.vault / held, walled.vault / "Moved"

    def hold() -> Callable[[], None]:
        locks = locks_of(walled)
        with acting_as(walled.vault.stat().st_uid):
            if held == "Work":
                return placeholders.hold(walled.vault, folder, locks)
            return placeholders.hold_repositories(walled.vault, [folder], locks)

    first, before = hold(), {*names_in(folder)}
    folder.rename(moved)
    shutil.copytree(moved, folder)
    give(walled, folder)
    second = hold()
    second()
    assert {*names_in(moved)} == before
    shutil.rmtree(folder)
    moved.rename(folder)
    third = hold()
    third()
    assert {*names_in(folder)} == before
    first()
    assert not {*names_in(folder)} & {".claude", "commondir"}


def names_in(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_what_a_person_removes_or_moves_keeps_nobody_from_starting(walled: Runs) -> None:
    for name in ("Project", "Other"):
        project_of(walled, name)
    with agent(walled, "touch Notes/here; until [ -e Notes/enough ]; do sleep 0.01; done", "Notes/here"):
        subprocess.run("rm -r Project; mv Other Notes/", shell=True, check=True, cwd=walled.vault)
        assert what_is_seen(walled, None) == "ran\n"


@pytest.fixture
def held_up(walled: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each wall, when its mounts are there and nothing has looked yet, until there is Notes/back."""

    def waiting(given: Launch) -> tuple[str, ...]:
        return ("/bin/sh", "-c", f'{WAIT}exec "$@"', "sh", *checked(given))

    for module in (bubblewrap, container):
        monkeypatch.setattr(module, "checked", waiting)


DECOYS: dict[str, Callable[[Path], object]] = {
    "-": lambda folder: (folder / "-").mkdir(mode=0o000),
    "secret": lambda folder: (folder / ".env").write_text("SECRET"),
    "folder": lambda folder: (folder / ".ssh").mkdir(),
    "steers": lambda folder: (folder / "CLAUDE.md").write_text("plan"),
    "hooks": lambda folder: (folder / ".git/hooks").mkdir(parents=True),
}


@pytest.mark.parametrize("what", DECOYS)
@pytest.mark.usefixtures("held_up")
def test_who_lays_another_folder_in_the_place_while_mounts_are_made_keeps_it_from_starting(
    walled: Runs, what: str
) -> None:
    real, decoy, away = (walled.vault / name for name in ("Project", "Decoy", "Away"))
    real.mkdir()
    DECOYS[what](real)
    give(walled, real)
    evil = "echo EVIL | tee Project/CLAUDE.md Project/.git/hooks/x Project/.ssh/x"
    given = launch(walled, f"cat Project/.env; {evil}")
    real.rename(away)
    real.mkdir()
    DECOYS[what](real)
    give(walled, real)
    with walled.started(given) as process:
        wait_for(walled.vault / "Notes/mounted")
        real.rename(decoy)
        away.rename(real)
        (walled.vault / "Notes/back").touch()
        out, err = process.communicate(timeout=PATIENCE)
    assert (out, err.strip()) == ("", CHANGED)


@pytest.mark.usefixtures("held_up")
def test_what_stays_in_its_place_is_let_through(walled: Runs) -> None:
    project = project_of(walled)
    (project / ".git").rename(walled.vault / "Notes/.git")
    for make in DECOYS.values():
        make(project)
    give(walled, walled.vault)
    (walled.vault / "Notes/back").touch()
    done = run(walled, "echo ran")
    assert (done.stdout, done.stderr) == ("ran\n", "")


@on_bubblewrap
@pytest.mark.parametrize(
    ("does", "stays"),
    [
        ("rm Project/.env", ["Project/.ssh"]),
        ("rm -r Project/.ssh", ["Project/.env"]),
        ("rm -r Project", []),
        ("mv Project Other", []),
        ("true", ["Project/.env", "Project/.ssh"]),
    ],
)
def test_what_a_person_removes_in_this_moment_does_not_come_back_empty(
    walled: Runs, does: str, stays: list[str]
) -> None:
    """bubblewrap makes what it mounts on."""
    (project := walled.vault / "Project").mkdir()
    (project / ".env").write_text("SECRET")
    (project / ".ssh").mkdir(mode=0o700)
    (project / ".ssh/config").touch()
    give(walled, project)
    given, since = launch(walled, "true"), time.time()
    subprocess.run(does, shell=True, check=True, cwd=walled.vault)
    walled.run(given)
    with acting_as(walled.vault.stat().st_uid):
        take_back(walled.vault, given.checked, since)
    assert sorted(str(each.relative_to(walled.vault)) for each in walled.vault.glob("Project/*")) == stays

"""What the walls that stand tell the next one, and what it makes of it."""

import shutil
from pathlib import Path

import pytest

from agents_app.sandboxes import neighbours, placeholders
from agents_app.sandboxes.base import VaultChanged
from agents_app.sandboxes.looking import HELD_ANYWHERE, Found, look_through
from agents_app.sandboxes.neighbours import Neighbour, check, one_at_a_time, tell, told


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    vault = tmp_path / "vault"
    for folder in ("A/Project", "B", "C/Other"):
        (vault / folder).mkdir(parents=True)
    (vault / "A/Project/.env").touch()
    (vault / "C/Other/CLAUDE.md").touch()
    return vault


@pytest.fixture
def theirs(vault: Path) -> Neighbour:
    return neighbour(look_through(vault))


def neighbour(found: Found) -> Neighbour:
    return Neighbour(frozenset(found.known), frozenset(found.closed))


def test_what_is_moved_is_found_elsewhere(vault: Path, theirs: Neighbour) -> None:
    (vault / "A").rename(vault / "B/A")
    found = look_through(vault)
    check(found, [theirs])
    assert vault / "B/A/Project/.env" in found.hidden


@pytest.mark.parametrize("gone", ["A/Project", "A/Project/.env", "C/Other/CLAUDE.md", "A"])
def test_what_was_removed_is_missed_by_nobody(vault: Path, theirs: Neighbour, gone: str) -> None:
    path = vault / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    check(look_through(vault), [theirs])


@pytest.mark.parametrize("put", ["A/Project", "C/Other", "A"])
@pytest.mark.parametrize("name", [".ssh", "closed"])
def test_what_may_be_in_a_folder_that_is_hidden_keeps_it_from_starting(
    vault: Path, theirs: Neighbour, name: str, put: str
) -> None:
    (vault / name).mkdir()
    also_hides_it = neighbour(look_through(vault))
    (vault / put).rename(vault / name / "x")
    if name == "closed":
        (vault / name).chmod(0o111)
    found = look_through(vault)
    with pytest.raises(VaultChanged, match="is not where it was"):
        check(found, [theirs])
    if name == ".ssh":
        check(found, [also_hides_it])  # its agent could not put it there
    (vault / name).chmod(0o755)


def test_names_that_are_held_for_agents_are_missed_by_nobody(vault: Path, tmp_path: Path) -> None:
    let_go = placeholders.hold(vault, vault / "B", tmp_path / "locks")
    theirs = neighbour(look_through(vault))
    assert vault / "B/.claude" in look_through(vault).control_files
    assert theirs.known <= look_through(vault, past=HELD_ANYWHERE).known
    let_go()
    assert theirs.known <= look_through(vault).known


def test_walls_are_built_one_at_a_time(vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of one vault."""
    monkeypatch.setattr(neighbours, "WAITS", 0.05)
    (locks := tmp_path / "locks").mkdir()
    with (
        one_at_a_time(vault, locks),
        one_at_a_time(vault / "A", locks),
        pytest.raises(VaultChanged, match="too long"),
        one_at_a_time(vault, locks),
    ):
        raise AssertionError("It is let in.")
    with one_at_a_time(vault, locks):
        pass


def test_those_that_stand_are_told_of(vault: Path, tmp_path: Path, theirs: Neighbour) -> None:
    locks = tmp_path / "locks"
    assert told(vault, locks) == []
    ends = [tell(vault, look_through(vault), locks) for _ in range(2)]
    assert told(vault, locks) == [theirs, theirs]
    assert told(tmp_path, locks) == []
    for left, end in ((1, ends[0]), (0, ends[1])):
        end()
        assert len(told(vault, locks)) == left
    assert [path for path in locks.rglob("*") if path.is_file()] == []


def test_those_whose_worker_was_killed_are_forgotten(vault: Path, tmp_path: Path) -> None:
    end = tell(vault, look_through(vault), tmp_path)
    (standing,) = tmp_path.rglob(f"*{neighbours.TOLD}")
    left = standing.with_stem("left")
    shutil.copy(standing, left)
    assert len(told(vault, tmp_path)) == 1
    assert not left.exists()
    end()

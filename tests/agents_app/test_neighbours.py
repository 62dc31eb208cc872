"""What the walls that stand tell the next one, and what it makes of it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agents_app.sandboxes import neighbours, placeholders
from agents_app.sandboxes.base import VaultChanged
from agents_app.sandboxes.looking import HELD_ANYWHERE, Found, look_through
from agents_app.sandboxes.neighbours import Neighbour, look_among, tell, told


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


class Looks:
    """At a vault; meanwhile something is done, each time the next."""

    def __init__(self, vault: Path, *meanwhile: Callable[[], object]) -> None:
        self.vault, self.meanwhile, self.number = vault, [*meanwhile], 0

    def __call__(self) -> Found:
        if self.meanwhile:
            self.meanwhile.pop(0)()
        self.number += 1
        return look_through(self.vault)


def test_with_nobody_there_one_look_is_enough(vault: Path) -> None:
    look = Looks(vault, (vault / "new").mkdir)
    assert vault / "A/Project/.env" in look_among(look, list).hidden
    assert look.number == 1


def test_in_a_busy_vault_one_look_is_enough_where_it_misses_nothing(vault: Path, theirs: Neighbour) -> None:
    look = Looks(vault, lambda: (vault / "A").rename(vault / "B/A"))
    assert vault / "B/A/Project/.env" in look_among(look, lambda: [theirs]).hidden
    assert look.number == 1


def test_what_is_missed_is_looked_for_again(vault: Path, theirs: Neighbour) -> None:
    project, away = vault / "A/Project", vault.parent / "away"
    look = Looks(vault, lambda: project.rename(away), lambda: away.rename(project))
    assert project / ".env" in look_among(look, lambda: [theirs]).hidden
    assert look.number == 2


def test_what_is_moved_all_the_time_keeps_it_from_starting(
    vault: Path, theirs: Neighbour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "LOOKS", 4)
    project, away = vault / "A/Project", vault.parent / "away"
    looks = 0

    def look() -> Found:
        nonlocal looks
        looks += 1
        project.rename(away)
        found = look_through(vault)
        away.rename(project)
        return found

    with pytest.raises(VaultChanged, match="are being moved"):
        look_among(look, lambda: [theirs])
    assert looks == 4


@pytest.mark.parametrize("gone", ["A/Project", "A/Project/.env", "C/Other/CLAUDE.md", "A"])
def test_what_was_removed_is_missed_by_nobody(vault: Path, theirs: Neighbour, gone: str) -> None:
    path = vault / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert not {vault / "A/Project/.env", vault / "C/Other/CLAUDE.md"} <= {
        *(found := look_among(Looks(vault), lambda: [theirs])).hidden,
        *found.control_files,
    }


@pytest.mark.parametrize("name", [".ssh", "closed"])
def test_what_may_be_in_a_folder_that_is_hidden_keeps_it_from_starting(
    vault: Path, theirs: Neighbour, name: str
) -> None:
    (vault / name).mkdir()
    also_hides_it = neighbour(look_through(vault))
    (vault / "A/Project").rename(vault / name / "x")
    if name == "closed":
        (vault / name).chmod(0o111)
    with pytest.raises(VaultChanged, match="is not where it was"):
        look_among(Looks(vault), lambda: [theirs])
    if name == ".ssh":  # then its agent could not put it there
        assert vault / name in look_among(Looks(vault), lambda: [also_hides_it]).hidden
    (vault / name).chmod(0o755)


def test_who_starts_during_a_look_has_told_before_it_ends(vault: Path, theirs: Neighbour) -> None:
    here = list[Neighbour]()
    project, away = vault / "A/Project", vault.parent / "away"

    def starts() -> None:
        here.append(theirs)
        project.rename(away)

    look = Looks(vault, starts, lambda: away.rename(project))
    assert project / ".env" in look_among(look, lambda: here).hidden


def test_names_that_are_held_for_agents_are_missed_by_nobody(vault: Path, tmp_path: Path) -> None:
    let_go = placeholders.hold(vault, vault / "B", tmp_path / "locks")
    theirs = neighbour(look_through(vault))
    assert vault / "B/.claude" in look_through(vault).control_files
    assert not theirs.misses(look_through(vault, past=HELD_ANYWHERE))
    let_go()
    assert not theirs.misses(look_through(vault))


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

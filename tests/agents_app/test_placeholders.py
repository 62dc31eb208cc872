"""Names that are held while agents run, and what a person and git see of it."""

import errno
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents_app.carrying.carrier import Carrier
from agents_app.sandboxes import placeholders
from agents_app.sandboxes.base import READ_ONLY
from agents_app.sandboxes.looking import look_through
from agents_app.sandboxes.vaults import shown
from permissions_app.rules.tools import ToolCall

HELD = {".claude", ".mcp.json", ".agents", ".vscode", ".envrc", ".obsidian"}
IN_ROOT = {*HELD, "Agents"}


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    (tmp_path / "vault/project").mkdir(parents=True)
    return tmp_path / "vault"


def hold(vault: Path, directory: Path | None = None) -> Callable[[], None]:
    return placeholders.hold(vault, directory or vault, vault.parent / "locks")


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(("git", *words), cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_names_are_held_until_the_last_one_lets_go(vault: Path) -> None:
    first, second = hold(vault), hold(vault)
    first()
    assert names(vault) == {*IN_ROOT, "project"}
    second()
    assert names(vault) == {"project"}


def test_who_stands_in_another_folder_holds_the_root_too(vault: Path) -> None:
    first, second = hold(vault, vault / "project"), hold(vault)
    first()
    assert names(vault) == {*IN_ROOT, "project"}
    assert names(vault / "project") == set()
    second()
    assert names(vault) == {"project"}


def test_what_was_there_stays_as_it_was(vault: Path) -> None:
    git(vault, "init", "-q")
    (vault / ".mcp.json").write_text("{}")
    (vault / ".vscode").mkdir()
    exclude = vault / ".git/info/exclude"
    before = exclude.read_text()
    let_go = hold(vault)
    assert "?? .mcp.json" in git(vault, "status", "--short")
    let_go()
    assert (names(vault), exclude.read_text()) == ({".git", ".mcp.json", ".vscode", "project"}, before)


@pytest.mark.parametrize("top", [".", "project"])
def test_git_lists_none_of_them(vault: Path, top: str) -> None:
    git(vault / top, "init", "-q")
    exclude = vault / top / ".git/info/exclude"
    before = exclude.read_text()
    first, second = hold(vault, vault / "project"), hold(vault, vault / "project")
    assert (vault / "project/.mcp.json").is_file()
    git(vault / top, "add", "-A")
    assert git(vault / top, "status", "--short") == ""
    first()
    assert git(vault / top, "status", "--short") == ""
    second()
    assert exclude.read_text() == before


@pytest.mark.parametrize("kind", ["worktree", "around", "no info", "odd name"])
def test_where_git_could_not_be_kept_from_it_a_folder_holds_the_name(vault: Path, kind: str) -> None:
    directory = vault
    if kind == "worktree":
        (vault / ".git").write_text("gitdir: elsewhere")
    elif kind == "around":
        git(vault.parent, "init", "-q")
    elif kind == "no info":
        (vault / ".git").mkdir()
    else:
        git(vault, "init", "-q")
        directory = vault / "what?"
        directory.mkdir()
    let_go = hold(vault, directory)
    assert (directory / ".mcp.json").is_dir()
    let_go()
    assert ".mcp.json" not in names(directory)


def test_what_a_person_allowed_goes_into_the_file_on_which_walls_are_mounted(vault: Path) -> None:
    git(vault, "init", "-q")
    let_go = hold(vault)
    before = (vault / ".mcp.json").stat().st_ino
    call = ToolCall("t", "Write", {"content": "{}"})
    assert not Carrier(vault, lambda place: READ_ONLY).carry_out(call, vault / ".mcp.json").is_error
    assert (vault / ".mcp.json").stat().st_ino == before
    let_go()
    assert (vault / ".mcp.json").read_text() == "{}"
    assert "?? .mcp.json" in git(vault, "status", "--short")


def test_what_a_killed_worker_left_goes_with_the_next(vault: Path) -> None:
    git(vault, "init", "-q")
    before = (vault / ".git/info/exclude").read_text()
    let_go = hold(vault)
    lines = (vault / ".git/info/exclude").read_text()
    let_go()
    (vault / ".git/info/exclude").write_text(lines)
    (vault / ".mcp.json").touch()
    (vault / ".mcp.json").chmod(placeholders.OUR_FILE)
    hold(vault)()
    assert (names(vault), (vault / ".git/info/exclude").read_text()) == ({".git", "project"}, before)


@pytest.mark.parametrize("before", ["", "*.log\n", "*.log", "\n\n", None])
def test_what_git_shall_not_list_a_person_may_add_to(vault: Path, before: str | None) -> None:
    git(vault, "init", "-q")
    exclude = vault / ".git/info/exclude"
    exclude.unlink()
    if before is not None:
        exclude.write_text(before)
        exclude.chmod(0o664)
    let_go = hold(vault)
    with exclude.open("a") as file:
        file.write("*.secret\n")
    (vault / "a.secret").touch()
    assert "?? " not in git(vault, "status", "--short")
    let_go()
    there = f"{before}\n" if before and not before.endswith("\n") else before or ""
    assert exclude.read_text() == f"{there}*.secret\n"
    assert before is None or exclude.stat().st_mode & 0o777 == 0o664


def test_of_what_git_shall_not_list_nothing_stays(vault: Path) -> None:
    git(vault, "init", "-q")
    (exclude := vault / ".git/info/exclude").unlink()
    hold(vault)()
    assert not exclude.exists()
    exclude.write_text(too_much := "x" * (2 << 20))
    hold(vault)()
    assert exclude.read_text() == too_much


@pytest.mark.parametrize("link", [".mcp.json", ".git/info", ".git/info/exclude", ".git"])
def test_nothing_is_followed_out_of_the_vault(vault: Path, link: str) -> None:
    git(vault, "init", "-q")
    outside = vault.parent / "outside"
    (outside / "info").mkdir(parents=True)
    (outside / "exclude").write_text("theirs\n")
    path = vault / link
    if path.exists():
        path.rename(vault / "moved")
    path.symlink_to(outside / "exclude" if link.endswith(("exclude", "json")) else outside)
    hold(vault)()
    assert (outside / "exclude").read_text() == "theirs\n"
    assert names(outside) == {"info", "exclude"}


def test_a_name_that_is_held_is_told_from_a_file_of_a_persons(vault: Path) -> None:
    let_go = hold(vault)
    assert all(placeholders.is_ours(vault / name) for name in HELD)
    (vault / ".mcp.json").write_text("{}")
    (vault / ".claude/settings.json").write_text("{}")
    assert not placeholders.is_ours(vault / ".mcp.json")
    assert not placeholders.is_ours(vault / ".claude")
    assert not placeholders.is_ours(vault / "project")
    let_go()


def keeps_none(handle: int, mode: int) -> None: ...


def refuses(handle: int, mode: int) -> None:
    raise PermissionError(errno.EPERM, "Operation not permitted")


def keeps_those_of_folders(handle: int, mode: int, fchmod: Any = os.fchmod) -> None:
    fchmod(handle, 0o644 if mode == placeholders.OUR_FILE else mode)


@pytest.mark.parametrize("fchmod", [keeps_none, refuses, keeps_those_of_folders])
def test_where_the_file_system_keeps_no_such_mode_a_folder_holds_the_name(
    vault: Path, monkeypatch: pytest.MonkeyPatch, fchmod: Any
) -> None:
    """As NTFS, FAT and the folders of Windows do."""
    git(vault, "init", "-q")
    listed = git(vault, "status", "--short")
    hooks = [*(vault / ".git/hooks").iterdir()]
    monkeypatch.setattr(os, "fchmod", fchmod)
    let_go, another = hold(vault), hold(vault)
    assert all((vault / name).is_dir() and placeholders.is_ours(vault / name) for name in HELD)
    assert git(vault, "status", "--short") == listed
    let_go_of_git = placeholders.hold_repositories(vault, [vault / ".git"], vault.parent / "locks")
    let_go_of_git()
    let_go()
    (vault / ".vscode/settings.json").touch()
    another()
    assert names(vault) == {".git", "project", ".vscode"}
    assert names(vault / ".vscode") == {"settings.json"}
    assert not (vault / ".git/config.worktree").exists()
    assert [*(vault / ".git/hooks").iterdir()] == hooks


def test_a_repository_says_where_it_is_until_the_last_one_lets_go(vault: Path) -> None:
    """Or an agent could say that its settings and hooks are where it has put some."""
    git(vault, "init", "-q")
    folder, locks = vault / ".git", vault.parent / "locks"
    shutil.rmtree(folder / "hooks")
    first, second = (placeholders.hold_repositories(vault, [folder], locks) for _ in range(2))
    first()
    assert (folder / "commondir").read_text() == ".\n"
    assert all(placeholders.is_ours(folder / name) for name in ("commondir", "hooks"))
    git(vault, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "Pears")
    assert git(vault, "rev-parse", "--git-common-dir").strip() == str(folder)
    second()
    assert not (folder / "commondir").exists() and not (folder / "hooks").exists()
    (folder / "commondir").write_text("../elsewhere")  # somebody's own
    placeholders.hold_repositories(vault, [folder], locks)()
    assert (folder / "commondir").read_text() == "../elsewhere"


# Of other agents, for whoever builds a wall meanwhile


def test_a_wall_shows_the_names_of_all_read_only(vault: Path) -> None:
    """Who removed one from outside would open the other's wall."""
    theirs = hold(vault, vault / "project")
    inside = shown(vault, None)
    held = {folder / name for folder in (vault, vault / "project") for name in HELD} | {vault / "Agents"}
    assert {*inside.readable, *inside.masked} == held
    theirs()


def test_a_wall_around_a_vault_that_is_read_only_shows_none_of_them(vault: Path) -> None:
    git(vault, "init", "-q")
    (vault / ".env").write_text("SECRET")
    locks = vault.parent / "locks"
    theirs = hold(vault), placeholders.hold_repositories(vault, [vault / ".git"], locks)
    inside = shown(vault, ())
    assert (inside.readable, inside.masked) == ((vault,), (vault / ".env",))
    assert {path for path, _, _ in inside.checked} == {vault, vault / ".env"}
    [let_go() for let_go in theirs]


def test_a_repository_in_a_repository_is_held_by_the_second_agent_too(vault: Path) -> None:
    inner = vault / ".git/modules/inner"
    inner.mkdir(parents=True)
    (inner / "HEAD").write_text("ref: refs/heads/main\n")
    let_go = placeholders.hold_repositories(
        vault, [*look_through(vault).repositories], vault.parent / "locks"
    )
    assert (inner / "commondir").exists()
    assert {*look_through(vault).repositories} == {vault / ".git", inner}
    let_go()


def test_what_a_person_has_by_such_a_name_is_shown_to_all(vault: Path) -> None:
    (vault / "project/.claude").mkdir()
    (vault / "project/.vscode").mkdir()
    (vault / "project/.vscode/tasks.json").write_text("{}")
    assert {vault / "project/.claude", vault / "project/.vscode"} <= {*shown(vault, None).readable}

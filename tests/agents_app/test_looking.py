"""What is found in a vault, whatever lies in it."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from agents_app.sandboxes import placeholders
from agents_app.sandboxes.listing import walk
from agents_app.sandboxes.looking import look_through
from sessions_app.files.folders import remove_all

SOON = 5.0
HASH = "0123456789abcdef0123456789abcdef01234567\n"


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    for folder in (".git/refs/heads", ".git/logs/refs/heads", "Notes"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / ".git/config").touch()
    return tmp_path


def ends_soon(act: Callable[[], object]) -> bool:
    thread = Thread(target=act, daemon=True)
    thread.start()
    thread.join(SOON)
    return not thread.is_alive()


def test_a_pipe_in_the_place_of_a_folder_is_waited_for_by_nobody(vault: Path) -> None:
    folders = walk(vault)
    next(folders)
    (vault / "Notes").rmdir()
    os.mkfifo(vault / "Notes")
    assert ends_soon(lambda: [*folders])


@pytest.mark.parametrize("name", ["commondir", "config", "config.worktree", "a.key", ".env"])
def test_a_pipe_in_the_place_of_a_file_is_waited_for_by_nobody(
    vault: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it came after it was looked at."""
    (vault / "plain").touch()
    plain = (vault / "plain").stat()
    os.mkfifo(vault / ".git/refs" / name)
    os.mkfifo(vault / ".git" / name if name != "config" else vault / "Notes/config")
    assert ends_soon(lambda: look_through(vault))
    monkeypatch.setattr(Path, "lstat", lambda path: plain)
    monkeypatch.setattr(stat, "S_ISREG", lambda mode: True)
    assert ends_soon(lambda: placeholders.is_ours(vault / ".git" / name))
    assert ends_soon(lambda: look_through(vault))


@pytest.mark.parametrize("name", ["config", "hooks", "commondir", "CLAUDE.md", "a.key"])
def test_a_branch_may_have_the_name_of_what_steers(vault: Path, name: str) -> None:
    branch, log = vault / ".git/refs/heads" / name, vault / ".git/logs/refs/heads" / name
    branch.write_text(HASH)
    log.write_text(HASH.strip() + " " + HASH)
    found = look_through(vault)
    assert not {branch, log} & {*found.hidden, *found.control_files}


@pytest.mark.parametrize("name", ["key.pem", ".env", ".env.token"])
@pytest.mark.parametrize("content", ["SECRET", HASH, f"{HASH.strip()} SECRET"])
def test_what_is_secret_is_hidden_among_them_too(vault: Path, name: str, content: str) -> None:
    """A key may look like a hash, and an agent may have put it there."""
    for folder in (".git/refs/heads", ".git/logs/refs/heads"):
        (vault / folder / name).write_text(content)
        assert vault / folder / name in look_through(vault).hidden


@pytest.mark.parametrize("name", ["Gone", ".ssh"])
def test_what_goes_while_it_is_looked_at_is_not_hidden(
    vault: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (vault / name).mkdir()
    is_open = os.access

    def goes(path: str, *given: Any, **more: Any) -> bool:
        if path == name:
            (vault / name).rmdir()
        return is_open(path, *given, **more)

    monkeypatch.setattr(os, "access", goes)
    found = look_through(vault)
    assert not {vault / name} & {*found.hidden, *found.folders}


@pytest.mark.parametrize(("name", "floors"), [("d", 1_500), ("d" * 255, 40)])
def test_what_lies_too_deep_for_a_wall_is_hidden_as_a_whole(vault: Path, name: str, floors: int) -> None:
    here = os.open(vault, os.O_DIRECTORY)
    for _ in range(floors):
        for file in (".env", "CLAUDE.md"):
            os.close(os.open(file, os.O_CREAT, dir_fd=here))
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    found = look_through(vault)
    deepest = max(found.folders, key=lambda path: len(path.parts))
    assert deepest / name in found.hidden
    assert all(path.exists() for path in (*found.hidden, *found.control_files))
    assert len(found.folders) > 10
    remove_all(vault / name)


def test_what_is_hidden_anyway_is_not_looked_into(vault: Path) -> None:
    (vault / "Notes/.env").touch()
    found = look_through(vault, hidden=[vault / "Notes"])
    assert not {vault / "Notes", vault / "Notes/.env"} & {*found.hidden, *found.folders}

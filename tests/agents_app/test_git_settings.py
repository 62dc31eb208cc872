"""What the server sets in a repository's config: by git, of a copy, all of it or nothing."""

import os
import subprocess
from pathlib import Path

import pytest

from agents_app.carrying import git_settings
from agents_app.carrying.carrier import Carrier
from agents_app.sandboxes.base import READ_ONLY
from permissions_app.gate import Carried
from permissions_app.rules.tools import ToolCall

CONFIG = """[core]
\tbare = false
\tfsmonitor = touch {marks}/fsmonitor
[alias]
\tconfig = !touch {marks}/alias
[include]
\tpath = {marks}/more
[remote "origin"]
\turl = https://example.org/old.git
[branch "main"]
\tremote = origin
\tmerge = refs/heads/main
"""


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    marks = tmp_path / "marks"
    marks.mkdir()
    (tmp_path / "vault/.git").mkdir(parents=True)
    (tmp_path / "vault/.git/HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "vault/.git/config").write_text(CONFIG.format(marks=marks))
    return tmp_path / "vault"


def carry(vault: Path, command: str) -> Carried:
    call = ToolCall("t", "Bash", {"command": command})
    return Carrier(vault, lambda place: READ_ONLY).carry_out(call, vault / ".git/config")


def value(vault: Path, key: str) -> str:
    said = subprocess.run(
        ("git", "config", "--file", str(vault / ".git/config"), "--get-all", key), capture_output=True
    )
    return said.stdout.decode().strip()


def test_a_name_is_set_in_the_file_on_which_walls_are_mounted(vault: Path) -> None:
    before = (vault / ".git/config").stat().st_ino
    carried = carry(vault, "git config user.name 'Ada \"the\" Löwe'; git config user.email ada@example.org")
    assert carried.text.startswith("Done: Parachute changed .git/config for you (user.name, user.email)")
    assert (value(vault, "user.name"), value(vault, "user.email")) == (
        'Ada "the" Löwe',
        "ada@example.org",
    )
    assert (vault / ".git/config").stat().st_ino == before
    assert set(os.listdir(vault / ".git")) == {
        "HEAD",
        "config",
    }


def test_nothing_that_the_repository_holds_is_started(vault: Path) -> None:
    assert not carry(vault, "git config user.name Ada").is_error
    assert os.listdir(vault.parent / "marks") == []


def test_a_new_remote_is_fetched_as_git_would(vault: Path) -> None:
    carry(vault, "git remote add fork git@example.org:ben/garden.git")
    assert value(vault, "remote.fork.url") == "git@example.org:ben/garden.git"
    assert value(vault, "remote.fork.fetch") == "+refs/heads/*:refs/remotes/fork/*"


def test_a_remote_gets_another_address(vault: Path) -> None:
    carry(vault, "git remote set-url origin https://example.org/new.git")
    assert value(vault, "remote.origin.url") == "https://example.org/new.git"


def test_the_current_branch_follows_another_and_none(vault: Path) -> None:
    carry(vault, "git branch -u origin/prune/pears")
    assert value(vault, "branch.main.merge") == "refs/heads/prune/pears"
    for _ in range(2):
        assert not carry(vault, "git branch --unset-upstream").is_error
    assert value(vault, "branch.main.merge") == value(vault, "branch.main.remote") == ""


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("git config user.name Ada && git remote add origin https://x.org/y", "a remote origin already"),
        ("git remote set-url fork https://x.org/y", "There is no remote fork."),
        ("git branch -u elsewhere/main", "no branch of a remote"),
        ("git config --unset remote.origin.url ; git branch -u main", "no branch of a remote"),
    ],
)
def test_what_cannot_be_done_changes_nothing_and_says_why(vault: Path, command: str, why: str) -> None:
    before = (vault / ".git/config").read_text()
    carried = carry(vault, command)
    assert carried.is_error
    assert why in carried.text
    assert (vault / ".git/config").read_text() == before


def test_a_file_that_is_no_config_stays_as_it_is(vault: Path) -> None:
    (vault / ".git/config").write_text("[[[")
    assert carry(vault, "git config user.name Ada").is_error
    assert (vault / ".git/config").read_text() == "[[["


def test_a_file_with_a_second_name_stays_as_it_is(vault: Path) -> None:
    os.link(vault / ".git/config", vault / "second")
    assert git_settings.TWO_NAMES in carry(vault, "git config user.name Ada").text


def test_without_a_branch_it_must_be_named(vault: Path) -> None:
    (vault / ".git/HEAD").write_text("0" * 40)
    assert git_settings.NO_BRANCH in carry(vault, "git branch -u origin/main").text


@pytest.mark.parametrize("what", ["link", "fifo", "linked folder"])
def test_what_is_no_plain_file_there_is_not_touched(vault: Path, what: str) -> None:
    elsewhere = vault.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "config").write_text("theirs")
    if what == "linked folder":
        (vault / ".git").rename(vault / "git")
        (vault / ".git").symlink_to(elsewhere)
    else:
        (vault / ".git/config").unlink()
        if what == "link":
            (vault / ".git/config").symlink_to(elsewhere / "config")
        else:
            os.mkfifo(vault / ".git/config")
    assert carry(vault, "git config user.name Ada").is_error
    assert (elsewhere / "config").read_text() == "theirs"


def test_without_git_a_person_is_sent_for(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert git_settings.NO_GIT in carry(vault, "git config user.name Ada").text


def test_it_wants_only_what_a_person_allowed(vault: Path) -> None:
    carrier = Carrier(vault, lambda place: READ_ONLY)
    call = ToolCall("t", "Bash", {"command": "git config user.name Ada"})
    assert carrier.wants(call, vault / ".git/config", is_approved=True)
    assert not carrier.wants(call, vault / ".git/config", is_approved=False)
    assert not carrier.wants(call, vault.parent / "x/.git/config", is_approved=True)

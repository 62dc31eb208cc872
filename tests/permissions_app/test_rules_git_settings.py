"""A command that changes settings of a repository which the wall shows read-only."""

from pathlib import Path

import pytest

from permissions_app.rules.git_settings import Remote, Set, Upstream
from permissions_app.rules.places import edits_in, place_written
from permissions_app.rules.setting import Patterns
from permissions_app.rules.tools import ToolCall
from tests.permissions_app.room import Room

ASKS = ("ask", "control_file")
DENIED = ("deny", "control_file")
RUNS = ("allow", "behind_wall")

CARRIED = {
    "git config user.name 'Ada Lovelace'": (Set("", "user.name", "Ada Lovelace"),),
    "git config --local --replace-all user.email ada@example.org": (
        Set("--replace-all", "user.email", "ada@example.org"),
    ),
    "git config set pull.rebase true": (Set("", "pull.rebase", "true"),),
    "git config --unset user.name": (Set("--unset", "user.name"),),
    "git config remote.origin.url git@example.org:ada/garden.git": (
        Set("", "remote.origin.url", "git@example.org:ada/garden.git"),
    ),
    "git config branch.main.merge refs/heads/main": (Set("", "branch.main.merge", "refs/heads/main"),),
    "git remote add origin https://example.org/ada/garden.git": (
        Remote("origin", "https://example.org/ada/garden.git", is_new=True),
    ),
    "git remote set-url origin ssh://git@example.org:22/garden.git 2>&1": (
        Remote("origin", "ssh://git@example.org:22/garden.git", is_new=False),
    ),
    "git branch --set-upstream-to=origin/main": (Upstream("", "origin/main"),),
    "git branch -u origin/main pruning": (Upstream("pruning", "origin/main"),),
    "git branch --unset-upstream": (Upstream("", ""),),
    "cd notes && git config user.name Ada && git config user.email ada@example.org && git remote -v": (
        Set("", "user.name", "Ada"),
        Set("", "user.email", "ada@example.org"),
    ),
}
NOT_OURS = [
    "git config core.hooksPath hooks",
    "git config core.fsmonitor ./x",
    "git config alias.st status",
    "git config core.sshCommand 'ssh -v'",
    "git config --add include.path x",
    "git config filter.x.clean ./x",
    "git config credential.helper store",
    "git config gpg.program ./x",
    "git config remote.origin.uploadpack ./x",
    "git config branch.main.remote ../evil",
    "git config core.worktree /",
    "git config user.name $'a\\nb'",
    "git config --rename-section user other",
    "git remote add backup ../backup.git",
    "git remote add backup /srv/backup.git",
    "git remote add backup file:///srv/backup.git",
    "git remote add x 'ext::sh -c ls'",
    "git remote add x https://ada:secret@example.org/x.git",
    "git remote add x ssh://-oProxyCommand=ls/x",
    "git remote add x -oProxyCommand=ls@host:x",
    "git remote add -f origin https://example.org/x.git",
    "git remote remove origin",
    "git remote rename origin upstream",
    "git submodule add https://example.org/x.git",
    "git init",
]
NOT_ALONE = [
    "git config user.name Ada && git add -A && git commit -m x",
    "git config user.name Ada || git config user.name Ben",
    "git config user.name $(whoami)",
    "NAME=Ada; git config user.name $NAME",
    "git config user.name Ada > notes/log.txt",
    "sh -c 'git config user.name Ada'",
    "git config user.name Ada; python x.py",
    "git config user.name Ada | tee notes/x",
]
FREE = [
    "git config user.name",
    "git config --get user.name",
    "git config --list --show-origin",
    "git config -l",
    "git config --global user.name Ada",
    "git config -f notes/x.ini a.b c",
    "git remote -v",
    "git remote",
    "git remote show origin",
    "git branch -vv",
    "git branch pruning",
    "git branch -d pruning",
    "git push -u origin main",
    "git checkout -b x origin/x",
    "git -c user.name=Ada commit -m x",
    "git init fresh && cd fresh && git config user.name Ada",
    "git clone https://example.org/x.git && cd x && git config core.hooksPath y",
    "cd /tmp && git config user.name Ada",
    "git commit -m 'git config user.name Ada'",
    "echo git config user.name Ada",
    "grep -rn 'git config core.hooksPath' .",
    "cat > notes/x.md <<'E'\ngit remote add origin https://example.org/x.git\nE",
]


@pytest.fixture
def kept(room: Room) -> Room:
    """Its vault is a repository that stood before the wall."""
    (room.vault / ".git").mkdir()
    (room.vault / ".git/config").write_text("[core]\n")
    return room.with_(held=frozenset({str(config_of(room))}))


def config_of(room: Room) -> Path:
    return room.vault / ".git/config"


def call(command: str) -> ToolCall:
    return ToolCall("t", "Bash", {"command": command})


@pytest.mark.parametrize("command", CARRIED)
def test_what_the_server_can_set_asks_and_leads_to_the_file(kept: Room, command: str) -> None:
    assert kept.bash(command) == ASKS
    assert place_written(call(command), kept.setting) == config_of(kept)
    assert edits_in(call(command), kept.vault) == CARRIED[command]


@pytest.mark.parametrize("command", [*NOT_OURS, *NOT_ALONE])
def test_what_it_does_not_is_refused_before_the_wall_says_something_nobody_understands(
    kept: Room, command: str
) -> None:
    assert kept.bash(command) == DENIED
    assert ".git/config" in kept.decide("Bash", command=command).reason
    assert place_written(call(command), kept.setting) is None


@pytest.mark.parametrize("command", FREE)
def test_what_changes_no_settings_of_it_runs(kept: Room, command: str) -> None:
    assert kept.bash(command) == RUNS
    assert place_written(call(command), kept.setting) is None


@pytest.mark.parametrize("command", [*CARRIED, *NOT_OURS, *NOT_ALONE])
def test_in_a_repository_that_the_wall_leaves_open_it_is_git_that_does_it(kept: Room, command: str) -> None:
    assert kept.with_(held=frozenset()).bash(command) == RUNS


@pytest.mark.parametrize("where", ["cd project && git", "git -C project", "cd notes; git -C ../project"])
def test_the_repository_is_the_one_around_where_git_stands(kept: Room, where: str) -> None:
    (kept.vault / "project/.git").mkdir(parents=True)
    assert kept.bash(f"{where} config user.name Ada") == RUNS
    project = kept.with_(held=frozenset({str(kept.vault / "project/.git/config")}))
    assert project.bash(f"{where} config user.name Ada") == ASKS
    assert project.bash("git config user.name Ada") == RUNS


def test_who_makes_a_repository_where_one_is_goes_on_without(kept: Room) -> None:
    assert "There is a repository here already" in kept.decide("Bash", command="git init -q").reason


def test_two_repositories_at_once_are_two_questions(kept: Room) -> None:
    (kept.vault / "project/.git").mkdir(parents=True)
    both = kept.with_(held=kept.setting.held | {str(kept.vault / "project/.git/config")})
    assert both.bash("git config user.name Ada; git -C project config user.name Ada") == DENIED


def test_a_pattern_covers_none_of_it(kept: Room) -> None:
    allowed = kept.with_(patterns=Patterns(bash=("*",)), trust_mode=True)
    assert allowed.bash("git remote add origin https://example.org/x.git") == ASKS

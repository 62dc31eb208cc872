"""The real git behind the real wall, in a repository that stood before the wall was built: what people do all
day works. Its settings are read-only, and git says so and goes on, or ends."""

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agents_app.launcher import executable
from agents_app.sandboxes import placeholders
from agents_app.sandboxes.vaults import shown
from tests.contracts.runs import Runs
from tests.contracts.stage import sandbox_that_runs
from tests.depth import few_of

BEFORE = """
git init -q --bare -b main shared.git && git init -q -b main
git config user.name Ada && git config user.email ada@example.org
printf 'shared.git\ndeep\nold\n' > .gitignore && echo pears > notes.md && git add . && git commit -qm pears
git remote add up ./shared.git && git push -q -u up main
git checkout -q -b plums && echo plums > plums.md && git add . && git commit -qm plums && git push -q up plums
git checkout -q main && git branch -q -D plums && git branch side
git init -q deep/project && rm -rf deep/project/.git/hooks
git worktree add -q -b old old
"""
WORKS = [
    "echo x >> notes.md && git add -A && git commit -qm 'Häppchen' && git commit -q --amend --no-edit",
    "git checkout -q -b quinces && git commit -q --allow-empty -m x && git checkout -q main "
    "&& git merge quinces",
    "git checkout -q -b mine up/plums && test -f plums.md",
    "git checkout -q plums && test -f plums.md",
    "git switch -q plums && git rebase -q main && git log --oneline | cat",
    "git switch -q -c mine --track up/plums",
    "git branch -q mine up/plums && git branch -d side",
    "echo x >> notes.md && git stash && git stash pop && git checkout notes.md && git stash list",
    "git tag -a v1 -m 'One' && git describe && git tag -d v1",
    "git cherry-pick up/plums && git revert --no-edit HEAD && git reset -q --hard HEAD~2",
    "git worktree add -q -b wt trees/wt && cd trees/wt && git commit -q --allow-empty -m x && cd ../.. "
    "&& git worktree remove trees/wt && git branch -D wt",
    "cd old && echo x >> notes.md && git commit -qam x && git rebase -q main && git switch -q -c new "
    "&& git worktree list | grep new && cd .. && git merge -q old && git gc -q && git worktree prune",
    "git fetch -q up && git pull -q && git commit -q --allow-empty -m x && git push -q",
    "git push -q -u up side",
    "git clone -q . trees/copy && cd trees/copy && git config user.name Ben && git remote add a https://x.org/a",
    "git init -q trees/fresh && cd trees/fresh && git config core.filemode false && git branch -M trunk",
    "git rm -q --cached notes.md && git reset -q && git restore notes.md && git diff --exit-code",
    "git bisect start && git bisect reset && git notes add -m n && git gc -q && git fsck",
    "git blame notes.md && git show --stat && git grep -n pears && git archive main | tar t "
    "&& git shortlog -s HEAD",
    "git config --global core.pager cat && git config --get user.name && git config --list",
]
ENDS = [
    "git config user.name Ben",
    "git remote add fork https://example.org/x.git",
    "git remote remove up",
    "git branch --unset-upstream",
    "echo '[alias]' >> .git/config",
    "rm .git/config",
    "echo ls > .git/hooks/pre-commit",
    "echo ../notes > .git/commondir",
    "rm .git/commondir",
    "echo '[core]' > .git/worktrees/old/config.worktree",
    "echo ../../../evil > .git/worktrees/old/commondir",
    "mv .git/worktrees .git/away",
    "mv .git/worktrees/old .git/worktrees/new",
    "mv .git/commondir x",
    "cd deep/project && echo ../../evil > .git/commondir",
    "cd deep/project && echo ls > .git/hooks/pre-commit",
    "cd deep/project && rmdir .git/hooks",
]


Run = Callable[[str], "subprocess.CompletedProcess[str]"]


@contextmanager
def walled(vault: Path) -> Iterator[Run]:
    runs = Runs(sandbox_that_runs("bubblewrap"), vault, executable(vault.parent / "launcher"))
    locks, ends = vault.parent / "locks", ExitStack()
    ends.callback(placeholders.hold(vault, vault, locks))

    def hold(folders: Sequence[Path]) -> None:
        ends.callback(placeholders.hold_repositories(vault, folders, locks))

    inside = shown(vault, None, hold=hold)
    launch = replace(
        runs.launch(),
        writable=inside.writable,
        readable=inside.readable,
        masked=inside.masked,
        checked=inside.checked,
    )
    yield lambda line: runs.run(replace(launch, argv=("/bin/sh", "-ec", line)))
    ends.close()


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    (tmp_path / "vault").mkdir()
    return tmp_path / "vault"


@pytest.fixture
def run(vault: Path) -> Iterator[Run]:
    subprocess.run(("sh", "-ec", BEFORE), cwd=vault, check=True, capture_output=True)
    config = (vault / ".git/config").read_bytes()
    with walled(vault) as run:
        yield run
    assert (vault / ".git/config").read_bytes() == config


@pytest.mark.parametrize("line", few_of(WORKS, *WORKS[:2], *WORKS[10:13]))
def test_a_day_with_git_works(run: Run, line: str) -> None:
    done = run(f"{line}\n[ -z $(git status --porcelain --untracked-files=no) ]")
    assert done.returncode == 0, done.stderr


def test_settings_and_hooks_of_what_was_there_stay(run: Run, subtests: pytest.Subtests) -> None:
    for line in ENDS:
        with subtests.test(line):
            assert run(line).returncode != 0


def test_no_name_that_is_held_is_committed_in_a_repository_that_is_made_behind_the_wall(vault: Path) -> None:
    (vault / "notes.md").write_text("Pears.")
    with walled(vault) as run:
        done = run("git init -q && git add -A && git commit -qm Pears && git ls-files && git status --short")
    assert (done.stdout, done.returncode) == ("notes.md\n", 0)
    assert {path.name for path in vault.iterdir()} == {".git", "notes.md"}


@pytest.mark.parametrize("commit", ["git commit -qam x", "git add -A && git commit -qm x"])
def test_what_is_hidden_is_not_taken_for_deleted(vault: Path, commit: str) -> None:
    """A vault may be kept in git as a whole."""
    before = BEFORE.partition("git add .")[0]
    folders = "mkdir -p .ssh .env.d && touch .ssh/config .env.d/x && git add -A && git commit -qm before"
    subprocess.run(("sh", "-ec", f"{before}{folders}"), cwd=vault, check=True, capture_output=True)
    with walled(vault) as run:
        done = run(f"echo x >> notes.md && {commit}")
    assert done.returncode == 0, done.stderr
    words = ("git", "status", "--porcelain", "--untracked-files=no")
    assert subprocess.run(words, cwd=vault, check=True, capture_output=True, text=True).stdout == ""
    words = ("git", "ls-files", ".ssh", ".env.d")
    listed = subprocess.run(words, cwd=vault, check=True, capture_output=True, text=True).stdout
    assert listed == ".env.d/x\n.ssh/config\n"

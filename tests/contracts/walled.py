"""Starts things behind a wall around a vault, as a session of one user or another has it."""

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest

from agents_app.launcher import MARK, end_everything, executable, new_mark, standing_still
from agents_app.launcher.walled import STANDS
from agents_app.sandboxes import engine, neighbours
from agents_app.sandboxes.base import Launch, Sandbox
from agents_app.sandboxes.bubblewrap import Bubblewrap
from agents_app.sandboxes.checks import take_back
from agents_app.sandboxes.container import Container
from agents_app.sandboxes.limits import MB, Limits
from agents_app.sandboxes.vaults import shown
from tests.contracts.runs import PATIENCE, Runs
from tests.depth import few_of
from tests.plain_user import PLAIN, acting_as

SYSTEMS_PYTHON = "/usr/bin/python3"  # ours may lie where a plain user may not go
HERE = ("bubblewrap", "as we are")
on_bubblewrap = pytest.mark.parametrize(
    "walled", few_of([HERE, ("bubblewrap", "plain")], HERE), ids=" ".join, indirect=True
)
SMALL = Limits(memory=64 * MB, processes=40, files=64, file_size=10 * MB, cpu=20, scratch=8 * MB, time=25)


def around_a_vault(sandbox: Sandbox, user: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    """A vault, a home with what nobody may see, and a wall."""
    vault = place / "vault"
    for folder in ("vault/Notes", "vault/Chat/artifacts", "vault/.git/hooks", "home/claude/ours", "home/run"):
        (place / folder).mkdir(parents=True)
    for path in ("vault/.env", "home/secret", "home/claude/theirs/t.jsonl", "vault/.claude/projects/t.jsonl"):
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text("SECRET")
    (vault / "Notes/plan.md").write_text("plan")
    if user == "as we are":
        return Runs(sandbox, vault, executable(place / "launcher"))
    if os.getuid() != 0:
        pytest.skip("Only root can start things as another user.")
    if not Path(SYSTEMS_PYTHON).exists():
        pytest.skip(f"NOT TESTED: a plain user has no Python here ({SYSTEMS_PYTHON}).")
    monkeypatch.setattr(sys, "executable", SYSTEMS_PYTHON)
    launcher = executable(place / "launcher")
    for each in (place, *place.rglob("*")):
        os.chown(each, PLAIN, PLAIN, follow_symlinks=False)
    return Runs(plain(sandbox), vault, launcher, PLAIN if sandbox.name == "bubblewrap" else None)


def plain(sandbox: Sandbox) -> Sandbox:
    """The same wall as a plain user has it. An engine is reached by a group, and runs as root anyway."""
    if sandbox.name == "bubblewrap":
        theirs = Bubblewrap(user=PLAIN)
        assert theirs.unavailable() is None
        return theirs
    return Container(engine(sandbox.name), user=PLAIN)


def locks_of(walled: Runs) -> Path:
    return walled.vault.parent / "home/run"


def launch(
    walled: Runs,
    script: str,
    patterns: tuple[str, ...] | None = None,
    closed: tuple[Path, ...] = (),
    **more: object,
) -> Launch:
    """As a session has it: with the inside of its vault. Nobody stands still for it."""
    home, projects = walled.vault.parent / "home", walled.vault / ".claude/projects"
    with acting_as(walled.vault.stat().st_uid):
        others = neighbours.told(walled.vault, locks_of(walled))
        inside = shown(walled.vault, patterns, neighbours=others, hidden=(home, projects, *closed))
    given = replace(
        walled.launch("/bin/sh", "-c", script),
        writable=(home / "claude/ours", *inside.writable),
        readable=inside.readable,
        masked=(home, projects, *closed, *inside.masked),
        checked=inside.checked,
        limits=SMALL,
    )
    return replace(given, **more)  # type: ignore[arg-type]


def run(
    walled: Runs, script: str, patterns: tuple[str, ...] | None = None
) -> subprocess.CompletedProcess[str]:
    """While its wall is built all others stand still."""
    mark = new_mark()
    environment = {"PATH": "/usr/bin:/bin", MARK: mark}
    with ExitStack() as stands:
        try:
            with acting_as(walled.vault.stat().st_uid):
                stands.enter_context(neighbours.one_at_a_time(walled.vault, locks_of(walled)))
                others = [each.mark for each in neighbours.told(walled.vault, locks_of(walled)) if each.mark]
                is_still = stands.enter_context(standing_still(others))
            given = launch(walled, script, patterns, environment=environment, tells=STANDS)
            since = time.time()
            with walled.started(given) as process:
                assert process.stderr
                said = first_line(process.stderr)
                with acting_as(walled.vault.stat().st_uid):
                    is_still()
                    take_back(walled.vault, given.checked, since)
                stands.close()
                out, err = process.communicate(timeout=PATIENCE)
            err = err if said.strip() == STANDS else said + err
            return subprocess.CompletedProcess(list(given.argv), process.returncode, out, err)
        finally:
            end_everything(mark)
            walled.sandbox.end(mark)


def first_line(pipe: IO[str]) -> str:
    """Not a byte more: `communicate` reads on behind this pipe's buffer."""
    said = b""
    while not said.endswith(b"\n") and (byte := os.read(pipe.fileno(), 1)):
        said += byte
    return said.decode()


def project_of(walled: Runs, name: str = "Project") -> Path:
    """With a secret and a repository."""
    project = walled.vault / name
    (project / ".git/objects").mkdir(parents=True)
    (project / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (project / ".git/config").touch()
    (project / ".env").write_text("SECRET")
    give(walled, project)
    return project


def give(walled: Runs, folder: Path) -> None:
    """To whoever the agents run as."""
    for each in (folder, *folder.rglob("*")):
        os.chown(each, walled.vault.stat().st_uid, -1, follow_symlinks=False)

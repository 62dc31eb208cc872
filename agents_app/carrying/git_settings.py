"""Changes the settings of a repository in the place of an agent.

Git itself makes the change, and never in the repository: an agent could have left there what git would start.
It changes a copy, in a folder of our own, and the copy's content is put into the file as it lies there.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from agents_app.errors import CannotCarryOut
from permissions_app.rules.git_settings import Edit, Remote, Set, Upstream
from sessions_app.files.folders import Folder

CONFIG = "config"
LARGEST = 1 << 20  # bytes
PATIENCE = 10.0  # seconds
NOT_FOUND, NOTHING_TO_UNSET = 1, 5  # what `git config` ends with

NO_GIT = "git is not installed where Parachute runs. A person can run the command where it is."
TWO_NAMES = "This file has a second name (a hard link), and both would change."
NOT_SETTINGS = "git could not read the settings of this repository."
THERE = "There is a remote {name} already. Change its address with git remote set-url."
NO_REMOTE = "There is no remote {name}. Make it with git remote add."
NO_BRANCH = "No branch is checked out here. Name the branch."
NOT_OF_REMOTE = "{of} is no branch of a remote of this repository. Name it as remote/branch."

_HEAD = re.compile(r"ref: refs/heads/([^\x00-\x20]+)\n?")


def change(folder: Folder, edits: Sequence[Edit]) -> str:
    """Makes all of them or, raising CannotCarryOut, none; says which settings. `folder` is the `.git`."""
    found = folder.look(CONFIG)
    if found is not None and found.st_nlink > 1:
        raise CannotCarryOut(TWO_NAMES)
    before = folder.read(CONFIG, first=LARGEST + 1)
    if len(before) > LARGEST:
        raise CannotCarryOut(NOT_SETTINGS)
    with tempfile.TemporaryDirectory(prefix="settings-") as own:
        copy = _Copy(Path(own))
        copy.file.write_bytes(before)
        names = [name for edit in edits for name in _made(copy, folder, edit)]
        after = copy.file.read_bytes()
    folder.overwrite(CONFIG, after)
    return ", ".join(dict.fromkeys(names))


def _made(copy: "_Copy", folder: Folder, edit: Edit) -> list[str]:
    match edit:
        case Set(option, key, value):
            copy.git(*([option] if option else []), key, *([] if value is None else [value]))
            return [key]
        case Remote(name, address, is_new):
            if is_new == copy.has(f"remote.{name}.url"):
                raise CannotCarryOut((THERE if is_new else NO_REMOTE).format(name=name))
            copy.git(f"remote.{name}.url", address)
            if is_new:
                copy.git(f"remote.{name}.fetch", f"+refs/heads/*:refs/remotes/{name}/*")
            return [f"remote.{name}.url"]
        case Upstream(branch, of):
            branch = branch or _current(folder)
            _follow(copy, branch, of)
            return [f"branch.{branch}.remote", f"branch.{branch}.merge"]


def _follow(copy: "_Copy", branch: str, of: str) -> None:
    if not of:
        for variable in ("remote", "merge"):
            copy.git("--unset-all", f"branch.{branch}.{variable}")
        return
    remotes = [name for name in copy.remotes() if of.startswith(f"{name}/") and len(of) > len(name) + 1]
    if not remotes:
        raise CannotCarryOut(NOT_OF_REMOTE.format(of=of))
    remote = max(remotes, key=len)
    copy.git(f"branch.{branch}.remote", remote)
    copy.git(f"branch.{branch}.merge", f"refs/heads/{of.removeprefix(f'{remote}/')}")


def _current(folder: Folder) -> str:
    found = _HEAD.fullmatch(folder.read("HEAD", first=1_000).decode(errors="replace"))
    if found is None:
        raise CannotCarryOut(NO_BRANCH)
    return found[1]


class _Copy:
    """The settings, in a folder that no agent reaches."""

    def __init__(self, own: Path) -> None:
        self.file = own / CONFIG
        program = shutil.which("git")
        if program is None:
            raise CannotCarryOut(NO_GIT)
        self._program, self._own = program, own

    def git(self, *arguments: str) -> None:
        done = self._run(*arguments)
        if done.returncode != 0 and not (arguments[0].startswith("--unset") and _was_unset(done)):
            raise CannotCarryOut(done.stderr.strip().partition("\n")[0][:300] or NOT_SETTINGS)

    def has(self, key: str) -> bool:
        return self._run("--get-all", key).returncode != NOT_FOUND

    def remotes(self) -> list[str]:
        printed = self._run("--name-only", "--get-regexp", r"^remote\..*\.url$").stdout
        return [line[len("remote.") : -len(".url")] for line in printed.splitlines()]

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": os.defpath,
            "HOME": str(self._own),
            "LC_ALL": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CEILING_DIRECTORIES": str(self._own.parent),  # no repository around it is looked for
        }
        try:
            return subprocess.run(
                (self._program, "config", "--file", str(self.file), *arguments),
                cwd=self._own,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CannotCarryOut(NOT_SETTINGS) from error


def _was_unset(done: subprocess.CompletedProcess[str]) -> bool:
    return done.returncode == NOTHING_TO_UNSET

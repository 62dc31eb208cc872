"""The first that runs behind a wall: is what was bound into it what was looked at?

A wall binds by path, and an agent of another session may have swapped a folder for another since, or do so
now: a mount is then on what lay there for a moment, and the real folder comes back without it. So of each
folder the look goes in first, and sees from there whether it is the one, and whether what is hidden in it is
hidden and what is read-only is so. Nothing of the agent runs before this has looked.
"""

import os
import shlex
import stat
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from sessions_app.files.folders import Folder

from .base import MASK, READ_ONLY, READ_WRITE, CannotConfine, Checked, Identity, Launch

CHANGED = "The vault changed while the wall was built around it."
MADE_FILE, MADE_FOLDERS = 0o444, (0o700, 0o755)  # by bubblewrap
LONGEST = 120_000  # bytes of one argument
# The folder, what is expected to be seen, what is not, how many of the names are read-only, and the names:
# first these, last the hidden ones.
LOOK = """
look() {
  cd "$1" 2>/dev/null || exit
  expected=$2 hidden=$3 closed=$4
  shift 4
  seen=$(/usr/bin/stat --printf "%d:%i " -- "$@" 2>/dev/null) || exit
  case $seen in "$expected"*) ;; *) exit 1 ;; esac
  for each in $hidden; do
    case " ${seen#"$expected"}" in *" $each "*) exit 1 ;; esac
  done
  while [ "$closed" -gt 0 ]; do
    [ ! -w "$1" ] || exit
    closed=$((closed - 1))
    shift
  done
}
"""


def take_back(vault: Path, checked: Sequence[Checked], since: float) -> None:
    """Where a person removes or moves something in this very moment, bubblewrap makes an empty file or folder
    to mount on, which would stay in the vault. `since`: when nothing of that was there. Through no link."""
    for path, identity, how in sorted(checked, key=lambda each: len(each[0].parts), reverse=True):
        *above, name = path.relative_to(vault).parts or ("",)
        with suppress(OSError), Folder.at(vault) as top, top.below(*above) as folder:
            found = folder.look(name)
            # The number of what was removed may be given to the next.
            if found is None or found.st_uid != os.geteuid():
                continue
            if (found.st_ctime > since) if how == MASK else (f"{found.st_dev}:{found.st_ino}" != identity):
                _remove_if_made(folder, name, found)


def _remove_if_made(folder: Folder, name: str, found: os.stat_result) -> None:
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISDIR(found.st_mode) and mode in MADE_FOLDERS:
        folder.remove_empty(name)
    elif stat.S_ISREG(found.st_mode) and mode == MADE_FILE and not found.st_size:
        folder.remove(name)


def checked(launch: Launch) -> tuple[str, ...]:
    """The launch's command line, with the look before it where there is something to look at."""
    if not (launch.checked or launch.tells):
        return launch.argv
    looks = f"({LOOK}{_looks(launch)}) || {{ echo {shlex.quote(CHANGED)} >&2; exit 1; }}; "
    told = f"echo {shlex.quote(launch.tells)} >&2; " if launch.tells else ""
    script = f'{looks}{told}exec "$@"'
    if len(script.encode(errors="surrogateescape")) > LONGEST:
        raise CannotConfine(
            f"{launch.vault} has too many files that agents may not see or change ({len(launch.checked)})."
        )
    return ("/bin/sh", "-c", script, "sh", *launch.argv)


def _looks(launch: Launch) -> str:
    own = {path: identity for path, identity, how in launch.checked if how != MASK}
    looked_into = {path.parent for path, _, _ in launch.checked}
    inside = defaultdict[Path, list[Checked]](list)
    for path, identity, how in launch.checked:
        if how != READ_WRITE or path not in looked_into:
            folder = path.parent if path.parent in own else launch.vault
            inside[folder].append((path, identity, how))
    return "\n".join(_look(folder, own.get(folder), names) for folder, names in inside.items())


def _look(folder: Path, identity: Identity | None, inside: Sequence[Checked]) -> str:
    read_only, other, hidden = (
        [(f"./{path.relative_to(folder)}", each) for path, each, how in inside if how == kind]
        for kind in (READ_ONLY, READ_WRITE, MASK)
    )
    expected = [*read_only, *other, *([(".", identity)] if identity else [])]
    return shlex.join(
        (
            *("look", str(folder), "".join(f"{each} " for _, each in expected)),
            *(" ".join(each for _, each in hidden), str(len(read_only))),
            *(name for name, _ in (*expected, *hidden)),
        )
    )

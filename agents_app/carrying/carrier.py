"""Writes that the server makes in the place of an agent, because its wall keeps the file read-only.

A Bash command that does nothing but change settings of a repository comes here too: see `git_settings.py`.

What is applied is exactly one Write, Edit or MultiEdit, to exactly one place below the vault, all of it or
nothing. The way there is by directory handles. A file that steers agents stays the same file, because walls
are mounted on it: another that took its name would lie there open. Any other is replaced as a whole.
"""

import asyncio
import errno
import logging
import stat
from collections.abc import Callable
from pathlib import Path

from agents_app.carrying import edits, git_settings
from agents_app.errors import CannotCarryOut
from agents_app.sandboxes.base import MASK, READ_ONLY, READ_WRITE
from agents_app.workers.endings import to_its_end
from permissions_app.gate import Carried
from permissions_app.rules.control_files import steers
from permissions_app.rules.paths import fold
from permissions_app.rules.places import edits_in
from permissions_app.rules.tools import ToolCall, ToolKind, kind_of
from sessions_app.files.folders import Folder

log = logging.getLogger(__name__)

TOOLS = frozenset({"Write", "Edit", "MultiEdit"})
SHELL = "Bash"

NOT_HERE = "Parachute cannot make a change with this tool behind a wall. Use Write or Edit for this file."
NOT_PLAIN = "What lies there is a link, a folder or a special file, and no regular file."
NO_WAY = "The way there leads through a link or a file."

WHY = {
    errno.ENOSPC: "The disk is full.",
    errno.EDQUOT: "The disk is full.",
    errno.EACCES: "The server may not write there.",
    errno.EPERM: "The server may not write there.",
    errno.EROFS: "The server may not write there.",
    errno.ELOOP: NO_WAY,
    errno.ENOTDIR: NO_WAY,
    errno.ENOENT: edits.NO_FILE,
    errno.EEXIST: NO_WAY,
    errno.EISDIR: NOT_PLAIN,
    errno.EFBIG: edits.TOO_LARGE,
    errno.ENAMETOOLONG: "The name is too long.",
}


class Carrier:
    """For one process of an agent. `shows` says how its wall shows a place: to read, to write, or not at all.
    What it hides nobody writes for it: a new file would lie there without the mask."""

    def __init__(self, vault: Path, shows: Callable[[Path], int]) -> None:
        self._vault = vault.resolve()
        self._shows = shows

    def wants(self, call: ToolCall, place: Path, *, is_approved: bool) -> bool:
        kind = kind_of(call.name, call.input)
        if kind is ToolKind.SHELL:
            return is_approved and place.is_relative_to(self._vault)
        shown = self._shows(place)
        if kind is not ToolKind.WRITE or not place.is_relative_to(self._vault) or shown == MASK:
            return False
        return shown == READ_ONLY or (is_approved and call.name in TOOLS)

    async def __call__(self, call: ToolCall, place: Path) -> Carried:
        """To its end, also where the turn is stopped meanwhile: half of it is nothing that was allowed."""
        return await to_its_end(asyncio.to_thread(self.carry_out, call, place))

    def carry_out(self, call: ToolCall, place: Path) -> Carried:
        name = place.relative_to(self._vault)
        is_set = call.name == SHELL
        try:
            done = self._set(call, name) if is_set else self._write(call, place, name)
        except (CannotCarryOut, OSError) as problem:
            what = f"{'change' if is_set else 'write'} {name}"
            return Carried(f"Parachute could not {what} for you. {_why(problem)}", is_error=True)
        return Carried(f"Done: Parachute {done}")

    def _write(self, call: ToolCall, place: Path, name: Path) -> str:
        """Refused, nothing has changed but for folders that were made."""
        if call.name not in TOOLS:
            raise CannotCarryOut(NOT_HERE)
        is_open = self._shows(place) == READ_WRITE
        why = "as a person allowed" if is_open else "because the wall keeps it read-only"
        *above, last = name.parts or ("",)
        with Folder.at(self._vault) as top, top.below(*above, make=call.name == "Write") as folder:
            _write(call, folder, last, is_control_file=steers([fold(each) for each in name.parts]))
        return f"wrote {name} for you, {why}. Do not write it again. Read it before you change more of it."

    def _set(self, call: ToolCall, name: Path) -> str:
        """A command that does no more than change settings of the repository to which the file belongs."""
        with Folder.at(self._vault) as top, top.below(*name.parts[:-1]) as folder:
            changed = git_settings.change(folder, edits_in(call, self._vault))
        return (
            f"changed {name} for you ({changed}), because the wall keeps it read-only. "
            "Nothing else of this line was run."
        )


def _write(call: ToolCall, folder: Folder, name: str, *, is_control_file: bool) -> None:
    found = folder.look(name)
    if found is None:
        folder.write(name, edits.changed(call, None))
    elif not stat.S_ISREG(found.st_mode):
        raise CannotCarryOut(NOT_PLAIN)
    elif not is_control_file:
        folder.write(name, edits.changed(call, _text(call, folder, name)), mode=stat.S_IMODE(found.st_mode))
    elif found.st_nlink > 1:
        raise CannotCarryOut(git_settings.TWO_NAMES)
    else:
        folder.overwrite(name, edits.changed(call, _text(call, folder, name)))


def _text(call: ToolCall, folder: Folder, name: str) -> str:
    if call.name == "Write":
        return ""  # whatever it holds is replaced
    content = folder.read(name, first=edits.LARGEST + 1)
    if len(content) > edits.LARGEST:
        raise CannotCarryOut(edits.TOO_LARGE)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise CannotCarryOut(edits.NOT_TEXT) from error


def _why(problem: CannotCarryOut | OSError) -> str:
    if isinstance(problem, CannotCarryOut):
        return str(problem)
    log.info("What is carried out for an agent failed: %s", errno.errorcode.get(problem.errno or 0))
    return WHY.get(problem.errno or 0, "The file system refused it.")

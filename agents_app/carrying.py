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
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agents_app import git_settings
from agents_app.endings import to_its_end
from permissions_app.gate import Carried
from permissions_app.rules.control_files import steers
from permissions_app.rules.paths import fold
from permissions_app.rules.places import edits_in
from permissions_app.rules.tools import Kind, ToolCall, kind_of
from sessions_app.folders import Folder

log = logging.getLogger(__name__)

LARGEST = 8 << 20  # bytes, before and after
TOOLS = frozenset({"Write", "Edit", "MultiEdit"})
SHELL = "Bash"

NOT_HERE = "Parachute cannot make a change with this tool behind a wall. Use Write or Edit for this file."
NOT_PLAIN = "What lies there is a link, a folder or a special file, and no regular file."
NO_WAY = "The way there leads through a link or a file."
TWO_NAMES = git_settings.TWO_NAMES
NOT_TEXT = "It is no text in UTF-8."
TOO_LARGE = f"It is larger than {LARGEST >> 20} MB."
BROKEN = "The arguments of the call are not what this tool takes."
UNCHANGED = "old_string and new_string are the same."
NOT_FOUND = "The text to replace is not in the file as it is now. Read it again."
NOT_UNIQUE = "The text to replace occurs {count} times. Give more of what is around it, or set replace_all."
NO_FILE = "There is no such file."

WHY = {
    errno.ENOSPC: "The disk is full.",
    errno.EDQUOT: "The disk is full.",
    errno.EACCES: "The server may not write there.",
    errno.EPERM: "The server may not write there.",
    errno.EROFS: "The server may not write there.",
    errno.ELOOP: NO_WAY,
    errno.ENOTDIR: NO_WAY,
    errno.ENOENT: NO_FILE,
    errno.EEXIST: NO_WAY,
    errno.EISDIR: NOT_PLAIN,
    errno.EFBIG: TOO_LARGE,
    errno.ENAMETOOLONG: "The name is too long.",
}


class CannotCarryOut(Exception):
    """The text says why, to the model and to a person."""


class Carrier:
    """For one process of an agent. `leaves_open` says of a place whether its wall lets it write there."""

    def __init__(self, vault: Path, leaves_open: Callable[[Path], bool]) -> None:
        self._vault = vault.resolve()
        self._leaves_open = leaves_open

    def wants(self, call: ToolCall, place: Path, *, is_approved: bool) -> bool:
        kind = kind_of(call.name, call.input)
        if kind is Kind.SHELL:
            return is_approved and place.is_relative_to(self._vault)
        if kind is not Kind.WRITE or not place.is_relative_to(self._vault):
            return False
        return not self._leaves_open(place) or (is_approved and call.name in TOOLS)

    async def __call__(self, call: ToolCall, place: Path) -> Carried:
        """To its end, also where the turn is stopped meanwhile: half of it is nothing that was allowed."""
        return await to_its_end(asyncio.to_thread(self.carry_out, call, place))

    def carry_out(self, call: ToolCall, place: Path) -> Carried:
        name = place.relative_to(self._vault)
        if call.name == SHELL:
            return _set(call, self._vault, name.parts)
        why = "as a person allowed" if self._leaves_open(place) else "because the wall keeps it read-only"
        try:
            apply(call, self._vault, name.parts)
        except CannotCarryOut as problem:
            return Carried(f"Parachute could not write {name} for you. {problem}", is_error=True)
        return Carried(
            f"Done: Parachute wrote {name} for you, {why}. Do not write it again. "
            "Read it before you change more of it."
        )


def _set(call: ToolCall, vault: Path, names: tuple[str, ...]) -> Carried:
    """A command that does no more than change settings of the repository to which the file belongs."""
    where = "/".join(names)
    try:
        with Folder.at(vault) as top, top.below(*names[:-1]) as folder:
            changed = git_settings.change(folder, edits_in(call, vault))
    except git_settings.CannotSet as problem:
        return Carried(f"Parachute could not change {where} for you. {problem}", is_error=True)
    except OSError as error:
        why = WHY.get(error.errno or 0, "The file system refused it.")
        return Carried(f"Parachute could not change {where} for you. {why}", is_error=True)
    return Carried(
        f"Done: Parachute changed {where} for you ({changed}), because the wall keeps it read-only. "
        "Nothing else of this line was run."
    )


def apply(call: ToolCall, vault: Path, names: tuple[str, ...]) -> None:
    """Raises CannotCarryOut, and then nothing has changed but for folders that were made."""
    if call.name not in TOOLS:
        raise CannotCarryOut(NOT_HERE)
    *above, name = names or ("",)
    try:
        with Folder.at(vault) as top, top.below(*above, make=call.name == "Write") as folder:
            _apply(call, folder, name, is_control_file=steers([fold(each) for each in names]))
    except OSError as error:
        log.info("A write could not be carried out: %s", errno.errorcode.get(error.errno or 0))
        raise CannotCarryOut(WHY.get(error.errno or 0, "The file system refused it.")) from error


def _apply(call: ToolCall, folder: Folder, name: str, *, is_control_file: bool) -> None:
    found = folder.look(name)
    if found is None:
        folder.write(name, _changed(call, None))
    elif not stat.S_ISREG(found.st_mode):
        raise CannotCarryOut(NOT_PLAIN)
    elif not is_control_file:
        folder.write(name, _changed(call, _text(call, folder, name)), mode=stat.S_IMODE(found.st_mode))
    elif found.st_nlink > 1:
        raise CannotCarryOut(TWO_NAMES)
    else:
        folder.overwrite(name, _changed(call, _text(call, folder, name)))


def _text(call: ToolCall, folder: Folder, name: str) -> str:
    if call.name == "Write":
        return ""  # whatever it holds is replaced
    content = folder.read(name, first=LARGEST + 1)
    if len(content) > LARGEST:
        raise CannotCarryOut(TOO_LARGE)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise CannotCarryOut(NOT_TEXT) from error


def _changed(call: ToolCall, before: str | None) -> bytes:
    """The content as it is to be."""
    if call.name == "Write":
        return _encoded(_string(call.input, "content"))
    edits = call.input.get("edits") if call.name == "MultiEdit" else [call.input]
    if not isinstance(edits, list) or not edits or not all(isinstance(each, Mapping) for each in edits):
        raise CannotCarryOut(BROKEN)
    text = before
    for edit in edits:
        text = _edited(text, edit)
    assert text is not None
    return _encoded(text)


def _edited(text: str | None, edit: Mapping[str, Any]) -> str:
    old, new = _string(edit, "old_string"), _string(edit, "new_string")
    if old == new:
        raise CannotCarryOut(UNCHANGED)
    if not old and not text:  # a new file, or an empty one
        return new
    if text is None:
        raise CannotCarryOut(NO_FILE)
    if "\r\n" in text and "\r\n" not in old:  # an agent reads and writes lines without the CR
        old, new = old.replace("\n", "\r\n"), new.replace("\r\n", "\n").replace("\n", "\r\n")
    count = text.count(old) if old else 0
    if not count:
        raise CannotCarryOut(NOT_FOUND)
    if count > 1 and edit.get("replace_all") is not True:
        raise CannotCarryOut(NOT_UNIQUE.format(count=count))
    if len(text) + count * (len(new) - len(old)) > LARGEST:
        raise CannotCarryOut(TOO_LARGE)
    return text.replace(old, new)


def _string(given: Mapping[str, Any], key: str) -> str:
    value = given.get(key)
    if not isinstance(value, str):
        raise CannotCarryOut(BROKEN)
    return value


def _encoded(text: str) -> bytes:
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        raise CannotCarryOut(NOT_TEXT) from error
    if len(content) > LARGEST:
        raise CannotCarryOut(TOO_LARGE)
    return content

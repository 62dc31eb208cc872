"""What a Write, Edit or MultiEdit of an agent makes of a text: all of it, or it is refused."""

from collections.abc import Mapping
from typing import Any

from agents_app.errors import CannotCarryOut
from permissions_app.rules.tools import ToolCall

LARGEST = 8 << 20  # bytes, before and after

NOT_TEXT = "It is no text in UTF-8."
TOO_LARGE = f"It is larger than {LARGEST >> 20} MB."
BROKEN = "The arguments of the call are not what this tool takes."
UNCHANGED = "old_string and new_string are the same."
NOT_FOUND = "The text to replace is not in the file as it is now. Read it again."
NOT_UNIQUE = "The text to replace occurs {count} times. Give more of what is around it, or set replace_all."
NO_FILE = "There is no such file."


def changed(call: ToolCall, before: str | None) -> bytes:
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

"""Text that every database stores and every reader can be sent."""

import re
from typing import Any

# PostgreSQL stores neither, and half of a surrogate pair has no UTF-8. `find -print0` is enough to meet one.
_NO_TEXT = re.compile("[\0\ud800-\udfff]")

_TURNS_TEXT_AROUND = re.compile("[\u202a-\u202e\u2066-\u2069]")

# Spaces, controls, and what Unicode calls "default ignorable"; a braille pattern without dots is blank too.
_UNSEEN = (
    r"\s\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Joiners, variations and tags are part of the emoji or the letter before them, which ASCII has none of.
_PART_OF_ONE = r"(?<=[^\x00-\x7f])[\u200c\u200d\u180b-\u180f\ufe00-\ufe0f\U000e0020-\U000e01ef]+"
_JOINS = r"\u200c\u200d\u180b-\u180f\ufe00-\ufe0f"
_HIDDEN = re.compile(rf"(?![\s{_JOINS}])[{_UNSEEN}]")
# Behind ASCII they join nothing, and more than two in a row carry words of their own.
_JOINS_NOTHING = re.compile(rf"(?:(?<=[\x00-\x7f])|^|(?<=[{_JOINS}][{_JOINS}]))[{_JOINS}]+")
_SEEN = re.compile(rf"[^{_UNSEEN}](?:.*[^{_UNSEEN}])?(?:{_PART_OF_ONE})?", re.DOTALL)


def is_storable(text: str) -> bool:
    return _NO_TEXT.search(text) is None


def seen(text: str) -> str:
    """From the first character that can be seen to the last; empty where none can."""
    found = _SEEN.search(text)
    return found[0] if found else ""


def visible(text: str) -> str:
    """The characters that turn the order of text around are shown by name: nobody reads what is not there."""
    return _TURNS_TEXT_AROUND.sub(lambda found: f"\N{REPLACEMENT CHARACTER}U+{ord(found[0]):04X}", text)


def without_hidden(text: str) -> str:
    """What is left of it for somebody who reads: no controls, nothing that turns text around, and no letters
    that only machines see. Spaces and lines stay, and so do the joiners of emoji and of scripts."""
    return _JOINS_NOTHING.sub("", _HIDDEN.sub("", text))


def storable(value: Any) -> Any:
    """The same value, with U+FFFD in place of what is no text."""
    match value:
        case str():
            return _NO_TEXT.sub("\ufffd", value)
        case dict():
            return {storable(key): storable(inner) for key, inner in value.items()}
        case list() | tuple():
            return [storable(inner) for inner in value]
        case _:
            return value

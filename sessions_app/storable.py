"""Text that every database stores and every reader can be sent."""

import re
from typing import Any

# PostgreSQL stores neither, and half of a surrogate pair has no UTF-8. `find -print0` is enough to meet one.
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


def is_storable(text: str) -> bool:
    return _NO_TEXT.search(text) is None


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

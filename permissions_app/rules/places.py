"""Where a write leads: the one place in which its path ends once links are followed."""

from pathlib import Path

from permissions_app.rules.paths import NotUnderstood
from permissions_app.rules.request import Request, read
from permissions_app.rules.setting import Setting
from permissions_app.rules.tools import FILE_ARGUMENT, Kind, ToolCall, kind_of


def place_written(call: ToolCall, setting: Setting) -> Path | None:
    """None for a call of which it is not certain that it writes one file. It looks at files."""
    try:
        is_write = kind_of(call.name, call.input) is Kind.WRITE
        return written_by(read(call, setting)) if is_write else None
    except NotUnderstood:
        return None


def written_by(request: Request) -> Path | None:
    if request.kind is not Kind.WRITE:
        return None
    ends = {end for place in request.places for end in place.ends}
    return Path(ends.pop()) if len(ends) == 1 else None


def at_place(call: ToolCall, place: Path) -> ToolCall:
    """The same call by the place's own path."""
    return ToolCall(call.id, call.name, {**call.input, FILE_ARGUMENT[call.name]: str(place)})

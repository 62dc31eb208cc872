"""Where a write leads: the one place in which its path ends once links are followed."""

from pathlib import Path, PurePath

from permissions_app.rules import shell
from permissions_app.rules.git_settings import Edit, edits_of
from permissions_app.rules.ground import Ground
from permissions_app.rules.paths import Links, NotUnderstood, find
from permissions_app.rules.request import Request, read
from permissions_app.rules.setting import Setting
from permissions_app.rules.tools import FILE_ARGUMENT, ToolCall, ToolKind, kind_of, text_argument


def place_written(call: ToolCall, setting: Setting) -> Path | None:
    """None for a call of which it is not certain that it writes one file, or that its wall would let it. It
    looks at files."""
    try:
        kind = kind_of(call.name, call.input)
        may_write = kind is ToolKind.WRITE or (kind is ToolKind.SHELL and _may_set(call, setting))
        return written_by(read(call, setting)) if may_write else None
    except NotUnderstood:
        return None


def written_by(request: Request) -> Path | None:
    if request.kind is ToolKind.SHELL:
        return Path(request.held_settings[0].config) if request.is_only_settings else None
    if request.kind is not ToolKind.WRITE:
        return None
    ends = {end for place in request.places for end in place.ends}
    return Path(ends.pop()) if len(ends) == 1 else None


def at_place(call: ToolCall, place: Path) -> ToolCall:
    """The same call by the place's own path."""
    if call.name not in FILE_ARGUMENT:
        return call
    return ToolCall(call.id, call.name, {**call.input, FILE_ARGUMENT[call.name]: str(place)})


def edits_in(call: ToolCall, vault: Path) -> tuple[Edit, ...]:
    """What a command that only changes a repository's settings changes of them, in its order."""
    links: Links = {}
    here = find(str(vault), "/", links)
    ground = Ground(
        vault=here,
        working_directory=here,
        home=here,
        scratch=None,
        own_config=None,
        closed=None,
        opened=frozenset(),
        links=links,
    )
    reading = shell.read_command(text_argument(call, "command"), ground, behind_wall=True)
    gits = (command.words for command in reading.commands if PurePath(command.words[0]).name == "git")
    return tuple(edit for words in gits for edit in edits_of(words))


def _may_set(call: ToolCall, setting: Setting) -> bool:
    """Each command comes by here, and few are worth a second reading."""
    return bool(setting.held) and "git" in str(call.input.get("command"))

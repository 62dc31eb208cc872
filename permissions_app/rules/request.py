"""A call, read: what it does, and where."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from permissions_app.rules import shell
from permissions_app.rules.git_settings import Change, makes_repository, only_looks
from permissions_app.rules.ground import Ground, ground_of
from permissions_app.rules.paths import NotUnderstood, Place, find, refuse_unclear
from permissions_app.rules.setting import Setting, Trust
from permissions_app.rules.tools import (
    GLOB_ARGUMENT,
    SEARCHERS,
    ToolCall,
    ToolKind,
    fixed_part,
    kind_of,
    named_paths,
    optional_text,
    text_argument,
)


@dataclass(frozen=True)
class Request:
    call: ToolCall
    kind: ToolKind
    places: tuple[Place, ...]
    glob: str
    reading: shell.Reading | None  # of a Bash command
    ground: Ground
    setting: Setting

    @property
    def is_file_tool(self) -> bool:
        return self.kind in {ToolKind.READ, ToolKind.WRITE}

    @property
    def writes(self) -> tuple[Place, ...]:
        """What it writes, as far as that can be read."""
        if self.kind is ToolKind.WRITE:
            return self.places
        return tuple(self.reading.writes) if self.reading else ()

    @property
    def held_settings(self) -> tuple[Change, ...]:
        """What a command would change of repositories whose settings its wall shows read-only."""
        if self.reading is None or self.setting.trust is not Trust.VAULT or not self.setting.behind_wall:
            return ()
        found = [change for change in self.reading.settings if change.config in self.setting.held]
        made = sum(makes_repository(command.words) for command in self.reading.commands)
        # Where the line makes one, what follows speaks of that, and not of the one around it.
        return () if made > sum(change.by == "init" for change in found) else tuple(found)

    @property
    def is_only_settings(self) -> bool:
        """Is all that the line does the change of one repository's settings, as its words say it?"""
        reading, changes = self.reading, self.held_settings
        if reading is None or not changes or reading.outcome is not shell.Outcome.WORDS or reading.indirect:
            return False
        others = [command for command in reading.commands if not only_looks(command.words)]
        return (
            len(others) == len(reading.settings) == len(changes)
            and len({change.config for change in changes}) == 1
            and all(change.edits for change in changes)
            and not reading.writes
            and "||" not in self.call.input["command"]
        )

    @property
    def runs_freely(self) -> bool:
        """An operator's session on the host itself."""
        return self.setting.trust is Trust.FULL and not self.setting.behind_wall


def read(call: ToolCall, setting: Setting) -> Request:
    """Raises NotUnderstood where the call cannot be read with certainty."""
    _refuse_unless_mapping(call.input)
    kind = kind_of(call.name, call.input)
    ground = ground_of(setting)
    glob = optional_text(call, GLOB_ARGUMENT[call.name]) if call.name in GLOB_ARGUMENT else ""
    refuse_unclear(glob)
    reading = None
    if kind is ToolKind.SHELL:
        command = text_argument(call, "command")
        reading = shell.read_command(command, ground, behind_wall=setting.behind_wall)
    return Request(call, kind, tuple(_places(call, glob, ground)), glob, reading, ground, setting)


def _refuse_unless_mapping(value: object) -> None:
    if not isinstance(value, Mapping):
        raise NotUnderstood("its input is no object")


def _places(call: ToolCall, glob: str, ground: Ground) -> Iterator[Place]:
    start = ground.working_directory.stops[0]
    yield from (find(path, start, ground.links) for path in named_paths(call))
    if call.name in SEARCHERS:
        folder = find(optional_text(call, "path"), start, ground.links)
        yield folder
        if call.name == "Glob":
            text_argument(call, "pattern")
            yield find(fixed_part(glob), folder.stops[0], ground.links)

"""The whole of a command line, from its text."""

from permissions_app.rules.ground import Ground
from permissions_app.rules.shell.parse import Unreadable
from permissions_app.rules.shell.reading import Outcome, Reading
from permissions_app.rules.shell.scope import Scope
from permissions_app.rules.shell.walk import Line

MAX_READINGS = 6


def read_command(text: str, ground: Ground, *, behind_wall: bool) -> Reading:
    reading = Reading()
    line = Line(reading, ground, Scope(ground.working_directory.stops[0]), behind_wall=behind_wall)
    try:
        _read(line, text)
        line.read_subscripts()
    except (Unreadable, RecursionError):
        reading.found(Outcome.UNREADABLE)
    if reading.outcome is not Outcome.WORDS:
        reading.indirect = True
    return reading


def _read(line: Line, text: str) -> None:
    """A loop or a function runs with what was said further down, so it is read until it says no more."""
    for time in range(MAX_READINGS):
        line.reading.commands.clear()
        line.reading.settings.clear()
        line.begin()
        line.code(text)
        if not line.has_learned:
            return
        if time:
            line.scope.widen()
            line.learned.widens = True
    line.reading.found(Outcome.UNREADABLE)

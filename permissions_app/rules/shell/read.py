"""The whole of a command line, from its text."""

from permissions_app.rules.ground import Ground
from permissions_app.rules.shell.parse import Unreadable
from permissions_app.rules.shell.reading import Outcome, Reading
from permissions_app.rules.shell.walk import Line
from permissions_app.rules.shell.words import Scope


def read_command(text: str, ground: Ground, *, behind_wall: bool) -> Reading:
    reading = Reading()
    line = Line(reading, ground, Scope(ground.working_directory.stops[0]), behind_wall=behind_wall)
    try:
        line.code(text)
        if line.scope.variables or line.functions:
            # A loop or a function runs again with what was assigned further down.
            line.scope.directory = ground.working_directory.stops[0]
            reading.commands.clear()
            reading.settings.clear()
            line.code(text)
    except (Unreadable, RecursionError):
        reading.found(Outcome.UNREADABLE)
    if reading.outcome is not Outcome.WORDS:
        reading.indirect = True
    return reading

"""The first that runs behind a wall: is what was bound into it what was looked at?

A wall binds by path, and an agent of another session may have swapped a folder for a link since. Nothing of
the agent runs before this has looked.
"""

import shlex

from .base import CannotConfine, Launch

CHANGED = "The vault changed while the wall was built around it. Send the message again."
LONGEST = 120_000  # bytes of one argument


def checked(launch: Launch) -> tuple[str, ...]:
    """The launch's command line, with the look before it where there is something to look at."""
    if not launch.checked:
        return launch.argv
    paths = " ".join(shlex.quote(str(path)) for path, _ in launch.checked)
    expected = "\n".join(identity for _, identity in launch.checked)
    look = f'[ "$(/usr/bin/stat -c %d:%i -- {paths})" = {shlex.quote(expected)} ]'
    script = f'{look} || {{ echo {shlex.quote(CHANGED)} >&2; exit 1; }}; exec "$@"'
    if len(script.encode(errors="surrogateescape")) > LONGEST:
        raise CannotConfine(f"{launch.vault} has too many files that steer agents ({len(launch.checked)}).")
    return ("/bin/sh", "-c", script, "sh", *launch.argv)

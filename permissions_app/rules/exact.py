"""A digest of exactly one call, for a grant that is good once.

An approval may come a day later. What was approved is the call as it would run now: the same words, the same
folders behind them, and the same text in the scripts that it runs.
"""

import hashlib
import json
import os
import stat

from permissions_app.rules.paths import NotUnderstood, Place
from permissions_app.rules.request import Request, read
from permissions_app.rules.setting import Setting
from permissions_app.rules.shell import Reading
from permissions_app.rules.shell.recipes import runs_files
from permissions_app.rules.tools import ToolCall

MAX_CONTENT = 1024 * 1024
MAX_FILES = 60  # that are read; of others their size and time stand for them


def exactly(call: ToolCall, setting: Setting) -> str:
    """Raises NotUnderstood where the call cannot be read."""
    return exactly_this(read(call, setting))


def exactly_this(request: Request) -> str:
    call = request.call
    reading = request.reading
    said = {
        "tool": call.name,
        "input": _input(call),
        "directory": request.ground.working_directory.ends,
        "paths": [place.ends for place in (*request.places, *(reading.places if reading else ()))],
        "scripts": {
            path: _content(path, most=MAX_CONTENT if number < MAX_FILES else 0)
            for number, path in enumerate(_scripts(reading))
        },
    }
    text = json.dumps(said, sort_keys=True, ensure_ascii=True, default=list)
    return hashlib.sha256(text.encode()).hexdigest()


def _input(call: ToolCall) -> str:
    try:
        return json.dumps(call.input, sort_keys=True, ensure_ascii=True)
    except (TypeError, ValueError, RecursionError):
        raise NotUnderstood("its input is no plain data") from None


def _scripts(reading: Reading | None) -> list[str]:
    """Every file that the line may run, as far as its words say it.

    Where one of its commands runs what a file says, that is any of the files that are named: which of its
    words is the script, or comes in by `<`, is its own affair.
    """
    if reading is None:
        return []
    runs = any(runs_files(command.words[0]) for command in reading.commands)
    named = reading.places if runs else [place for place in reading.places if _is_program(place)]
    return sorted({end for place in (*reading.scripts, *named) for end in place.ends})


def _is_program(place: Place) -> bool:
    """A file that may be run by its name: `xargs ./x`, `timeout 5 ./x`."""
    return any(os.access(end, os.X_OK) for end in place.ends)


def _content(path: str, *, most: int) -> str:
    try:
        # A link or a pipe that was put there since must neither be followed nor wait for a writer.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return f"not opened: {error.errno}"
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode):
        os.close(handle)
        return "no file"
    with os.fdopen(handle, "rb") as file:
        digest = hashlib.sha256(file.read(most)).hexdigest()
    # Beyond what is read, its size and the time of its last change stand for it.
    rest = (about.st_size, about.st_mtime_ns, about.st_ino) if about.st_size > most else ()
    return f"{digest} {rest}"

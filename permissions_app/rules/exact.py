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
from permissions_app.rules.tools import ToolCall

MAX_CONTENT = 1024 * 1024

# What `npm test` and `make` run is in a file that their words do not name.
_RECIPES = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "just": ("justfile", "Justfile"),
    **dict.fromkeys(("npm", "yarn", "pnpm", "npx"), ("package.json",)),
}


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
        "scripts": {path: _content(path) for path in _scripts(request, reading)},
    }
    text = json.dumps(said, sort_keys=True, ensure_ascii=True, default=list)
    return hashlib.sha256(text.encode()).hexdigest()


def _input(call: ToolCall) -> str:
    try:
        return json.dumps(call.input, sort_keys=True, ensure_ascii=True)
    except (TypeError, ValueError, RecursionError):
        raise NotUnderstood("its input is no plain data") from None


def _scripts(request: Request, reading: Reading | None) -> list[str]:
    if reading is None:
        return []
    found = [end for place in reading.scripts for end in place.ends]
    here = request.ground.working_directory.ends[0]
    for command in reading.commands:
        found += [f"{here}/{name}" for name in _RECIPES.get(command.words[0], ())]
    found += [end for place in _run_by_name(reading) for end in place.ends]
    return sorted(set(found))


def _run_by_name(reading: Reading) -> list[Place]:
    """Words that are files which may be run: `xargs ./x`, `timeout 5 ./x`."""
    return [place for place in reading.places if any(os.access(end, os.X_OK) for end in place.ends)]


def _content(path: str) -> str:
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
        digest = hashlib.sha256(file.read(MAX_CONTENT)).hexdigest()
    # Beyond what is read, its size and the time of its last change stand for it.
    rest = (about.st_size, about.st_mtime_ns, about.st_ino) if about.st_size > MAX_CONTENT else ()
    return f"{digest} {rest}"

"""What the worker's side of the launcher makes: the orders, and the file that carries them out."""

import json
import os
import secrets
import shlex
import sys
import tempfile
from pathlib import Path

from agents_app.sandboxes.base import Launch

from . import launch as program

PART = 100_000
LONGEST_SHEBANG = 127  # of kernels before 5.1; later ones take 255


def new_mark() -> str:
    return secrets.token_hex(16)


def orders_for(launch: Launch) -> dict[str, str]:
    """The variables that tell the launcher what to become. As secret as the environment that they hold."""
    directory = str(launch.directory)
    environment = {**launch.environment, "PWD": directory}
    orders = {
        "environment": environment,  # first: by the mark in it the launcher is found, however much follows
        "argv": launch.argv,
        "directory": directory,
        "limits": launch.limits.of_a_process() if launch.limits else {},
        "given": [each.hex() for each in launch.given],
        "groups": {str(group.folder): dict(group.files) for group in launch.groups},
    }
    text = json.dumps(orders)
    parts = [text[start : start + PART] for start in range(0, len(text), PART)]
    return {f"{program.ORDERS}{number:03}": part for number, part in enumerate(parts)}


def executable(folder: Path) -> Path:
    """The launcher as one executable file in `folder`, made where it is not. The folder becomes 0700."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    path, text = folder / "launch", _text()
    if not (path.exists() and path.read_text() == text and os.access(path, os.X_OK)):
        _write(path, text)
    return path


def _text() -> str:
    return _first_lines(sys.executable) + Path(program.__file__).read_text()


def _first_lines(python: str) -> str:
    """Isolated and without site-packages: neither PYTHONPATH nor a folder has a say in what this imports."""
    shebang = f"#!{python} -IS\n"
    if len(shebang.encode()) <= LONGEST_SHEBANG and len(python.split()) == 1:
        return shebang
    # To sh the second line runs Python over this same file; to Python it is a string.
    return f"#!/bin/sh\n'''exec' {shlex.quote(python)} -IS \"$0\" \"$@\"\n' '''\n"


def _write(path: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    Path(name).chmod(0o700)
    Path(name).rename(path)

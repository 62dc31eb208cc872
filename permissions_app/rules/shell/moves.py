"""`cd`, `pushd`, `popd`: where they may lead, and whether they may fail."""

import os
import re
from typing import TYPE_CHECKING

from permissions_app.rules.shell.scope import Directories
from permissions_app.rules.shell.words import UNKNOWN, Word

if TYPE_CHECKING:
    from permissions_app.rules.shell.walk import Line

_KEEPS_MEANING = re.compile(r"-[PLe@]+")


def changes_directory(line: "Line", words: list[Word], stdin: str | None) -> None:
    scope, here = line.scope, line.scope.directory
    targets = _targets(line, words)
    is_sure = words[0].text not in line.functions and all(_is_there(line, target) for target in targets)
    scope.left.add(here)
    scope.end(targets, () if is_sure else {here})


def _targets(line: "Line", words: list[Word]) -> Directories:
    scope = line.scope
    options = [word.text for word in words[1:] if re.match(r"[-+].", word.text) and word.text != "--"]
    arguments = [word for word in words[1:] if word.text not in {*options, "--"}]
    if not all(_KEEPS_MEANING.fullmatch(option) for option in options):
        scope.left.add(None)  # `pushd -n /etc; popd`
        return frozenset(scope.left)
    if words[0].text.endswith("popd") or (not arguments and words[0].text.endswith("pushd")):
        return frozenset(scope.left or {None})
    if not arguments:
        return _each(line, scope.values("HOME"))
    if arguments[0].text == "-":
        return frozenset(scope.left or {None}) | _each(line, scope.variables.get("OLDPWD", set()))
    if arguments[0].pattern is not None:
        matches = line.paths.opened(arguments[0])
        return _each(line, set(matches)) if arguments[0].text not in matches else frozenset({None})
    return _each(line, _spellings(line, arguments[0].text))


def _spellings(line: "Line", text: str) -> set[str]:
    """What a relative path may be: CDPATH and `shopt -s cdable_vars` give it other beginnings."""
    found = {text}
    if not re.match(r"\.{0,2}(/|$)", text):
        for value in line.scope.variables.get("CDPATH", ()):
            found |= {f"{folder}/{text}" if folder else text for folder in value.split(":")}
    if "cdable_vars" in line.scope.options:
        found |= line.scope.values(text)
    return found


def _each(line: "Line", texts: set[str]) -> Directories:
    return frozenset(directory for text in texts for directory in _resolved(line, text))


def _resolved(line: "Line", text: str) -> set[str | None]:
    place = None if UNKNOWN in text else line.paths.place(text)
    if place is None:
        return {None}
    # `link/..` is one folder to `cd` and another to `cd -P`.
    return {place.stops[0], *(place.ends if ".." in text else ())}


def _is_there(line: "Line", directory: str | None) -> bool:
    """Can it be entered for sure? Not if the line itself may have taken it away before."""
    if directory is None or not os.access(directory, os.X_OK) or not os.path.isdir(directory):  # noqa: PTH112
        return False
    step = directory
    while step != "/":
        if step in line.taken_away:
            return False
        step = os.path.dirname(step)  # noqa: PTH120
    return True

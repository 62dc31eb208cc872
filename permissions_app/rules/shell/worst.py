"""Is a command dangerous, whoever runs it?"""

import re
from typing import TYPE_CHECKING

from permissions_app.rules.shell import danger
from permissions_app.rules.shell.reading import Outcome
from permissions_app.rules.shell.words import UNKNOWN, Word
from permissions_app.rules.shell.written import emptied_by_rsync, moved

if TYPE_CHECKING:
    from permissions_app.rules.shell.walk import Line

_ALWAYS_RECURSIVE = frozenset({"rimraf", "remove_directory"})  # the second is `cmake -E`'s
_REMOVES = frozenset({"rm", "chmod", "chown", "chgrp", "setfacl", "chattr"})
_RECURSIVE = re.compile(r"--r(e(c(u(r(s(i(ve?)?)?)?)?)?)?)?|-[a-qs-zA-QS-Z]*[rR][a-zA-Z]*")


def is_dangerous(line: "Line", name: str, arguments: list[Word]) -> bool:
    if name in danger.BECOME_ROOT or name == "mkfs" or name.startswith(("mkfs.", "mke2fs", "newfs")):
        return True
    texts = [word.text for word in arguments]
    if name == "dd":
        return any(re.match(r"(if|of)=", text) and _is_device(line, text[3:]) for text in texts)
    if name in _ALWAYS_RECURSIVE:
        return any(_destroys(line, word, rights_only=False) for word in arguments)
    if name in {"mv", "rsync"}:
        emptied = moved(arguments) if name == "mv" else emptied_by_rsync(arguments)
        # A file of the system that is moved away asks, as one that is written does.
        return any(_destroys(line, word, rights_only=True, folders_only=True) for word in emptied)
    if name in _REMOVES and any(_RECURSIVE.fullmatch(text) for text in texts):
        if any(not word.known for word in arguments):
            line.reading.found(Outcome.UNREADABLE)
        if line.scope.directory is None:
            line.reading.found(Outcome.UNREADABLE)
        return "--no-preserve-root" in texts or any(
            _destroys(line, word, rights_only=name != "rm")
            for word in arguments
            if not word.text.startswith("-")
        )
    return False


def _is_device(line: "Line", text: str) -> bool:
    place = line.paths.place(text)
    return place is not None and any(danger.is_device(path) for path in {*place.stops, *place.ends})


def _destroys(line: "Line", word: Word, *, rights_only: bool, folders_only: bool = False) -> bool:
    if word.text.startswith(UNKNOWN):
        return False  # nobody knows, so it asks
    if not word.text:
        return False  # names nothing
    if re.fullmatch(r"~[\w-]*(/[.*]*)*", word.text):
        return True
    wild = word.pattern is not None
    candidates = [danger.without_wild_end(word.text) if wild else word.text, *line.paths.opened(word)]
    if folders_only:
        candidates = [each for each in candidates if line.paths.is_folder(each)]
    places = [place for candidate in candidates if (place := line.paths.place(candidate))]
    # The vault's own rights are for its session to change; removing it is not.
    spares_vault = line.behind_wall or rights_only
    return any(danger.destroys(place, line.ground, spares_vault=spares_vault) for place in places)

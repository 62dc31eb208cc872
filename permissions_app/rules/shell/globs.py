"""Which files a glob of the shell names: those that are there, and those that it was written for."""

import os
import re
from collections.abc import Iterator
from fnmatch import translate

MAX_ENTRIES = 5_000
MAX_MATCHES = 300

# What a pattern that spells enough of them was written for, also where no such file is there yet.
_WRITTEN_FOR = (
    *(".env", ".env.local", ".env.production", "credentials.json", ".netrc", ".git-credentials"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".ssh", ".aws", "server.pem"),
)
_SINGLE = re.compile(r"\[([^\]!^])\]")


def matches(pattern: str, directory: str) -> list[str]:
    """The paths that are there. A dot at the front is matched by a dot only, as in the shell."""
    budget = [MAX_ENTRIES]
    found = ["/"] if pattern.startswith("/") else [directory]
    for part in pattern.split("/"):
        if part in {"", "."}:
            continue
        found = [path for folder in found for path in _step(folder, part, budget)][:MAX_MATCHES]
    if pattern.endswith("/"):
        return [path for path in found if os.path.isdir(path)]  # noqa: PTH112
    return found


def is_written_for_secret(pattern: str) -> bool:
    return any(_aims(part) for part in _SINGLE.sub(r"\1", pattern).split("/"))


def _aims(part: str) -> bool:
    literal = re.sub(r"\[[^\]]*\]|[*?]", "", part)
    start = re.split(r"[*?\[]", part, maxsplit=1)[0]
    # `*` and `*.json` are meant for others; `.e*` and `id_*` are not.
    if len(literal) < 2 or not (part.startswith(".") or len(start) >= 2) or literal == ".example":
        return False
    compiled = re.compile(translate(part), re.IGNORECASE)
    return any(compiled.match(name) for name in _WRITTEN_FOR)


def _step(folder: str, part: str, budget: list[int]) -> Iterator[str]:
    if not any(character in part for character in "*?["):
        path = os.path.join(folder, part)  # noqa: PTH118
        if os.path.lexists(path):
            yield path
        return
    compiled = re.compile(translate(part))
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                budget[0] -= 1
                if budget[0] < 0:
                    return
                if compiled.match(entry.name) and part.startswith(".") >= entry.name.startswith("."):
                    yield entry.path
    except OSError:
        return

"""Which files a glob of the shell names: those that are there, and those that it was written for."""

import os
import re
from collections.abc import Container, Iterator
from fnmatch import translate
from itertools import chain, islice

MAX_ENTRIES = 5_000
MAX_MATCHES = 300

# What a pattern that spells enough of them was written for, also where no such file is there yet.
_WRITTEN_FOR = (
    *(".env", ".env.local", ".env.production", "credentials.json", ".netrc", ".git-credentials"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".ssh", ".aws", "server.pem"),
)
_CLASS = re.compile(r"\[:(\w+):\]")
_CLASSES = {
    **{"alpha": "a-zA-Z", "lower": "a-z", "upper": "A-Z", "digit": "0-9", "alnum": "a-zA-Z0-9"},
    **{"word": "a-zA-Z0-9_", "xdigit": "0-9a-fA-F", "punct": "!-/:-@_`{-~", "space": " ", "blank": " "},
}
_ONE_OF_ONE = re.compile(r"\[([.=])([^\]])\1\]")
_SINGLE = re.compile(r"\[([^\]!^])\]")


def matches(pattern: str, directory: str, options: Container[str] = ()) -> list[str]:
    """The paths that are there. A dot in front is matched by a dot only, unless `shopt` says otherwise."""
    budget = [MAX_ENTRIES]
    found = ["/"] if pattern.startswith("/") else [directory]
    for part in pattern.split("/"):
        if part in {"", "."}:
            continue
        steps = (_step(folder, part, budget, options) for folder in found)
        found = list(islice(chain.from_iterable(steps), MAX_MATCHES))
    if pattern.endswith("/"):
        return [path for path in found if os.path.isdir(path)]  # noqa: PTH112
    return found


def is_written_for_secret(pattern: str, options: Container[str] = ()) -> bool:
    parts = _SINGLE.sub(r"\1", _as_fnmatch(pattern)).split("/")
    return any(_aims(part, with_dots="dotglob" in options) for part in parts)


def _as_fnmatch(pattern: str) -> str:
    """`[^a]` and `[[:alpha:]]` as Python writes them."""
    pattern = _CLASS.sub(lambda m: _CLASSES.get(m[1], r"!-~"), pattern)
    return _ONE_OF_ONE.sub(r"\2", pattern).replace("[^", "[!")


def _aims(part: str, *, with_dots: bool) -> bool:
    literal = re.sub(r"\[[^\]]*\]|[*?]", "", part)
    start = re.split(r"[*?\[]", part, maxsplit=1)[0]
    # `*` and `*.json` are meant for others; `.e*` and `id_*` are not.
    if with_dots and len(literal) > 2 and part.startswith(("*", "?", "[")):
        dotted = re.compile(translate(part), re.IGNORECASE)
        return any(name.startswith(".") and dotted.match(name) for name in _WRITTEN_FOR)
    if len(literal) < 2 or not (part.startswith(".") or len(start) >= 2) or literal == ".example":
        return False
    compiled = re.compile(translate(part), re.IGNORECASE)
    return any(compiled.match(name) for name in _WRITTEN_FOR)


def _step(folder: str, part: str, budget: list[int], options: Container[str]) -> Iterator[str]:
    if not any(character in part for character in "*?["):
        path = os.path.join(folder, part)  # noqa: PTH118
        if os.path.lexists(path):
            yield path
        return
    flags = re.IGNORECASE if "nocaseglob" in options else 0
    compiled = re.compile(translate(_as_fnmatch(part)), flags)
    dots = "dotglob" in options or part.startswith(".")
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                budget[0] -= 1
                if budget[0] < 0:
                    return
                if compiled.match(entry.name) and dots >= entry.name.startswith("."):
                    yield entry.path
    except OSError:
        return

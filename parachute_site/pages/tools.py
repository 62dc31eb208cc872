"""What a tool does, in the words and signs of the page: one quiet line, and what unfolds from it."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from django.utils.translation import gettext as _

from parachute_site.pages.markup import visible
from permissions_app.rules.tools import REACH

LONGEST_LINE = 160
LONGEST_SHOWN = 10_000  # characters of an input or a result; the API has the rest
LONGEST_DIFF = 400  # lines

Input = Mapping[str, Any]


@dataclass(frozen=True)
class Line:
    sign: str  # " ", "+" or "-"
    text: str


@dataclass(frozen=True)
class Shown:
    """How a call of a tool looks before anything has come of it."""

    icon: str
    verb: str
    object: str = ""
    is_code: bool = True  # the object is a path or a command, and set in the letters of one
    diff: tuple[Line, ...] = ()
    added: int = 0
    removed: int = 0
    command: str = ""
    input: str = ""


def shown(name: str, given: Input, folder: str) -> Shown:
    """Paths are shown as they are in the vault, where they lie in it."""
    path = _path(given, folder)
    known = _KNOWN.get(name)
    return known(given, path) if known else Shown("agent", _plain(name), path, input=_json(given))


def result(content: str) -> tuple[str, bool]:
    """What came of it, and whether there is more than is shown."""
    return visible(_cut(content)), len(content) > LONGEST_SHOWN


def _read(given: Input, path: str) -> Shown:
    return Shown("book", _("Read"), path)


def _edited(given: Input, path: str) -> Shown:
    edits = given.get("edits") if "edits" in given else [given]
    lines: list[Line] = []
    for edit in edits if isinstance(edits, list) else []:
        if isinstance(edit, Mapping):
            lines += _changes(_text(edit.get("old_string")), _text(edit.get("new_string")))
    return _diff(_("Edit"), path, lines)


def _written(given: Input, path: str) -> Shown:
    return _diff(_("Write"), path, _lines("+", _text(given.get("content"))))


def _run(given: Input, path: str) -> Shown:
    command = _text(given.get("command"))
    words = _text(given.get("description"))
    return Shown("term", _("Run"), _line(words or command), not words, command=visible(_cut(command)))


def _searched(given: Input, path: str) -> Shown:
    return Shown("find", _("Search for"), _line(_text(given.get("pattern"))), input=_json(given))


def _searched_web(given: Input, path: str) -> Shown:
    return Shown("find", _("Search the web for"), _line(_text(given.get("query"))), is_code=False)


def _fetched(given: Input, path: str) -> Shown:
    return Shown("find", _("Fetch"), _line(_text(given.get("url"))), input=_json(given))


def _reached(given: Input, path: str) -> Shown:
    """By the host alone: of a connection nothing else is known."""
    return Shown("find", _("Reach"), _line(_text(given.get("url")).removeprefix("https://").rstrip("/")))


def _asked_a_helper(given: Input, path: str) -> Shown:
    words = _line(_text(given.get("description")))
    return Shown("agent", _("Ask a helper"), words, is_code=False, input=_json(given))


def _kept_a_list(given: Input, path: str) -> Shown:
    return Shown("pen", _("Keep a list"), input=_todos(given.get("todos")) or _json(given))


def _diff(verb: str, path: str, lines: list[Line]) -> Shown:
    added, removed = (sum(line.sign == sign for line in lines) for sign in "+-")
    return Shown("pen", verb, path, diff=tuple(lines[:LONGEST_DIFF]), added=added, removed=removed)


def _changes(old: str, new: str) -> Iterator[Line]:
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > LONGEST_DIFF:  # to compare them would take longer than anybody waits
        yield from (*_lines("-", old), *_lines("+", new))
        return
    for kind, b, b_end, a, a_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from (Line(" ", visible(text)) for text in before[b:b_end])
            continue
        yield from (Line("-", visible(text)) for text in before[b:b_end])
        yield from (Line("+", visible(text)) for text in after[a:a_end])


def _lines(sign: str, text: str) -> list[Line]:
    return [Line(sign, visible(line[:1_000])) for line in text.splitlines()]


def _path(given: Input, folder: str) -> str:
    path = _text(given.get("file_path") or given.get("notebook_path") or given.get("path"))
    inside = folder.rstrip("/") + "/"
    return _line(path.removeprefix(inside) if folder else path)


def _plain(name: str) -> str:
    """`mcp__server__tool` by the names that people gave."""
    server, _sep, tool = name.removeprefix("mcp__").partition("__")
    return f"{server}: {tool}" if name.startswith("mcp__") and tool else name


def _todos(todos: Any) -> str:
    signs = {"completed": "☑", "in_progress": "▸"}
    rows = [todo for todo in todos if isinstance(todo, Mapping)] if isinstance(todos, list) else []
    lines = (f"{signs.get(_text(row.get('status')), '☐')} {_text(row.get('content'))}" for row in rows)
    return visible("\n".join(lines))


def _json(given: Input) -> str:
    return visible(_cut(json.dumps(dict(given), indent=2, ensure_ascii=False)))


def _line(text: str) -> str:
    first = " ".join(text.split())
    return visible(first if len(first) <= LONGEST_LINE else first[:LONGEST_LINE] + "…")


def _cut(text: str) -> str:
    return text[:LONGEST_SHOWN]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


_KNOWN: dict[str, Callable[[Input, str], Shown]] = {
    "Read": _read,
    "Edit": _edited,
    "MultiEdit": _edited,
    "Write": _written,
    "Bash": _run,
    "Grep": _searched,
    "Glob": _searched,
    "WebSearch": _searched_web,
    "WebFetch": _fetched,
    REACH: _reached,
    "Task": _asked_a_helper,
    "Agent": _asked_a_helper,
    "TodoWrite": _kept_a_list,
}

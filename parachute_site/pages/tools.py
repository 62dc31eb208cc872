"""What a tool does, in the words and signs of the page: one quiet line, and what unfolds from it.

In a list of what was done, the beginning of what is long is enough, and says how much is left out. Where a
person decides, all of it is shown: what they read is what they allow.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any, TypeGuard

from django.utils.translation import gettext as _

from permissions_app.rules.tools import MEANWHILE, REACH
from sessions_app.storable import visible

LONGEST_LINE = 160
LONGEST_SHOWN = 10_000  # characters of an input or a result; the API has the rest
LONGEST_DIFF = 400  # lines
LONGEST_DIFF_LINE = 1_000

Input = Mapping[str, Any]


@dataclass(frozen=True)
class Line:
    sign: str  # " ", "+", "-", or "*" for what is said of the lines that follow
    text: str


@dataclass(frozen=True)
class Shown:
    """How a call of a tool looks before anything has come of it."""

    icon: str
    verb: str
    object: str = ""
    is_code: bool = True  # the object is a path or a command, and set in the letters of one
    diff: tuple[Line, ...] = ()
    left_out: int = 0  # lines of the diff
    added: int = 0
    removed: int = 0
    is_everywhere: bool = False  # it replaces every occurrence, and not one
    command: str = ""
    input: str = ""
    meanwhile: tuple[str, ...] = ()  # what runs while it is asked about


def shown(name: str, given: Input, folder: str) -> Shown:
    """In a list of what was done. Paths are shown as they are in the vault, where they lie in it."""
    return _short(_whole(name, given, folder))


def shown_whole(name: str, given: Input, folder: str) -> Shown:
    """Where a person decides: with every argument that would count, and nothing left out."""
    found = _whole(name, given, folder)
    told = _TOLD.get(name, {})
    rest = {key: value for key, value in given.items() if key not in told or not told[key](value)}
    return found if found.input or not rest else replace(found, input=_json(rest))


def result(content: str) -> tuple[str, bool]:
    """What came of it, and whether there is more than is shown."""
    return visible(content[:LONGEST_SHOWN]), len(content) > LONGEST_SHOWN


def _whole(name: str, given: Input, folder: str) -> Shown:
    path = _path(given, folder)
    known = _KNOWN.get(name)
    return known(given, path) if known else Shown("agent", _plain(name), path, input=_json(given))


def _short(found: Shown) -> Shown:
    diff = (Line(line.sign, _cut(line.text, LONGEST_DIFF_LINE)) for line in found.diff[:LONGEST_DIFF])
    return replace(
        found,
        object=found.object if len(found.object) <= LONGEST_LINE else found.object[:LONGEST_LINE] + "…",
        diff=tuple(diff),
        left_out=max(0, len(found.diff) - LONGEST_DIFF),
        command=_cut(found.command, LONGEST_SHOWN),
        input=_cut(found.input, LONGEST_SHOWN),
    )


def _read(given: Input, path: str) -> Shown:
    return Shown("book", _("Read"), path)


def _edited(given: Input, path: str) -> Shown:
    return _diff(_("Edit"), path, [given])


def _edited_often(given: Input, path: str) -> Shown:
    edits = given.get("edits")
    return _diff(_("Edit"), path, _mappings(edits))


def _written(given: Input, path: str) -> Shown:
    content = given.get("content")
    lines = _lines("+", _text(content))
    return _of_lines(
        _("Write"), path, [Line("*", _("nothing: the file is empty then"))] if content == "" else lines
    )


def _run(given: Input, path: str) -> Shown:
    command = _text(given.get("command"))
    words = _text(given.get("description"))
    return Shown("term", _("Run"), _line(words or command), not words, command=visible(command))


def _searched(given: Input, path: str) -> Shown:
    return Shown("find", _("Search for"), _line(_text(given.get("pattern"))), input=_json(given))


def _searched_web(given: Input, path: str) -> Shown:
    return Shown("find", _("Search the web for"), _line(_text(given.get("query"))), is_code=False)


def _fetched(given: Input, path: str) -> Shown:
    return Shown("find", _("Fetch"), _line(_text(given.get("url"))), input=_json(given))


def _reached(given: Input, path: str) -> Shown:
    """By the host alone: of a connection nothing else is known, but what runs meanwhile."""
    host = _line(_text(given.get("url")).removeprefix("https://").rstrip("/"))
    runs = given.get(MEANWHILE)
    meanwhile = tuple(_line(each) for each in runs) if _are_texts(runs) else ()
    return Shown("find", _("Reach"), host, meanwhile=meanwhile)


def _asked_a_helper(given: Input, path: str) -> Shown:
    words = _line(_text(given.get("description")))
    return Shown("agent", _("Ask a helper"), words, is_code=False, input=_json(given))


def _kept_a_list(given: Input, path: str) -> Shown:
    return Shown("pen", _("Keep a list"), input=_todos(given.get("todos")) or _json(given))


def _diff(verb: str, path: str, edits: list[Input]) -> Shown:
    lines: list[Line] = []
    for edit in edits:
        if edit.get("replace_all"):
            lines.append(Line("*", _("replaces every occurrence")))
        lines += _changes(_text(edit.get("old_string")), _text(edit.get("new_string")))
    is_everywhere = any(edit.get("replace_all") for edit in edits)
    return replace(_of_lines(verb, path, lines), is_everywhere=is_everywhere)


def _of_lines(verb: str, path: str, lines: list[Line]) -> Shown:
    added, removed = (sum(line.sign == sign for line in lines) for sign in "+-")
    return Shown("pen", verb, path, diff=tuple(lines), added=added, removed=removed)


def _changes(old: str, new: str) -> Iterator[Line]:
    if old.endswith("\n") and new.endswith("\n"):
        old, new = old[:-1], new[:-1]
    before, after = old.split("\n"), new.split("\n")  # an end of a line that goes is a change too
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
    return [Line(sign, visible(line)) for line in text.splitlines()]


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
    lines = (
        f"{signs.get(_text(row.get('status')), '☐')} {_text(row.get('content'))}" for row in _mappings(todos)
    )
    return visible("\n".join(lines))


def _json(given: Input) -> str:
    return visible(json.dumps(dict(given), indent=2, ensure_ascii=False))


def _line(text: str) -> str:
    return visible(" ".join(text.split()))


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    count = f"{len(text) - longest:,}"
    return text[:longest] + _("… %(count)s more characters") % {"count": count}


def _mappings(given: Any) -> list[Input]:
    return [each for each in given if isinstance(each, Mapping)] if isinstance(given, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


_KNOWN: dict[str, Callable[[Input, str], Shown]] = {
    "Read": _read,
    "Edit": _edited,
    "MultiEdit": _edited_often,
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


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _are_texts(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _are_edits(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, Mapping) and all(key in _EDIT and _EDIT[key](inner) for key, inner in each.items())
        for each in value
    )


_EDIT = {"old_string": _is_text, "new_string": _is_text, "replace_all": _is_flag}
# What the words, the diff or the command of a tool tell whole, where it is what it should be.
_TOLD: dict[str, dict[str, Callable[[Any], bool]]] = {
    "Read": {"file_path": _is_text},
    "Edit": {"file_path": _is_text, **_EDIT},
    "MultiEdit": {"file_path": _is_text, "edits": _are_edits},
    "Write": {"file_path": _is_text, "content": _is_text},
    "Bash": {"command": _is_text, "description": _is_text},
    REACH: {"url": _is_text, MEANWHILE: _are_texts},
}

"""Builtins that change the shell itself: its variables, its options, what a name stands for."""

import re
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

from permissions_app.rules.deny_list import has_secret_name
from permissions_app.rules.shell.assigning import assign, note_code, reveals
from permissions_app.rules.shell.reading import Outcome
from permissions_app.rules.shell.words import MAX_ALTERNATIVES, UNKNOWN, Word

if TYPE_CHECKING:
    from permissions_app.rules.shell.walk import Line

DECLARES = frozenset({"declare", "typeset", "local", "export", "readonly"})
_TAKES = {"read": "adinNptu", "mapfile": "dnOsuCc", "readarray": "dnOsuCc", "wait": "p", "hash": "p"}
_OPTIONS = frozenset({"dotglob", "nocaseglob", "lastpipe", "cdable_vars"})
_BETWEEN_WORDS = re.compile(r"[\s,:;|]+")


def note(line: "Line", name: str, words: list[Word], stdin: str | None) -> None:
    if name in _READS_NAMES:
        line.scope.calculates = True
        for word in words[1:]:
            note_code(line, word.text)
    if name in _CHANGES:
        line.reading.indirect |= name not in _ONLY_ASKS
        _CHANGES[name](line, words, stdin)


def _read(line: "Line", words: list[Word], stdin: str | None) -> None:
    options, names = _options(words)
    given = _from_input(stdin)
    given |= {word.text for letter, word in options if letter == "i"}
    names += [word for letter, word in options if letter == "a"]
    for name in names or [Word("REPLY"), Word("MAPFILE")]:
        assign(line, name.text, given)
    for letter, word in options:
        if letter == "C":
            line.reading.found(Outcome.UNREADABLE)
            line.code(word.text)


def _from_input(stdin: str | None) -> set[str]:
    """What may come of it; not all is known, so the rest is unknown too."""
    found = set[str]()
    for text in (stdin or "").splitlines():
        pieces = [piece for piece in _BETWEEN_WORDS.split(text) if piece]
        found |= {text.strip(), *pieces}
        if 1 < len(pieces) < MAX_ALTERNATIVES:
            found |= {text.strip().split(None, count)[-1] for count in range(1, len(pieces))}
    first = sorted(found - {""}, key=lambda text: not has_secret_name(text))
    return {*first[: MAX_ALTERNATIVES - 4], UNKNOWN}


def _options(words: list[Word]) -> tuple[list[tuple[str, Word]], list[Word]]:
    """Its options that take a value, with it; and the words behind them."""
    takes, waiting = _TAKES.get(words[0].text, ""), words[1:]
    options: list[tuple[str, Word]] = []
    while waiting and re.match("-.", waiting[0].text):
        text, waiting = waiting[0].text, waiting[1:]
        if text == "--":
            break
        letters = re.match(f"-[^{takes}]*([{takes}])(.*)", text, re.DOTALL) if takes else None
        if letters and letters[2]:
            options.append((letters[1], Word(letters[2])))
        elif letters:
            options += [(letters[1], word) for word in waiting[:1]]
            waiting = waiting[1:]
    return options, waiting


def _print(line: "Line", words: list[Word], stdin: str | None) -> None:
    if len(words) > 2 and words[1].text.startswith("-v"):
        name, said = (words[2], words[3:]) if words[1].text == "-v" else (Word(words[1].text[2:]), words[2:])
        assign(line, name.text, {UNKNOWN, *(word.text for word in said[:MAX_ALTERNATIVES])})


def declares(line: "Line", words: list[Word], stdin: str | None = None) -> None:
    """`declare "x=…"`. What is exported is handed to every program."""
    options = "".join(word.text[1:] for word in words[1:] if re.match(r"[-+]\w", word.text))
    is_exported = words[0].text == "export" or "x" in options
    line.scope.calculates |= "i" in options
    if "n" in options and words[0].text != "export":
        line.reading.found(Outcome.UNREADABLE)
        reveals(line)
    for word in words[1:]:
        name, equals, value = word.text.partition("=")
        if re.match(r"[-+]\w", name):
            continue
        if equals or not word.known:
            values = {UNKNOWN, *value.strip("()").split()} if value.startswith("(") else {value}
            assign(line, name.removesuffix("+"), values, adds=name.endswith("+"))
        elif is_exported:
            line.paths.name([Word(value) for value in line.scope.variables.get(name, ())])


def _unset(line: "Line", words: list[Word], stdin: str | None) -> None:
    if not any(word.text.startswith("-f") for word in words):
        for word in words[1:]:
            if not word.text.startswith("-"):
                assign(line, word.text, {""})


def _options_of(line: "Line", words: list[Word], stdin: str | None) -> None:
    _, names = _options(words)
    for word in names[1:2]:
        assign(line, word.text, {UNKNOWN})


def _waits(line: "Line", words: list[Word], stdin: str | None) -> None:
    for _, word in _options(words)[0]:
        assign(line, word.text, {UNKNOWN})


def _sets_options(line: "Line", words: list[Word], stdin: str | None) -> None:
    """`shopt`. What is switched off again counts all the same: nobody knows which branch ran."""
    line.scope.options.update(_OPTIONS.intersection(word.text for word in words))
    if not all(word.known for word in words):
        line.scope.options.update(_OPTIONS)


def _renames(line: "Line", words: list[Word], stdin: str | None) -> None:
    """`hash -p /usr/bin/sudo x`."""
    for _, word in _options(words)[0]:
        line.reading.found(Outcome.UNREADABLE)
        line.run([word], None)


def _completes(line: "Line", words: list[Word], stdin: str | None) -> None:
    for option, word in _pairs(words):
        if option in {"-W", "-C", "-F"}:
            line.reading.found(Outcome.UNREADABLE)
            line.left_as_text(word.text) if option == "-W" else line.code(word.text)


def _pairs(words: list[Word]) -> Iterator[tuple[str, Word]]:
    for position, word in enumerate(words[1:], 1):
        if re.match(r"-[WCF].", word.text):
            yield word.text[:2], Word(word.text[2:])
        elif position + 1 < len(words):
            yield word.text, words[position + 1]


def _sets(line: "Line", words: list[Word], stdin: str | None) -> None:
    options = takewhile(lambda text: text not in {"-", "--"}, (word.text for word in words[1:]))
    if any(re.fullmatch(rf"-\w*a\w*|allexport|{UNKNOWN}.*", text, re.DOTALL) for text in options):
        reveals(line)  # every variable is handed to every program


_CHANGES: dict[str, Callable[["Line", list[Word], str | None], None]] = {
    **dict.fromkeys(("read", "mapfile", "readarray"), _read),
    **dict.fromkeys(DECLARES, declares),
    "printf": _print,
    "unset": _unset,
    "getopts": _options_of,
    "wait": _waits,
    "set": _sets,
    "shopt": _sets_options,
    "hash": _renames,
    "compgen": _completes,
}
_ONLY_ASKS = frozenset({"printf", "wait", "set", "shopt", "hash", "compgen", "read", "mapfile", "readarray"})
_READS_NAMES = frozenset({*_CHANGES, "let", "test", "["})

"""Commands that run what their words, their input or a file say."""

import os
import re
from itertools import pairwise
from typing import TYPE_CHECKING

from permissions_app.rules.shell import danger, wrappers
from permissions_app.rules.shell.handing_over import handed_over
from permissions_app.rules.shell.reading import Outcome
from permissions_app.rules.shell.words import UNKNOWN, Word
from permissions_app.rules.shell.worst import is_dangerous

if TYPE_CHECKING:
    from permissions_app.rules.shell.walk import Line

SHELLS = frozenset(
    {"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "yash", "oksh", "osh", "posh"}
)
_TESTS = frozenset(
    {
        *("-name", "-path", "-iname", "-ipath", "-regex", "-iregex", "-type", "-xtype", "-size", "-empty"),
        *("-mtime", "-mmin", "-atime", "-amin", "-ctime", "-cmin", "-newer", "-newermt", "-perm", "-user"),
        *("-group", "-links", "-inum", "-samefile", "-lname", "-nouser", "-nogroup", "-used"),
    }
)
_FIND_NAMES = frozenset({"-name", "-path", "-iname", "-ipath", "-regex", "-iregex"})
_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
MOST_HANDED_OVER = 20  # times that `xargs` starts its command
_SCRIPT_OF_PROJECT = re.compile(r"(npm|yarn|pnpm|bun|node|deno):[\w:*.-]+")  # to `concurrently`


def runs_code(line: "Line", words: list[Word], stdin: str | None) -> str | None:
    """A shell: with code behind `-c`, in a file, or in its input."""
    line.reading.indirect = True
    waiting = [word for word in words[1:] if word.text != "--"]
    if [word.text for word in waiting] in (["--version"], ["--help"]):
        return None
    has_code = reads_input = False
    while waiting:
        text = waiting[0].text
        if not text.startswith(("-", "+")) or text == "-":
            break
        if not waiting[0].known:
            _runs_something(line, waiting[1:], stdin)
            return None
        if re.fullmatch(r"[-+][a-zA-Z]*O", text) and len(waiting) > 1:
            line.scope.options.add(waiting[1].text)
        takes_value = re.fullmatch(r"[-+][a-zA-Z]*[oO]|-[a-np-zA-Z]*o[a-zA-Z]*|--(rcfile|init-file)", text)
        has_code |= re.fullmatch(r"-[abd-zA-Z]*c[a-zA-Z]*", text) is not None
        reads_input |= re.fullmatch(r"-[a-rt-zA-Z]*s[a-zA-Z]*", text) is not None
        waiting = waiting[2:] if takes_value else waiting[1:]
    if has_code:
        return line.code(waiting[0].text, stdin) if waiting else None
    if waiting and not reads_input and waiting[0].text != "-":
        if not waiting[0].known or waiting[0].text.startswith(("/dev/", "/proc/")):
            line.reading.found(Outcome.UNREADABLE)
        return None
    if stdin is None:
        line.reading.found(Outcome.UNREADABLE)
        return None
    return line.code(stdin)


def _runs_something(line: "Line", words: list[Word], stdin: str | None) -> None:
    """Which of its options is `-c` is known at run time only."""
    line.reading.found(Outcome.UNREADABLE)
    for word in words[:8]:
        line.code(word.text, stdin)


def evaluates(line: "Line", words: list[Word], stdin: str | None) -> str | None:
    line.reading.indirect = True
    return line.code(" ".join(word.text for word in behind_dashes(words)), stdin)


def behind_dashes(words: list[Word]) -> list[Word]:
    """Of a builtin without options: what it is given."""
    return words[2:] if len(words) > 1 and words[1].text == "--" else words[1:]


def sources(line: "Line", words: list[Word], stdin: str | None) -> None:
    line.reading.indirect = True
    given = behind_dashes(words)
    if not given or not given[0].known or given[0].text.startswith(("-", "/dev/", "/proc/")):
        line.reading.found(Outcome.UNREADABLE)
        if stdin is not None:
            line.code(stdin)


def traps(line: "Line", words: list[Word], stdin: str | None) -> None:
    """It runs later, or after each command, and may go elsewhere then."""
    line.reading.indirect = line.repeats = True
    arguments = [word for word in words[1:] if not word.text.startswith("-")]
    if len(arguments) > 1 and arguments[0].text:
        before = line.scope.directories
        line.code(arguments[0].text)
        at_exit = [word.text for word in arguments[1:]] == ["EXIT"]
        line.scope.stand_in(before if at_exit else before | line.scope.directories)


def watches(line: "Line", words: list[Word], stdin: str | None) -> None:
    line.reading.indirect = True
    found = wrappers.inside(wrappers.Wrapper(wrappers.WATCH), words)
    if found.given.strange:
        line.reading.found(Outcome.UNREADABLE)
    if found.given.has("-x", "--exec"):
        line.run(found.command, None)
    else:
        line.code(" ".join(word.text for word in found.command))


def reads_words(line: "Line", words: list[Word], stdin: str | None) -> None:
    """`hyperfine 'make' 'make -j4'`, `nodemon --exec='make'`."""
    line.reading.indirect = True
    for word in words[1:]:
        text = word.text.partition("=")[2] if word.text.startswith("--") else word.text
        if not text.startswith("-") and not _SCRIPT_OF_PROJECT.fullmatch(text):
            line.code(text)


def scripts(line: "Line", words: list[Word], stdin: str | None) -> None:
    line.reading.indirect = True
    for position, word in enumerate(words[:-1]):
        if re.fullmatch(r"-[a-z]*c|--command", word.text):
            line.code(words[position + 1].text)
    for word in words:
        if word.text.startswith("--command="):
            line.code(word.text.removeprefix("--command="))


def hands_over(line: "Line", words: list[Word], stdin: str | None) -> None:
    """`xargs`: what comes in becomes words of the command."""
    line.reading.indirect = True
    found = wrappers.inside(wrappers.Wrapper(wrappers.XARGS), words)
    command = found.command or [Word("echo")]
    if found.given.strange:
        line.reading.found(Outcome.UNREADABLE)
        for later in range(1, min(len(words), 16)):
            if is_dangerous(line, os.path.basename(words[later].text), words[later + 1 :]):  # noqa: PTH119
                line.reading.found(Outcome.DANGEROUS)
    replaced = [each.value or "{}" for each in found.given.values("-I", "-J", "-i", "--replace")]
    try:
        handed = handed_over(found.given, stdin, by_line=bool(replaced))
    except ValueError:
        handed = [[UNKNOWN]]
    if len(handed) > MOST_HANDED_OVER:
        line.reading.found(Outcome.UNREADABLE)
    for texts in handed[:MOST_HANDED_OVER]:
        if replaced:
            line.run([Word(word.text.replace(replaced[-1], texts[0])) for word in command], None)
        else:
            line.run([*command, *map(Word, texts)], None)


def finds(line: "Line", words: list[Word], stdin: str | None) -> None:
    arguments = words[1:]
    while arguments and arguments[0].text in {"-L", "-P", "-H"}:
        arguments = arguments[1:]
    count = next((i for i, w in enumerate(arguments) if w.text.startswith("-") or w.text in {"(", "!"}), None)
    starts = arguments[:count] or [Word(".")]
    tests = [word.text for word in arguments]
    filtered = not _TESTS.isdisjoint(tests)
    by_name = _looks_for_names(tests)
    if "-delete" in tests:
        line.reading.indirect = True
        line.paths.write(starts)
        if is_dangerous(
            line, "rm", [Word("-r"), *_found_below(line, starts, filtered=filtered, by_name=by_name)]
        ):
            line.reading.found(Outcome.DANGEROUS)
    for position, word in enumerate(arguments):
        if word.text in _FIND_RUNS:
            _runs_for_each(
                line,
                arguments[position + 1 :],
                _found_below(line, starts, filtered=filtered, by_name=by_name),
            )
        elif word.text.startswith("-fprint") or word.text == "-fls":
            line.paths.write(arguments[position + 1 : position + 2])


def _runs_for_each(line: "Line", words: list[Word], found: list[Word]) -> None:
    line.reading.indirect = True
    end = next((i for i, word in enumerate(words) if word.text in {";", "+"}), len(words))
    for path in found[:8]:
        line.run([Word(word.text.replace("{}", path.text)) for word in words[:end]], None)


def _looks_for_names(tests: list[str]) -> bool:
    """Not for all but some, and not for any."""
    names = [after for before, after in pairwise(tests) if before in _FIND_NAMES]
    return any(name.strip("*./?") for name in names) and {"!", "-not"}.isdisjoint(tests)


def _found_below(line: "Line", starts: list[Word], *, filtered: bool, by_name: bool) -> list[Word]:
    """What it finds below where it starts: with a test not the start itself, unless that is the system's. Of
    a home only names that are looked for are a part: every file in it is all of it."""
    found = []
    for start in starts:
        place = line.paths.place(start.text)
        system = place is not None and any(danger.is_system(stop) for stop in place.stops)
        is_home = start.text.rstrip("/") == os.path.expanduser("~")  # noqa: PTH111
        keeps = not filtered or (not by_name if is_home else system)
        found.append(start if keeps else Word(f"{start.text.rstrip('/')}/found-by-find"))
    return found

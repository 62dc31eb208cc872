"""What a command does with its words."""

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from permissions_app.rules.shell import danger, wrappers
from permissions_app.rules.shell.interpreters import hides, is_interpreter
from permissions_app.rules.shell.reading import Command, Outcome
from permissions_app.rules.shell.words import UNKNOWN, Word

if TYPE_CHECKING:
    from permissions_app.rules.shell.walk import Line

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash"})
_SAYS = frozenset({"echo", "printf"})
_REMOVES = frozenset({"rm", "chmod", "chown", "chgrp", "setfacl", "chattr"})
_WRITES = frozenset(
    {
        "tee",
        "cp",
        "mv",
        "ln",
        "install",
        "rm",
        "rmdir",
        "touch",
        "truncate",
        "shred",
        "chmod",
        "chown",
        "chgrp",
    }
    | {
        "mkdir",
        "unlink",
        "patch",
        "wipefs",
        "mkswap",
        "blkdiscard",
        "sponge",
        "fdisk",
        "sfdisk",
        "parted",
        "rsync",
    }
)
_GREPS = frozenset({"grep", "egrep", "fgrep", "rg", "ag", "ack", "zgrep"})
_HIDES = frozenset({"alias", "enable", "complete", "bind", "fc", "history"})
_READS = frozenset(
    {"-name", "-path", "-iname", "-ipath", "-regex", "-iregex", "-type", "-mtime", "-size", "-newer"}
)
_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


def judge(line: "Line", words: list[Word], stdin: str | None) -> str | None:
    """Notes the worst about one command; says what it prints, where that is clear."""
    if not words:
        return stdin
    indirect = False
    while words:
        if not words[0].known or words[0].pattern:
            return _unclear_name(line, words, stdin)
        name = _name(words[0])
        wrapper = wrappers.WRAPPERS.get(name)
        if wrapper is None:
            break
        inner, options = wrappers.inside(wrapper, words)
        line.paths.name(words[: len(words) - len(inner)])
        if name == "env" and _splits(line, words, stdin):
            return None
        if wrapper.alone.intersection(options):
            return _note(line, words)
        indirect |= not wrapper.transparent
        if wrappers.is_unsure(name) or name == "coproc":
            line.reading.found(Outcome.UNREADABLE)
            inner = inner[1:] if inner and inner[0].text == "{" else inner
            for later in range(1, min(len(inner), 12)):
                _only_the_worst(line, inner[later:])
        words = inner
    line.reading.indirect |= indirect
    if not words:
        return None
    return _judge_program(line, _name(words[0]), words, stdin)


def _judge_program(line: "Line", name: str, words: list[Word], stdin: str | None) -> str | None:
    _note(line, words)
    arguments = words[1:]
    texts = [word.text for word in arguments]
    _name_paths(line, name, arguments)
    if _is_dangerous(line, name, arguments):
        line.reading.found(Outcome.DANGEROUS)
    if name in _WRITES or (name in {"sed", "gsed", "perl"} and any(text.startswith("-i") for text in texts)):
        line.paths.write(word for word in arguments if not word.text.startswith("-"))
    if name in _HIDES or hides(name, texts, has_input=stdin is not None):
        line.reading.found(Outcome.UNREADABLE)
        for text in texts:
            line.paths.code(text)
        line.paths.code(stdin or "")
    special = _SPECIAL.get(name)
    return special(line, words, stdin) if special else None


def _name(word: Word) -> str:
    return os.path.basename(word.text).replace("\\", "")  # noqa: PTH119


def _note(line: "Line", words: list[Word]) -> None:
    line.reading.commands.append(Command(tuple(word.text for word in words)))
    line.reading.indirect |= any(not word.known for word in words)
    name = words[0].text
    candidates = [name] if "/" in name else []
    if _name(words[0]) in SHELLS or is_interpreter(_name(words[0])) or name in {".", "source"}:
        candidates += [word.text for word in words[1:] if not word.text.startswith("-")][:1]
    for text in candidates:
        place = line.paths.place(text)
        if place is not None:
            line.reading.scripts.append(place)


def _unclear_name(line: "Line", words: list[Word], stdin: str | None) -> None:
    line.reading.found(Outcome.UNREADABLE)
    line.paths.name(words)
    if words[0].pattern:
        for match in line.paths.opened(words[0])[:8]:
            if os.path.basename(match) in danger.BECOME_ROOT:  # noqa: PTH119
                line.reading.found(Outcome.DANGEROUS)
    elif len(words) > 1:
        _only_the_worst(line, words[1:])


def _only_the_worst(line: "Line", words: list[Word]) -> None:
    """A second reading of words that may be a command or arguments: only what would be dangerous counts."""
    if words[0].known and _is_dangerous(line, _name(words[0]), words[1:]):
        line.reading.found(Outcome.DANGEROUS)


def _splits(line: "Line", words: list[Word], stdin: str | None) -> bool:
    """`env -S 'sh -c …'`."""
    for position, word in enumerate(words[1:], start=1):
        found = re.fullmatch(r"(?:-[a-zA-Z0]*S|--split-string(?:=|$))(.*)", word.text, re.DOTALL)
        if found:
            rest = words[position:] if found[1] else words[position + 1 :]
            text = found[1] or (rest[0].text if rest else "")
            line.code(" ".join([text, *(_quoted(other.text) for other in rest[1:])]), stdin)
            line.reading.indirect = True
            return True
    return False


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _name_paths(line: "Line", name: str, arguments: list[Word]) -> None:
    """What a command says, looks for or writes down as a message names no file."""
    if name in _SAYS:
        return
    skipped: set[int] = set()
    if name in _GREPS and not any(
        re.match(r"-[a-zA-Z]*[ef]|--(regexp|file)", word.text) for word in arguments
    ):
        skipped = {next((i for i, word in enumerate(arguments) if not word.text.startswith("-")), -1)}
    for position, word in enumerate(arguments[1:], start=1):
        before = arguments[position - 1].text
        if (name in _GREPS and before in {"-e", "--regexp"}) or (
            name in {"git", "gh", "hg", "jj"}
            and re.fullmatch(r"-[a-z]*m|--message|--title|--body|-t|-b", before)
        ):
            skipped.add(position)
    line.paths.name(word for position, word in enumerate(arguments) if position not in skipped)


def _is_dangerous(line: "Line", name: str, arguments: list[Word]) -> bool:
    if name in danger.BECOME_ROOT or name == "mkfs" or name.startswith(("mkfs.", "mke2fs", "newfs")):
        return True
    texts = [word.text for word in arguments]
    if name == "dd":
        return any(re.match(r"(if|of)=", text) and _is_device(line, text[3:]) for text in texts)
    if name in _REMOVES and _is_recursive(name, texts):
        if any(not word.known for word in arguments):
            line.reading.found(Outcome.UNREADABLE)
        if line.scope.directory is None:
            line.reading.found(Outcome.UNREADABLE)
        return "--no-preserve-root" in texts or any(
            _destroys(line, word) for word in arguments if not word.text.startswith("-")
        )
    return False


def _is_device(line: "Line", text: str) -> bool:
    place = line.paths.place(text)
    return place is not None and any(danger.is_device(path) for path in {*place.stops, *place.ends})


def _is_recursive(name: str, texts: list[str]) -> bool:
    return any(
        re.fullmatch(r"--r(e(c(u(r(s(i(ve?)?)?)?)?)?)?)?", text)
        or re.fullmatch(r"-[a-zA-Z]*[rR][a-zA-Z]*", text)
        for text in texts
    )


def _destroys(line: "Line", word: Word) -> bool:
    text = word.text.replace(UNKNOWN, "")
    if not text or re.fullmatch(r"~[\w-]*(/[.*]*)*", text):
        return bool(text)
    if word.pattern is None:
        candidates = [text]
    else:
        candidates = [danger.without_wild_end(text), *line.paths.opened(word)]
    places = [place for candidate in candidates if (place := line.paths.place(candidate))]
    return any(danger.destroys(place, line.ground, behind_wall=line.behind_wall) for place in places)


def _says(line: "Line", words: list[Word], stdin: str | None) -> str | None:
    texts = [word.text for word in words[1:]]
    if any(not word.known or word.pattern for word in words):
        return None
    if _name(words[0]) == "printf":
        if texts and texts[0] in {"%s", "%s\\n", "%s\n"}:
            return "\n".join(texts[1:]) + "\n"
        return None if not texts or re.search(r"[%\\]", texts[0]) else texts[0]
    options = [text for text in texts if re.fullmatch(r"-[neE]+", text)]
    plain = " ".join(texts[len(options) :])
    return None if "\\" in plain else plain


def _passes_on(line: "Line", words: list[Word], stdin: str | None) -> str | None:
    return stdin if all(word.text == "-" for word in words[1:]) else None


def _changes_directory(line: "Line", words: list[Word], stdin: str | None) -> None:
    arguments = [word for word in words[1:] if word.text not in {"-P", "-L", "--", "-e"}]
    if _name(words[0]) == "popd":
        line.scope.directory = None
    else:
        line.go_to(arguments[0] if arguments else None)


def _runs_code(line: "Line", words: list[Word], stdin: str | None) -> str | None:
    """A shell: with code behind `-c`, in a file, or in its input."""
    line.reading.indirect = True
    takes_value = False
    for position, word in enumerate(words[1:], start=1):
        if takes_value:
            takes_value = False
        elif re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", word.text):
            rest = [
                other for other in words[position + 1 :] if not re.fullmatch(r"[-+][a-zA-Z]+", other.text)
            ]
            return line.code(rest[0].text, stdin) if rest else None
        elif word.text in {"-o", "+o", "-O", "+O", "--rcfile", "--init-file"}:
            takes_value = True
        elif not word.text.startswith(("-", "+")):
            if not word.known or word.text.startswith(("/dev/", "/proc/")):
                line.reading.found(Outcome.UNREADABLE)
            return None
    if stdin is None:
        line.reading.found(Outcome.UNREADABLE)
        return None
    return line.code(stdin)


def _evaluates(line: "Line", words: list[Word], stdin: str | None) -> str | None:
    line.reading.indirect = True
    return line.code(" ".join(word.text for word in words[1:]), stdin)


def _sources(line: "Line", words: list[Word], stdin: str | None) -> None:
    line.reading.indirect = True
    if len(words) < 2 or not words[1].known or words[1].text.startswith(("/dev/", "/proc/")):
        line.reading.found(Outcome.UNREADABLE)
        if stdin is not None:
            line.code(stdin)


def _traps(line: "Line", words: list[Word], stdin: str | None) -> None:
    line.reading.indirect = True
    arguments = [word for word in words[1:] if not word.text.startswith("-")]
    if len(arguments) > 1 and arguments[0].text:
        line.code(arguments[0].text)


def _watches(line: "Line", words: list[Word], stdin: str | None) -> None:
    line.reading.indirect = True
    rest, options = wrappers.inside(wrappers.Wrapper(frozenset({"-n", "--interval"})), words)
    if "-x" in options or "--exec" in options:
        judge(line, rest, None)
    else:
        line.code(" ".join(word.text for word in rest))


def _scripts(line: "Line", words: list[Word], stdin: str | None) -> None:
    line.reading.indirect = True
    for position, word in enumerate(words[:-1]):
        if re.fullmatch(r"-[a-z]*c|--command", word.text):
            line.code(words[position + 1].text)
    for word in words:
        if word.text.startswith("--command="):
            line.code(word.text.removeprefix("--command="))


_XARGS_TAKES = frozenset(
    {"-I", "-J", "-R", "-n", "-P", "-L", "-d", "-E", "-a", "-s", "--max-args", "--max-procs"}
) | {
    *("--arg-file", "--delimiter", "--max-lines", "--max-chars", "--process-slot-var", "--replace"),
}


def _hands_over(line: "Line", words: list[Word], stdin: str | None) -> None:
    """`xargs`: what comes in becomes words of the command."""
    line.reading.indirect = True
    rest, _ = wrappers.inside(wrappers.Wrapper(_XARGS_TAKES), words)
    given = [Word(text) for text in re.split(r"[\s\0]+", stdin) if text] if stdin else [Word(UNKNOWN)]
    replaced = _replaced(words[: len(words) - len(rest)])
    if replaced is None:
        judge(line, [*rest, *given] if rest else [Word("echo"), *given], None)
        return
    for value in given[:20]:
        judge(line, [Word(word.text.replace(replaced, value.text)) for word in rest], None)


def _replaced(options: list[Word]) -> str | None:
    for position, word in enumerate(options):
        if word.text in {"-I", "-J", "--replace"} and position + 1 < len(options):
            return options[position + 1].text
        if word.text.startswith("-I"):
            return word.text[2:]
        if word.text.startswith("-i"):
            return word.text[2:] or "{}"
    return None


def _finds(line: "Line", words: list[Word], stdin: str | None) -> None:
    arguments = words[1:]
    count = next((i for i, w in enumerate(arguments) if w.text.startswith("-") or w.text in {"(", "!"}), None)
    starts = arguments[:count] or [Word(".")]
    tests = [word.text for word in arguments]
    filtered = not _READS.isdisjoint(tests)
    if "-delete" in tests:
        line.reading.indirect = True
        line.paths.write(starts)
        if _is_dangerous(line, "rm", [Word("-r"), *_found_below(line, starts, filtered=filtered)]):
            line.reading.found(Outcome.DANGEROUS)
    for position, word in enumerate(arguments):
        if word.text in _FIND_RUNS:
            _runs_for_each(line, arguments[position + 1 :], _found_below(line, starts, filtered=filtered))
        elif word.text.startswith("-fprint") or word.text == "-fls":
            line.paths.write(arguments[position + 1 : position + 2])


def _runs_for_each(line: "Line", words: list[Word], found: list[Word]) -> None:
    line.reading.indirect = True
    end = next((i for i, word in enumerate(words) if word.text in {";", "+"}), len(words))
    for path in found[:8]:
        judge(line, [Word(word.text.replace("{}", path.text)) for word in words[:end]], None)


def _found_below(line: "Line", starts: list[Word], *, filtered: bool) -> list[Word]:
    """What `find` finds below where it starts: with a test, not the start itself, unless that is the system's."""
    found = []
    for start in starts:
        place = line.paths.place(start.text)
        system = place is not None and any(danger.is_system(stop) for stop in place.stops)
        is_home = start.text.rstrip("/") == os.path.expanduser("~")  # noqa: PTH111
        keeps = not filtered or (system and not is_home)
        found.append(start if keeps else Word(f"{start.text.rstrip('/')}/found-by-find"))
    return found


_SPECIAL: dict[str, Callable[["Line", list[Word], str | None], str | None]] = {
    **dict.fromkeys(SHELLS, _runs_code),
    **dict.fromkeys(("echo", "printf"), _says),
    **dict.fromkeys(("cat", "tac", "tee", "sort", "uniq", "head", "tail"), _passes_on),
    **dict.fromkeys(("cd", "pushd", "popd"), _changes_directory),
    **dict.fromkeys((".", "source"), _sources),
    "eval": _evaluates,
    "trap": _traps,
    "watch": _watches,
    "script": _scripts,
    "xargs": _hands_over,
    "find": _finds,
    "gfind": _finds,
}

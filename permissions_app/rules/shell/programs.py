"""What a command does with its words."""

import os
import re
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

from permissions_app.rules.git_settings import change_by
from permissions_app.rules.shell import danger, moves, runners, shell_builtins, wrappers
from permissions_app.rules.shell.interpreters import hides, is_interpreter
from permissions_app.rules.shell.mentions import mentioned
from permissions_app.rules.shell.reading import Command, Outcome
from permissions_app.rules.shell.runners import SHELLS
from permissions_app.rules.shell.words import Word
from permissions_app.rules.shell.worst import is_dangerous

if TYPE_CHECKING:
    from permissions_app.rules.shell.walk import Line

_WRITES = frozenset(
    {
        *("tee", "mv", "rm", "rmdir", "touch", "truncate", "shred"),
        *("chmod", "chown", "chgrp", "mkdir", "unlink", "patch", "wipefs", "mkswap"),
        *("blkdiscard", "sponge", "fdisk", "sfdisk", "parted"),
    }
)
_COPIES = frozenset({"cp", "ln", "install", "rsync", "scp"})
_DOWNLOADS = frozenset({"curl", "wget", "sort", "gcc", "pandoc"})
_EDITS = frozenset({"sed", "gsed", "perl"})
_SCRIPTED = frozenset({"sed", "gsed", "awk", "gawk", "mawk", "nawk"})
_OPENS = re.compile(r"getline|[rRwW]\s+\S")  # a script of theirs that reads or writes a file of its own
_OUTPUT = re.compile(r"-[a-zA-Z]*[oOt]|--(output(-document)?|target-directory)")
_KEYWORDS = frozenset({"{", "}", "!", "if", "then", "elif", "else", "fi", "while", "until", "do", "done"})
_HIDES = frozenset(
    {
        *("for", "case", "select", "function", "[["),  # not read as what they are
        *("alias", "enable", "complete", "bind", "fc", "history"),
    }
)


def judge(line: "Line", words: list[Word], stdin: str | None) -> str | None:
    """Notes the worst about one command; says what it prints, where that is clear."""
    if not words:
        return stdin
    while words:
        if not words[0].known or words[0].pattern:
            _unclear_name(line, words)
            return None
        name = _name(words[0])
        if name in _KEYWORDS:
            # The parser takes what follows `time` or `!` for a plain command.
            line.reading.indirect = True
            words = words[1:]
        elif name in wrappers.WRAPPERS:
            words = _inside(line, name, words, stdin)
        else:
            return _judge_program(line, name, words, stdin)
    return None


def _inside(line: "Line", name: str, words: list[Word], stdin: str | None) -> list[Word]:
    """The command that another one starts; none where that is looked at already."""
    wrapper = wrappers.WRAPPERS[name]
    inner, options = wrappers.inside(wrapper, words)
    line.paths.name(words[: len(words) - len(inner)])
    if wrapper.alone.intersection(options):
        _note(line, words)
        return []
    line.reading.indirect |= not wrapper.transparent
    if name == "env" and _splits(line, words, len(words) - len(inner), stdin):
        return []
    for word, after in pairwise(words[: len(words) - len(inner)]):
        if name == "env" and word.text in {"-C", "--chdir"}:
            line.scope.go_to(after)
            line.reading.found(Outcome.UNREADABLE)
    if name == "flock" and {"-c", "--command"}.intersection(options):
        line.code(inner[0].text if inner else "", stdin)
        return []
    if wrappers.is_unsure(name):
        line.reading.found(Outcome.UNREADABLE)
        for later in range(1, min(len(inner), 12)):
            _only_the_worst(line, inner[later:])
    return inner


def _judge_program(line: "Line", name: str, words: list[Word], stdin: str | None) -> str | None:
    _note(line, words)
    arguments = words[1:]
    texts = [word.text for word in arguments]
    skipped = mentioned(name, arguments, feeds=line.feeds > 0)
    named = [word for position, word in enumerate(arguments) if position not in skipped]
    line.paths.name(named)
    for word in named if name in _SCRIPTED else []:
        if _OPENS.search(word.text):
            line.paths.code(word.text)
    if is_dangerous(line, name, arguments):
        line.reading.found(Outcome.DANGEROUS)
    line.paths.write(_written(name, named))
    if name in _HIDES or hides(name, texts, has_input=stdin is not None):
        line.reading.found(Outcome.UNREADABLE)
        for text in texts:
            line.paths.code(text)
        line.paths.code(stdin or "")
    shell_builtins.note(line, name, words, stdin)
    special = _SPECIAL.get(name)
    return special(line, words, stdin) if special else None


def _written(name: str, arguments: list[Word]) -> list[Word]:
    """The words that name what it writes, as far as its usual options say."""
    plain = [word for word in arguments if not word.text.startswith("-")]
    if name in _WRITES or (name in _EDITS and any(word.text.startswith("-i") for word in arguments)):
        return plain
    outputs = [after for word, after in pairwise(arguments) if _OUTPUT.fullmatch(word.text)]
    if name in _COPIES:
        return [*plain[-1:], *outputs]
    return outputs if name in _DOWNLOADS else []


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


def _unclear_name(line: "Line", words: list[Word]) -> None:
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
    if words[0].known and is_dangerous(line, _name(words[0]), words[1:]):
        line.reading.found(Outcome.DANGEROUS)


def _splits(line: "Line", words: list[Word], end: int, stdin: str | None) -> bool:
    """`env -S 'sh -c …'`."""
    for position, word in enumerate(words[1:end], start=1):
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
    return stdin if words[0].text == "tee" or all(word.text == "-" for word in words[1:]) else None


def _makes_folder(line: "Line", words: list[Word], stdin: str | None) -> str | None:
    return None if any(word.text != "-d" for word in words[1:]) else "/tmp/made-by-mktemp"  # noqa: S108


def _changes_settings(line: "Line", words: list[Word], stdin: str | None) -> None:
    if line.scope.directory is not None:
        texts = [word.text for word in words]
        change = change_by(texts, line.scope.directory, line.ground.vault.stops)
        line.reading.settings += [change] if change else []


_SPECIAL: dict[str, Callable[["Line", list[Word], str | None], str | None]] = {
    **dict.fromkeys(SHELLS, runners.runs_code),
    **dict.fromkeys(("echo", "printf"), _says),
    **dict.fromkeys(("cat", "tac", "tee", "sort", "uniq", "head", "tail"), _passes_on),
    **dict.fromkeys(("cd", "pushd", "popd"), moves.changes_directory),
    **dict.fromkeys((".", "source"), runners.sources),
    "mktemp": _makes_folder,
    "git": _changes_settings,
    "eval": runners.evaluates,
    "trap": runners.traps,
    "watch": runners.watches,
    "script": runners.scripts,
    "xargs": runners.hands_over,
    "find": runners.finds,
    "gfind": runners.finds,
}

"""What a command does with its words."""

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from permissions_app.rules.git_settings import change_by, sets_repository
from permissions_app.rules.shell import assigning, danger, moves, runners, shell_builtins, wrappers
from permissions_app.rules.shell.awk import read_awk
from permissions_app.rules.shell.interpreters import (
    AWKS,
    SEDS,
    awk_program,
    hides,
    is_interpreter,
    runs_script,
    sed_script,
)
from permissions_app.rules.shell.known_options import KNOWN
from permissions_app.rules.shell.mentions import mentioned
from permissions_app.rules.shell.options import Given
from permissions_app.rules.shell.reading import Command, Outcome
from permissions_app.rules.shell.recipes import recipes
from permissions_app.rules.shell.runners import SHELLS
from permissions_app.rules.shell.sed import read_sed
from permissions_app.rules.shell.variables import runs_by
from permissions_app.rules.shell.words import UNKNOWN, Word
from permissions_app.rules.shell.worst import is_dangerous
from permissions_app.rules.shell.written import may_steer_unseen, only_reads, written

if TYPE_CHECKING:
    from permissions_app.rules.shell.walk import Line

_KEYWORDS = frozenset({"{", "}", "!", "if", "then", "elif", "else", "fi", "while", "until", "do", "done"})
_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*(?:\[.*\])?)(?P<adds>\+?)=(?P<value>.*)", re.DOTALL)
MOST_WRAPPERS = 40  # in each other: nobody writes `env env env …`, and each reads all that follows
_HIDES = frozenset(
    {
        *("for", "case", "select", "function", "[["),  # not read as what they are
        *("alias", "enable", "complete", "bind", "fc", "history"),
    }
)
# What macOS has by these names with a `g` in front.
_GNU_AS_TEXT = (
    "[ b2sum base64 basename cat chgrp chmod chown chroot cp csplit cut date dd df du echo egrep env "
    "expand expr fgrep find fmt fold grep head install join kill link ln ls make md5sum mkdir mktemp mv "
    "nice nl nohup od paste printenv printf readlink realpath rm rmdir sed seq sha1sum sha256sum shred "
    "shuf sleep sort split stat stdbuf tac tail tar tee test time timeout touch tr truncate uniq unlink "
    "wc xargs yes"
)
_GNU = frozenset(_GNU_AS_TEXT.split())


def judge(line: "Line", words: list[Word], stdin: str | None) -> str | None:
    """Notes the worst about one command; says what it prints, where that is clear."""
    if not words:
        return stdin
    for _ in range(MOST_WRAPPERS):
        if not words:
            return None
        if not words[0].known or words[0].pattern:
            _unclear_name(line, words)
            return None
        name = _own_name(words[0])
        if name in line.functions:
            return _judge_program(line, name, words, stdin)
        name = _name(words[0])
        if name in _KEYWORDS:
            # The parser takes what follows `coproc` for a plain command.
            line.reading.indirect = True
            words = _assigned(line, words[1:])
        elif wrapper := wrappers.of(name, words):
            words = _inside(line, name, wrapper, words, stdin)
        else:
            return _judge_program(line, name, words, stdin)
    if not words:
        return None
    line.reading.found(Outcome.UNREADABLE)
    inner = next((at for at, word in enumerate(words) if wrappers.of(_name(word), words[at:]) is None), 0)
    _only_the_worst(line, words[inner:])
    _look_for_the_worst(line, words)
    return None


def _assigned(line: "Line", words: list[Word]) -> list[Word]:
    """Behind such a keyword the parser takes `x=1` for a word; what it stands in front of."""
    for at, word in enumerate(words):
        found = _ASSIGNMENT.fullmatch(word.text)
        if found is None:
            return words[at:]
        line.paths.name([Word(found["value"])])
        assigning.assign(line, found["name"], {found["value"]}, adds=bool(found["adds"]))
    return []


def _inside(
    line: "Line", name: str, wrapper: wrappers.Wrapper, words: list[Word], stdin: str | None
) -> list[Word]:
    """The command that another one starts; none where that is looked at already."""
    found = wrappers.inside(wrapper, words)
    inner, given = found.command, found.given
    own = words[: len(words) - len(inner)]
    line.paths.name(own)
    line.paths.write(words[o.value_at] for o in given.values(*wrapper.writes) if o.value_at is not None)
    if given.has(*wrapper.alone):
        _note(line, words)
        return []
    line.reading.indirect |= not wrapper.transparent
    if name == "env" and _is_other_environment(line, words, len(own), given, stdin):
        return []
    if wrapper.is_part:
        _note(line, own)
        line.paths.name(inner[:1])  # `uv run x.py`
    for code in given.values(*wrapper.codes):
        line.code(code.value or "", stdin)
    takes_input = wrapper.is_part and (inner[0].text == "-" if inner else stdin is not None)
    if wrapper.is_unsure or given.strange or takes_input:
        line.reading.found(Outcome.UNREADABLE)
        _look_for_the_worst(line, words)
    return inner


def _is_other_environment(line: "Line", words: list[Word], end: int, given: Given, stdin: str | None) -> bool:
    """What `env` sets, and where it goes; whether it takes the command from a text of its own."""
    for word in words[1:end]:
        variable, equals, value = word.text.partition("=")
        if equals and runs_by(variable, {value}):
            line.reading.found(Outcome.UNREADABLE)
    for option in given.values("-C", "--chdir"):
        line.scope.go_to(Word(option.value or ""))
        line.reading.found(Outcome.UNREADABLE)
    split = given.values("-S", "--split-string")
    if split:
        rest = words[split[0].at + (1 if split[0].value_at is None else 2) :]
        line.code(" ".join([split[0].value or "", *(_quoted(word.text) for word in rest)]), stdin)
        line.reading.indirect = True
    return bool(split)


def _judge_program(line: "Line", name: str, words: list[Word], stdin: str | None) -> str | None:
    _note(line, words)
    arguments = words[1:]
    texts = [word.text for word in arguments]
    if name in line.functions:
        _judge_unknown(line, name, arguments)
        return None
    skipped = mentioned(name, arguments, feeds=line.feeds > 0, is_there=line.paths.is_there)
    named = [word for position, word in enumerate(arguments) if position not in skipped]
    line.paths.name(named)
    line.paths.name(_read_by_script(name, texts))
    if name == "curl":
        line.paths.form(named)
    if is_dangerous(line, name, arguments):
        line.reading.found(Outcome.DANGEROUS)
    writes = written(name, arguments, line.paths.is_folder)
    line.paths.write(writes)
    line.paths.write(_written_without_unknown(line, name, arguments))
    if not only_reads(name, texts):
        line.paths.steer(_but_script(name, named))
    if any(may_steer_unseen(word) for word in writes):
        line.reading.found(Outcome.UNREADABLE)
    line.reading.stops_computer |= danger.stops_computer(name, texts)
    if name in wrappers.STARTERS:
        _look_for_the_worst(line, words)
    elif name in wrappers.PARTS:
        # `yarn workspace web exec x`, `cargo +nightly watch x`: further behind than is known.
        at = next((at for at, word in enumerate(words) if word.text in wrappers.PARTS[name]), len(words))
        _look_for_the_worst(line, words[at:])
    if name in _HIDES or hides(name, texts, stdin=stdin):
        line.reading.found(Outcome.UNREADABLE)
        for text in texts:
            line.paths.code(text)
        line.paths.code(stdin or "")
    shell_builtins.note(line, name, words, stdin)
    special = _SPECIAL.get(name)
    return special(line, words, stdin) if special else None


def _written_without_unknown(line: "Line", name: str, arguments: list[Word]) -> list[Word]:
    """`cp a CLAUDE.md $x`: where that is nothing, it is no word, and the one before is the last."""
    there = [word for word in arguments if word.text.strip(UNKNOWN)]
    plain = [word for word in there if not word.text.startswith("-")]
    is_other = len(there) < len(arguments) and len(plain) > 1
    return list(written(name, there, line.paths.is_folder)) if is_other else []


def _judge_unknown(line: "Line", name: str, arguments: list[Word]) -> None:
    """A function of this line by a program's name: nobody knows what it does with its words."""
    line.paths.name(arguments)
    line.paths.steer(arguments)
    does_much = name in wrappers.WRAPPERS or name in wrappers.PARTS
    if name in _SPECIAL or name in KNOWN or does_much or is_interpreter(name):
        line.reading.found(Outcome.UNREADABLE)


def _read_by_script(name: str, texts: list[str]) -> list[Word]:
    """The files that a script on the line opens itself."""
    if name in SEDS:
        return [Word(path) for path in read_sed(sed_script(texts)[0]).reads]
    if name in AWKS:
        return [Word(path) for path in read_awk(awk_program(texts)[0]).reads]
    if name == "yq":
        return [Word(path) for text in texts if "load" in text for path in text.split('"')[1:60:2]]
    if name == "sqlite3":
        return [Word(path) for text in texts if text.startswith(".") for path in text.split()[1:20]]
    return []


def _but_script(name: str, words: list[Word]) -> list[Word]:
    """What a shell or an interpreter runs is read."""
    first = next((at for at, word in enumerate(words) if not word.text.startswith("-")), len(words))
    return words[:first] + words[first + 1 :] if name in SHELLS or runs_script(name) else words


def _look_for_the_worst(line: "Line", words: list[Word]) -> None:
    """In whichever of its words a command begins, or is one as a whole: `sh -c "sudo ls"`."""
    for later in range(1, min(len(words), 16)):
        _only_the_worst(line, words[later:])
        if re.search(r"\s", words[later].text):
            found = line.would_find(words[later].text)
            line.reading.found(found if found >= Outcome.SECRET else Outcome.WORDS)


def _own_name(word: Word) -> str:
    return os.path.basename(word.text).replace("\\", "")  # noqa: PTH119


def _name(word: Word) -> str:
    """Without the `g` of GNU's programs on macOS."""
    name = _own_name(word)
    return name[1:] if name[:1] == "g" and name[1:] in _GNU else name


def _note(line: "Line", words: list[Word]) -> None:
    line.reading.commands.append(Command(tuple(word.text for word in words)))
    line.reading.indirect |= any(not word.known for word in words)
    name = words[0].text
    runs = [name] if "/" in name else []
    for text in [*runs, *recipes(_name(words[0]), [word.text for word in words[1:]])]:
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


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _says(line: "Line", words: list[Word], stdin: str | None) -> str | None:
    if any(not word.known or word.pattern for word in words):
        return None
    texts = [word.text for word in words[1:]]
    if _name(words[0]) == "printf":
        texts = [word.text for word in runners.behind_dashes(words)]
        if texts and texts[0] in {"%s", "%s\\n", "%s\n"}:
            return "\n".join(texts[1:]) + "\n"
        return None if not texts or re.search(r"[%\\]", texts[0]) else texts[0]
    options = [text for text in texts if re.fullmatch(r"-[neE]+", text)]
    plain = " ".join(texts[len(options) :])
    return None if "\\" in plain else plain


def _passes_on(line: "Line", words: list[Word], stdin: str | None) -> str | None:
    return stdin if words[0].text == "tee" or all(word.text == "-" for word in words[1:]) else None


def _renames(line: "Line", words: list[Word], stdin: str | None) -> None:
    line.functions |= {word.text.partition("=")[0] for word in words[1:]}


def _makes_folder(line: "Line", words: list[Word], stdin: str | None) -> str | None:
    return None if any(word.text != "-d" for word in words[1:]) else "/tmp/made-by-mktemp"  # noqa: S108


def _changes_settings(line: "Line", words: list[Word], stdin: str | None) -> None:
    texts = [word.text for word in words]
    if line.scope.directory is not None:
        change = change_by(texts, line.scope.directory, line.ground.vault.stops)
        line.reading.settings += [change] if change else []
    if not line.behind_wall and line.reading.outcome is Outcome.WORDS and sets_repository(texts):
        line.paths.write([Word(".git/config")])


_SPECIAL: dict[str, Callable[["Line", list[Word], str | None], str | None]] = {
    **dict.fromkeys(SHELLS, runners.runs_code),
    **dict.fromkeys(("echo", "printf"), _says),
    **dict.fromkeys(("cat", "tac", "tee", "sort", "uniq", "head", "tail"), _passes_on),
    **dict.fromkeys(("cd", "pushd", "popd"), moves.changes_directory),
    **dict.fromkeys((".", "source"), runners.sources),
    "mktemp": _makes_folder,
    "alias": _renames,
    "git": _changes_settings,
    **dict.fromkeys(wrappers.CODE_IN_WORDS, runners.reads_words),
    "eval": runners.evaluates,
    "trap": runners.traps,
    "watch": runners.watches,
    "script": runners.scripts,
    "xargs": runners.hands_over,
    "find": runners.finds,
}

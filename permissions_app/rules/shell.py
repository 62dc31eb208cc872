"""A first, simple look at a Bash command where no wall stands: a parser will replace this module.

It reads words and where a command begins, and knows the worst. What it cannot split into words asks.
"""

import os
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise

from permissions_app.rules.decision import Decision, allow, ask, deny
from permissions_app.rules.deny_list import has_secret_name, what_is_denied
from permissions_app.rules.ground import Ground
from permissions_app.rules.paths import NotUnderstood, find

MAX_LENGTH = 20_000
MAX_DEPTH = 4

_PUNCTUATION = "();<>|&\n`"
_BECOME_ROOT = frozenset({"sudo", "doas", "su", "pkexec", "run0"})
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_KEYWORDS = frozenset({"{", "}", "{}", "!", "if", "then", "elif", "else", "while", "until", "do"})
_WRAPPERS = frozenset(
    {"env", "nohup", "xargs", "exec", "command", "builtin", "time", "timeout", "nice", "setsid"}
)
_ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)
_OPTION = re.compile(r"-.*|\w+=.*|[\d.]+[smhd]?", re.DOTALL)  # what a wrapper takes before the command
_SYSTEM = re.compile(r"/(bin|boot|dev|etc|lib|lib32|lib64|proc|sbin|sys|System)(/.*)?", re.DOTALL)
_WHOLE = re.compile(r"/|/(var|opt|srv|run|mnt|media|tmp|root|Library)|/(home|usr|Users)(/[^/]+)?")
_HARMLESS_DEVICE = re.compile(r"/dev/(null|zero|full|tty|stdin|stdout|stderr|fd/.*|shm/.*)")

DANGEROUS = deny(
    "dangerous",
    "This command can destroy the computer or take it over. No trust level allows it; a person may run it.",
)
UNREADABLE = ask(
    "unreadable_command", "What this command does cannot be read with certainty, so a person decides."
)
SECRET = deny(
    "deny_list",
    "This command names a path on the deny list. No trust level lifts it; only who runs the server may.",
)
READABLE = allow("operator", "An operator's session at full trust runs commands that are not dangerous.")


def judge(command: str, ground: Ground, *, depth: int = 0) -> Decision:
    """The worst that any command in it deserves."""
    if len(command) > MAX_LENGTH or depth > MAX_DEPTH:
        return UNREADABLE
    try:
        tokens = _tokens(command)
    except ValueError:
        return UNREADABLE
    if _is_fork_bomb(tokens) or _writes_to_device(tokens):
        return DANGEROUS
    if any(_names_secret(word, ground) for word in set(tokens)):
        return SECRET
    found = [_judge_one(words, ground, depth) for words in _commands(tokens)]
    return next((worst for worst in (DANGEROUS, SECRET, UNREADABLE) if worst in found), READABLE)


def _tokens(command: str) -> list[str]:
    lexer = shlex.shlex(command.replace("\\\n", ""), posix=True, punctuation_chars=_PUNCTUATION)
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""  # it would hide what follows a `#` inside a word
    return list(lexer)


def _commands(tokens: list[str]) -> Iterator[list[str]]:
    words: list[str] = []
    for token in tokens:
        if _is_operator(token) and not _is_redirect(token):
            yield words
            words = []
        elif not _is_operator(token):
            words.append(token)
    yield words


def _is_operator(token: str) -> bool:
    return bool(token) and set(token) <= set(_PUNCTUATION)


def _is_redirect(token: str) -> bool:
    return _is_operator(token) and not set(token).isdisjoint("<>") and set(token).isdisjoint("();\n`")


def _judge_one(words: list[str], ground: Ground, depth: int) -> Decision:
    inner = [word for word in words if "$(" in word or "`" in word]
    answers = [judge(word.replace("$(", "("), ground, depth=depth + 1) for word in inner]
    name, arguments = _split(words)
    if name in _SHELLS or name == "eval":
        answers += [judge(text, ground, depth=depth + 1) for text in _code(name, arguments)]
    if _is_dangerous(name, arguments, ground):
        answers.append(DANGEROUS)
    elif "$" in name or _removes_unknown(name, arguments):
        answers.append(UNREADABLE)
    return next((worst for worst in (DANGEROUS, SECRET, UNREADABLE) if worst in answers), READABLE)


def _split(words: list[str]) -> tuple[str, list[str]]:
    """The command itself, past keywords, assignments, and commands that only start another."""
    wrapped = False
    for position, word in enumerate(words):
        name = os.path.basename(word)  # noqa: PTH119
        if name in _WRAPPERS:
            wrapped = True
        elif word not in _KEYWORDS and not (_OPTION if wrapped else _ASSIGNMENT).fullmatch(word):
            return name, words[position + 1 :]
    return "", []


def _code(name: str, arguments: list[str]) -> list[str]:
    if name == "eval":
        return [" ".join(arguments)]
    flag = next((i for i, word in enumerate(arguments) if re.fullmatch(r"-[^\Wc]*c\w*", word)), None)
    return [] if flag is None else arguments[flag + 1 : flag + 2]


def _is_dangerous(name: str, arguments: list[str], ground: Ground) -> bool:
    if name in _BECOME_ROOT or name.startswith("mkfs"):
        return True
    if name == "dd":
        return any(word.startswith(("if=", "of=/dev/")) for word in arguments)
    if name in {"rm", "chmod", "chown", "chgrp"} and _is_recursive(arguments):
        return any(_is_system(word, ground) for word in arguments) or "--no-preserve-root" in arguments
    return False


def _is_recursive(arguments: list[str]) -> bool:
    return any(word == "--recursive" or re.fullmatch(r"-[^\WrR]*[rR]\w*", word) for word in arguments)


def _removes_unknown(name: str, arguments: list[str]) -> bool:
    return name == "rm" and _is_recursive(arguments) and any("$" in word for word in arguments)


def _is_system(word: str, ground: Ground) -> bool:
    written = re.sub(r"^\$(HOME|\{HOME\})", "~", word)
    if re.fullmatch(r"~\w*(/[.*]*)*", written):
        return True
    whole = os.path.join(ground.working_directory.stops[0], written)  # noqa: PTH118
    path = os.path.normpath(re.sub(r"/[.*]*\*$", "/", whole)).replace("//", "/")
    return any(pattern.fullmatch(path) for pattern in (_SYSTEM, _WHOLE))


def _is_fork_bomb(tokens: list[str]) -> bool:
    """A function that pipes itself into itself."""
    functions = {name for name, after in pairwise(tokens) if after.startswith("()")}
    return any(
        first in functions and bar == "|" and first == second
        for first, bar, second in zip(tokens, tokens[1:], tokens[2:], strict=False)
    )


def _writes_to_device(tokens: list[str]) -> bool:
    return any(
        _is_redirect(token)
        and ">" in token
        and path.startswith("/dev/")
        and not _HARMLESS_DEVICE.fullmatch(path)
        for token, path in pairwise(tokens)
    )


def _names_secret(word: str, ground: Ground) -> bool:
    return any(_is_secret(piece, ground) for piece in {word, *re.split(r"[=:,@]", word)})


def _is_secret(piece: str, ground: Ground) -> bool:
    if _HARMLESS_DEVICE.fullmatch(piece):
        return False  # `/dev/stderr` is a link into `/proc/self`
    if has_secret_name(piece):
        return True
    written = re.sub(r"^\$(HOME|\{HOME\})", "~", piece)
    try:
        place = find(os.path.expanduser(written), ground.working_directory.stops[0])  # noqa: PTH111
    except NotUnderstood:
        return False
    return what_is_denied(place, ground) is not None

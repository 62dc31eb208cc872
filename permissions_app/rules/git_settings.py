"""What a git command changes of a repository's settings.

`.git/config` can make git start programs, so walls show it read-only and git ends there with "Device or
resource busy". What people want of it is a remote, an upstream, a name: for these the server writes the file,
once a person has allowed it, and only settings that start nothing and lead nowhere on this machine.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from permissions_app.rules.paths import is_below


@dataclass(frozen=True)
class Set:
    """One run of `git config`: its option, the key, and the value where there is one."""

    option: str
    key: str
    value: str | None = None


@dataclass(frozen=True)
class Remote:
    name: str
    address: str
    is_new: bool


@dataclass(frozen=True)
class Upstream:
    """`branch` is empty for the current one, `of` for none at all."""

    branch: str
    of: str


Edit = Set | Remote | Upstream


@dataclass(frozen=True)
class Change:
    config: str  # the file
    edits: tuple[Edit, ...]  # none: it changes something that the server does not
    by: str  # the git command


_OTHER_FILE = re.compile(r"--(global|system|worktree|file|blob)(=.*)?|-f.*")
_LOOKS = re.compile(r"--get.*|--list|-l|--show.*|--name-only|--edit|-e|get|list|edit|--default.*")
_TYPES = re.compile(r"--(local|bool|int|path|bool-or-int|type=\w+|no-type)")
_ADDING = {"--add": "--add", "--append": "--add", "--replace-all": "--replace-all", "--all": "--replace-all"}
_REMOVING = {"--unset": "--unset", "--unset-all": "--unset-all"}
_NAME = r"\w[\w.-]*"
_BRANCH = re.compile(r"(?!.*(\.\.|@\{|//|\.lock$))\w[\w./+#-]*")
_TEXT = re.compile(r"[^\x00-\x1f\x7f-]([^\x00-\x1f\x7f])*")
# A path would be a repository of this machine, whose hooks a push runs; `ext::` is a command.
_ADDRESS = re.compile(
    r"(https?|ssh)://(\w[\w.%+-]*@)?\w[\w.-]*(:\d+)?/[^\s\x00-\x1f]+|"
    r"\w[\w.+-]*@\w[\w.-]*:[^\s:\x00-\x1f-][^\s\x00-\x1f]*"
)
_FETCHED = re.compile(rf"\+?refs/heads/[\w*./-]+:refs/remotes/{_NAME}/[\w*./-]+")
_PLAIN_KEYS = re.compile(
    r"user\.(name|email)|init\.defaultbranch|pull\.(rebase|ff)|push\.(default|autosetupremote|followtags)|"
    r"fetch\.(prune|prunetags)|rebase\.(autostash|autosquash)|merge\.(ff|conflictstyle)|rerere\.enabled|"
    r"core\.(autocrlf|eol|filemode|ignorecase|precomposeunicode|quotepath|safecrlf|abbrev)|color\.ui|log\.date|"
    r"diff\.(algorithm|renames|colormoved)|commit\.verbose|(tag|branch)\.sort|status\.\w+|advice\.\w+|"
    rf"branch\.(autosetupmerge|autosetuprebase)|branch\.{_NAME}\.rebase|remote\.{_NAME}\.prune",
    re.IGNORECASE,
)


def change_by(words: Sequence[str], directory: str, top: Sequence[str]) -> Change | None:
    """Of a git command that is run in a directory, below one of the `top` folders; None where it changes no
    settings of the repository there."""
    command, directory = _after_options(list(words[1:]), directory)
    edits = _edits(command) if command else None
    if edits is None:
        return None
    config = _config_of(directory, top, must_be_here=command[0] == "init")
    return Change(config, edits, command[0]) if config else None


def edits_of(words: Sequence[str]) -> tuple[Edit, ...]:
    command, _ = _after_options(list(words[1:]), "/")
    return (_edits(command) or ()) if command else ()


def sets_repository(words: Sequence[str]) -> bool:
    """Does `git config` write the settings of a repository, whichever that is?"""
    command, _ = _after_options(list(words[1:]), "/")
    return command[:1] == ["config"] and _of_config(command[1:]) is not None


def makes_repository(words: Sequence[str]) -> bool:
    """What follows in its line may speak of a repository that is not there yet."""
    command, _ = _after_options(list(words[1:]), "/")
    return bool(command) and command[0] in {"init", "clone"}


def only_looks(words: Sequence[str]) -> bool:
    """It could as well be left out: nothing else in the line depends on it."""
    if words[0] in {"cd", "pwd", "true", ":", "echo"}:
        return True
    command, _ = _after_options(list(words[1:]), "/") if words[0] == "git" else ([], "")
    match command:
        case ["remote"] | ["remote", "-v" | "--verbose" | "show" | "get-url", *_] | ["status", *_]:
            return True
        case ["config", *rest]:
            return any(_LOOKS.fullmatch(word) for word in rest) or len(rest) == 1
        case ["branch", *rest]:
            return all(re.fullmatch(r"-[vra]+|--list|--show-current|--all", word) for word in rest)
    return False


def _after_options(words: list[str], directory: str) -> tuple[list[str], str]:
    while words and words[0].startswith("-"):
        match words:
            case ["-C", where, *rest]:
                words, directory = rest, str(Path(directory, where))
            case ["-c", _, *rest] | ["--no-pager" | "-P", *rest]:
                words = rest
            case _:  # `--git-dir` and the like: another repository, nobody knows which
                return [], directory
    return words, directory


def _config_of(directory: str, top: Sequence[str], *, must_be_here: bool = False) -> str | None:
    """The settings of the repository around a directory. Of a worktree or a submodule they lie elsewhere."""
    try:
        here = Path(directory).resolve()
    except (OSError, RuntimeError):
        return None
    for folder in (here, *here.parents):
        if not any(is_below(str(folder), each) for each in top):
            return None
        if os.path.isdir(folder / ".git"):  # noqa: PTH112 - a Path raises where nobody may look
            return str(folder / ".git" / "config")
        if must_be_here or os.path.exists(folder / ".git"):  # noqa: PTH110
            return None
    return None


def _edits(command: list[str]) -> tuple[Edit, ...] | None:
    match command:
        case ["config", *rest]:
            return _of_config(rest)
        case ["remote", "add", name, address] if not name.startswith("-"):
            return _of_remote(name, address, is_new=True)
        case ["remote", "set-url", name, address] if not name.startswith("-"):
            return _of_remote(name, address, is_new=False)
        case ["remote", "add" | "set-url" | "remove" | "rm" | "rename" | "set-branches", _, *_]:
            return ()
        case ["submodule", "add" | "init" | "sync" | "deinit", *_] | ["submodule", "update", "--init", *_]:
            return ()
        case ["sparse-checkout", "init" | "set" | "add" | "disable", *_]:
            return ()
        case ["branch", *rest]:
            return _of_branch(rest)
        case ["init", *rest] if all(word.startswith("-") for word in rest):
            return ()
    return None


def _of_config(words: list[str]) -> tuple[Edit, ...] | None:
    if not words or any(_OTHER_FILE.fullmatch(word) or _LOOKS.fullmatch(word) for word in words):
        return None
    action, words = (words[0], words[1:]) if words[0] in {"set", "unset"} else ("", words)
    options = {word for word in words if word.startswith("--") and not _TYPES.fullmatch(word)}
    plain = [word for word in words if not word.startswith("--")]
    if action == "unset" or options & _REMOVING.keys():
        option = "--unset-all" if options & {"--unset-all", "--all"} else "--unset"
        known, wanted = options <= {*_REMOVING, "--all"}, 1
    elif not action and not options and len(plain) < 2:
        return None  # it prints the value
    else:
        option = next((_ADDING[each] for each in options if each in _ADDING), "")
        known, wanted = options <= _ADDING.keys() and len(options) < 2, 2
    if not known or len(plain) != wanted or not _is_harmless(*plain):
        return ()
    return (Set(option, *plain),)


def _is_harmless(key: str, value: str | None = None) -> bool:
    """Does git neither start a program nor go elsewhere by it?"""
    if value is not None and not _TEXT.fullmatch(value):
        return False
    if _PLAIN_KEYS.fullmatch(key):
        return True
    section, _, rest = key.partition(".")
    name, _, variable = rest.rpartition(".")
    match section.lower(), variable.lower():
        case "remote", "url":
            return re.fullmatch(_NAME, name) is not None and (value is None or _is_address(value))
        case "remote", "fetch":
            return re.fullmatch(_NAME, name) is not None and (
                value is None or bool(_FETCHED.fullmatch(value))
            )
        case "branch", "remote":
            return _BRANCH.fullmatch(name) is not None and (value is None or bool(re.fullmatch(_NAME, value)))
        case "branch", "merge":
            is_ref = value is None or (
                value.startswith("refs/heads/") and bool(_BRANCH.fullmatch(value[len("refs/heads/") :]))
            )
            return _BRANCH.fullmatch(name) is not None and is_ref
    return False


def _is_address(text: str) -> bool:
    return _ADDRESS.fullmatch(text) is not None


def _of_remote(name: str, address: str, *, is_new: bool) -> tuple[Edit, ...]:
    is_ours = re.fullmatch(_NAME, name) is not None and _is_address(address)
    return (Remote(name, address, is_new),) if is_ours else ()


def _of_branch(words: list[str]) -> tuple[Edit, ...] | None:
    of: str | None = None
    match words:
        case ["-u" | "--set-upstream-to", of, *rest]:
            pass
        case ["--unset-upstream", *rest]:
            of = ""
        case [word, *rest] if found := re.fullmatch(r"(?:-u|--set-upstream-to=)(.+)", word):
            of = found[1]
        case _:
            return None
    branch = rest[0] if rest else ""
    named = [each for each in (of, branch) if each]
    if len(rest) > 1 or not all(_BRANCH.fullmatch(each) for each in named):
        return ()
    return (Upstream(branch, of),)

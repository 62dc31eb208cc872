"""Which git commands start other programs, or let a setting start one."""

import re
from collections.abc import Sequence

from permissions_app.rules.shell.options import Given, read, spec

GIT = spec(
    "C:c:pPhv",
    "git-dir= work-tree= namespace= exec-path? html-path man-path info-path paginate no-pager "
    "no-replace-objects bare literal-pathspecs glob-pathspecs noglob-pathspecs icase-pathspecs "
    "no-optional-locks config-env= attr-source= no-lazy-fetch no-advice version help",
)
_SETTING_RUNS = re.compile(
    r"(alias\.|core\.(sshcommand|pager|editor|hookspath|fsmonitor|gitproxy|askpass|worktree|alternaterefscommand)|"
    r"pager\.|diff\.|merge\.|filter\.|credential\.|gpg\.|sequence\.editor|protocol\.|include|uploadpack|browser\.|"
    r"man\.|difftool|mergetool|trailer\.|url\.|submodule\.|remote\..*(uploadpack|receivepack|vcs|proxy)|web\.|"
    r"interactive\.|sendemail|instaweb|init\.templatedir|receive\.|uploadarchive|tar\.|guitool|ssh\.|hook).*",
    re.IGNORECASE | re.DOTALL,
)
_ALWAYS = frozenset(
    {"filter-branch", "difftool", "mergetool", "credential", "send-email", "instaweb", "daemon"}
)
_LONG = {
    "rebase": ("--exec",),
    **dict.fromkeys(("fetch", "pull", "ls-remote", "fetch-pack", "submodule"), ("--upload-pack",)),
    "clone": ("--upload-pack", "--template", "--config"),
    "init": ("--template",),
    **dict.fromkeys(("push", "send-pack"), ("--receive-pack", "--exec")),
    "grep": ("--open-files-in-pager",),
    "archive": ("--exec",),
}
_SHORT = {"rebase": re.compile(r"-[a-zA-Z]*x.*", re.DOTALL), "grep": re.compile(r"-[a-zA-Z]*O.*", re.DOTALL)}
_SHORT["clone"] = re.compile(r"-[lnsqv]*[uc].*", re.DOTALL)


def subcommand_at(arguments: Sequence[str]) -> int | None:
    """Where the word stands that says what git is to do; None where that is not certain."""
    given = _own(arguments)
    return None if given.strange or not given.plain else given.plain[0]


def _own(arguments: Sequence[str]) -> Given:
    return read(GIT, arguments, until=0)


def git_hides(arguments: Sequence[str]) -> bool:
    given = _own(arguments)
    if given.strange or given.has("--config-env"):
        return True
    if any(option.value for option in given.values("--exec-path")):
        return True
    if any(_SETTING_RUNS.fullmatch(option.value or "") for option in given.values("-c")):
        return True
    if not given.plain:
        return False
    command, *rest = [arguments[at] for at in given.plain]
    if (
        command in _ALWAYS
        or (command == "bisect" and "run" in rest)
        or (command == "submodule" and "foreach" in rest)
    ):
        return True
    if command == "config":
        plain = [word for word in rest if not word.startswith("-")]
        sets = (len(plain) > 1 and plain[0] not in {"get", "list"}) or "--edit" in rest
        return sets and any(_SETTING_RUNS.fullmatch(word) for word in rest)
    return any(_starts(command, word) for word in rest)


def _starts(command: str, word: str) -> bool:
    if command in _SHORT and not word.startswith("--") and _SHORT[command].fullmatch(word):
        return True
    name = word.partition("=")[0]
    return (
        len(name) > 2
        and name.startswith("--")
        and any(each.startswith(name) for each in _LONG.get(command, ()))
    )

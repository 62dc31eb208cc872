"""Programs that run code which is no Bash. On their line or in their input, nobody can read it."""

import re
from functools import lru_cache
from itertools import pairwise

_INLINE = {
    r"python[\d.]*|pypy[\d.]*|jython|ipython[\d.]*": r"-[a-zA-Z]*c.*|-",
    r"node|nodejs|bun|deno|tsx|ts-node|qjs": (
        r"-[a-z]*[ep].*|--eval.*|--print.*|eval|-|-r.*|--require.*|--import.*"
    ),
    r"perl[\d.]*": r"-[a-zA-Z0-9]*[eE].*|-",
    r"ruby[\d.]*|irb|jruby": r"-[a-zA-Z]*e.*|-",
    r"php[\d.]*": r"-[rRBE].*|-",
    r"lua[\d.]*|luajit|julia|elixir|ghc|R|Rscript|osascript|groovy|scala|erl|swift|guile|racket": (
        r"-e.*|-eval|-E.*|--eval.*|-"
    ),
    r"tclsh[\d.]*|expect|wish|pwsh|powershell|fish|csh|tcsh|xonsh|nu|elvish": (
        r"-[a-zA-Z]*c.*|-Command|-Enc.*|-"
    ),
    r"emacs|emacsclient": r"--eval.*|-eval|--execute|-f|-l|--load",
    r"vi|vim|nvim|ex|view|vimdiff|gvim|rvim": r"-c.*|--cmd|\+(?!\d*$).*|-S.*|-s",
    r"gdb|lldb": r"-ex.*|-x|-o|--eval-command.*",
    r"(g|m|n)?awk": "",
    r"sqlite3|psql|mysql": r".*(\.shell|\.system|\\!).*",
    r"nc|ncat|netcat": r"-[a-z]*[ec].*|--(sh-)?exec.*",
    r"ssh|scp|sftp|rsync": r"-[oe]|-[oe].*(Command|Include).*|--rsh.*|-F.*|--rsync-path.*",
}
_READS_INPUT = re.compile(
    r"python[\d.]*|pypy[\d.]*|node|nodejs|bun|deno|perl[\d.]*|ruby[\d.]*|php[\d.]*|lua[\d.]*|R|Rscript|tclsh[\d.]*|"
    r"fish|csh|tcsh|pwsh|guile|julia|at|batch|parallel|ed|ex|m4|expect|sqlite3|gdb|osascript|irb|ipython[\d.]*"
)
_NAMES = {re.compile(names): re.compile(options, re.DOTALL) for names, options in _INLINE.items()}
_AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})
_ALL = re.compile("|".join(_INLINE))
_VALUED = {"-m": True, "-W": False, "-X": False, "-I": False, "-C": False, "-i": False}

# Options of other programs that name a command to run.
_STARTS_COMMAND = {
    "tar": (
        r"--checkpoint-action.*|--to-command.*|-I.*|--use-compress-program.*|--rsh-command.*|-F.*|"
        r"--info-script.*"
    ),
    "split": r"--filter.*",
    "sort": r"--compress-program.*",
    "zip": r"-TT.*|--unzip-command.*",
    "man": r"-P.*|--pager.*|-H.*",
    "less": r"\+(?![GF]?$|\d+g?$).*|-k.*",
    "git": r"--exec-path=.*|--upload-pack.*|--receive-pack.*|--exec.*|-x.*|--extcmd.*|-O.*|--open-files.*",
    "nmap": r"--script.*",
    "tcpdump": r"-z.*",
    "curl": r"-K.*|--config.*",
    "wget": r"--use-askpass.*|--config.*",
    "rg": r"--pre.*|--hostname-bin.*",
    "fd": r"-x.*|-X.*|--exec.*",
    "fdfind": r"-x.*|-X.*|--exec.*",
    "entr": r".*",
    "openssl": r"-engine",
    "pip": r"--global-option.*",
    "make": r"--eval.*|-E.*",
    "npm": r"-c|--call.*|--script-shell.*",
    "npx": r"-c|--call.*",
    "uv": r"-c",
}
_ALWAYS = frozenset(
    {
        *("parallel", "at", "batch", "systemd-run", "crontab", "tmux", "screen", "socat", "ed"),
        *("red", "ex", "m4"),
    }
)
_LISTS = {"tmux": ["ls"], "screen": ["-ls"], "crontab": ["-l"], "at": ["-l"]}  # and start nothing
_STARTS = {name: re.compile(options, re.DOTALL) for name, options in _STARTS_COMMAND.items()}
_AWK_RUNS = re.compile(r"system\s*\(|\|\s*(getline|&|\"|\w)|\"\s*\||@load|\\x|\|&|print.*\|")
_SED_RUNS = re.compile(r"(^|[;\n{}]|\d|/|\$)\s*[eE](\s|$|;)|s(.).*\3.*\3[gpiIm0-9]*e", re.DOTALL)
_GIT_RUNS = re.compile(
    r"(alias\.|core\.(sshcommand|pager|editor|hookspath|fsmonitor|gitproxy|askpass)|pager\.|diff\.|"
    r"merge\.|filter\.|credential\.|gpg\.|sequence\.editor|protocol\.|include|uploadpack|browser\.|"
    r"man\.|difftool|mergetool|trailer\.|url\.).*",
    re.IGNORECASE | re.DOTALL,
)


@lru_cache(maxsize=512)
def is_interpreter(name: str) -> bool:
    return _ALL.fullmatch(name) is not None


def hides(name: str, arguments: list[str], *, has_input: bool) -> bool:
    """Does it run code that stands in its words or comes in from elsewhere?"""
    if name in _ALWAYS:
        return has_input or arguments != _LISTS.get(name)
    if name in _STARTS and any(_STARTS[name].fullmatch(word) for word in arguments):
        return name != "git" or not _is_harmless_git(arguments)
    if name == "git":
        return _git_hides(arguments)
    if name == "sed" or name == "gsed":
        return any(_SED_RUNS.search(word) for word in arguments[:3] if not word.startswith("-"))
    if name in _AWKS:
        return any(_AWK_RUNS.search(word) for word in arguments)
    options = _options_with_code(name)
    if options is None:
        return False
    if options.pattern and _before_script(arguments, options):
        return True
    has_script = any(not word.startswith("-") or word in {"-m", "-V", "--version"} for word in arguments)
    return has_input and not has_script and _READS_INPUT.fullmatch(name) is not None


@lru_cache(maxsize=512)
def _options_with_code(name: str) -> re.Pattern[str] | None:
    return next((options for names, options in _NAMES.items() if names.fullmatch(name)), None)


def _before_script(arguments: list[str], options: re.Pattern[str]) -> bool:
    """Options after the script's name are the script's own."""
    words = iter(arguments)
    for word in words:
        if options.fullmatch(word):
            return True
        if word == "-m" or word == "--":
            return False
        if word in _VALUED:
            next(words, None)
        elif not word.startswith(("-", "+")):
            return False
    return False


_GIT_STARTS = frozenset(
    {
        *("rebase", "bisect", "submodule", "grep", "difftool", "fetch", "pull", "push", "clone"),
        *("ls-remote",),
    }
)


def _is_harmless_git(arguments: list[str]) -> bool:
    """`git rebase -x` starts a command; `git clean -x` and `git diff -O` start none."""
    return _GIT_STARTS.isdisjoint(arguments) and not any(w.startswith("--exec-path=") for w in arguments)


def _git_hides(arguments: list[str]) -> bool:
    for word, after in pairwise([*arguments, ""]):
        value = after if word in {"-c", "--config"} else word.removeprefix("-c")
        if word.startswith("--config-env") or (word.startswith("-c") and _GIT_RUNS.fullmatch(value)):
            return True
    command = next((word for word in arguments if not word.startswith("-")), "")
    if command == "config":
        return len(arguments) > 2 and any(_GIT_RUNS.fullmatch(word) for word in arguments)
    if command in {"filter-branch", "difftool", "mergetool", "credential"}:
        return True
    return (command, *arguments[1:2]) == ("bisect", "run") or (
        command == "submodule" and "foreach" in arguments
    )

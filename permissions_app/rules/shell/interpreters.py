"""Programs that run code which is no Bash. On their line or in their input, nobody can read it."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from permissions_app.rules.shell.awk import read_awk
from permissions_app.rules.shell.git_code import git_hides
from permissions_app.rules.shell.known_options import is_harmless, known
from permissions_app.rules.shell.options import Given, read, with_dashes
from permissions_app.rules.shell.sed import read_sed

AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})
SEDS = frozenset({"sed", "gsed"})
TARS = frozenset({"tar", "gtar", "bsdtar"})
_VIMS = frozenset({"vim", "vi", "nvim", "view", "vimdiff", "gvim", "rvim"})
_INTERPRETERS = re.compile(
    r"python[\d.]*|pypy[\d.]*|jython|ipython[\d.]*|node|nodejs|bun|deno|tsx|ts-node|qjs|perl[\d.]*|"
    r"ruby[\d.]*|irb|"
    r"jruby|php[\d.]*|lua[\d.]*|luajit|julia|elixir|ghc|R|Rscript|osascript|groovy|scala|erl|swift|guile|"
    r"racket|"
    r"tclsh[\d.]*|expect|wish|pwsh|powershell|fish|csh|tcsh|xonsh|nu|elvish|emacs|emacsclient|vi|vim|nvim|"
    r"ex|view|"
    r"vimdiff|gvim|rvim|gdb|lldb|(g|m|n)?awk|sqlite3|psql|mysql|mariadb|nc|ncat|netcat|ssh|scp|sftp|rsync"
)
# They are given files to work on, and no script.
_WITHOUT_SCRIPT = re.compile(
    r"emacs(client)?|vi|vim|nvim|ex|view|vimdiff|gvim|rvim|gdb|lldb|sqlite3|psql|mysql|mariadb|nc|ncat|netcat|"
    r"ssh|scp|sftp|rsync|(g|m|n)?awk"
)
_READS_INPUT = re.compile(
    r"python[\d.]*|pypy[\d.]*|node|nodejs|bun|deno|perl[\d.]*|ruby[\d.]*|php[\d.]*|lua[\d.]*|R|Rscript|"
    r"tclsh[\d.]*|"
    r"fish|csh|tcsh|pwsh|guile|julia|at|batch|parallel|ed|ex|m4|expect|sqlite3|gdb|osascript|irb|"
    r"ipython[\d.]*"
)
# Those whose options are not all known: what begins so, wherever it stands, runs code.
_INLINE = {
    r"bun|deno|tsx|ts-node|qjs": (
        r"-[a-z]*[ep].*|--eval.*|--print.*|eval|repl|-|-r.*|--require.*|--import.*|--preload.*"
    ),
    r"jython|ipython[\d.]*": r"-[a-zA-Z]*c.*|-",
    r"irb|lua[\d.]*|luajit|julia|elixir|ghc|R|Rscript|osascript|groovy|scala|erl|swift|guile|racket": (
        r"-e.*|-eval|-E.*|--eval.*|-c|-"
    ),
    r"tclsh[\d.]*|expect|wish|pwsh|powershell|fish|csh|tcsh|xonsh|nu|elvish": (
        r"-[a-zA-Z]*c.*|-Command|-Enc.*|-"
    ),
    r"emacs|emacsclient": r"--?(ev|ex|fu|lo|sc|in).*|-[flxe]|--batch",
}
_STARTS_COMMAND = {
    "split": r"--filter=.*|--filter",
    "zip": r"-TT.*|--unzip-command.*",
    "man": r"-P.*|--pager.*|-H.*|--html.*",
    "less": r"\+(?![GF]?$|\d+g?$|/[\w .-]*$).*|-k.*|--lesskey.*",
    "nmap": r"--script.*",
    "tcpdump": r"-z.*",
    "curl": r"-K.*|--config.*",
    "wget": r"--use-askpass.*|--config.*|-e.*|--execute.*",
    "rg": r"--pre(=.*)?|--hostname-bin.*",
    "fd": r"-x.*|-X.*|--exec.*",
    "entr": r".*",
    "openssl": r"-engine",
    "pip": r"--global-option.*",
    "make": r"--eval.*|-E.*|SHELL=.*|.*(\$\(|`).*|-|-[a-zA-Z]*f-|--(?:make)?file=-|.*/dev/(stdin|fd/).*",
    "just": r"--command.*|--shell.*|-c|-|-f-|--justfile=-|.*/dev/(stdin|fd/).*",
    **dict.fromkeys(("apt", "apt-get", "aptitude"), r"-[a-zA-Z]*[oc].*|--option.*|--config-file.*"),
    **dict.fromkeys(("bat", "batcat", "delta"), r"--pager.*"),
    "lftp": r"-[a-z]*[cef].*|-",
    "hg": r"--config.*",
    **dict.fromkeys(("fzf", "sk"), r"--bind.*"),
    "npm": r"-c|--call.*|--script-shell.*",
    "npx": r"-c|--call.*",
    "uv": r"-c",
    "go": r"--?(exec|toolexec)(=.*)?",
    "gcc": r"-wrapper|-fplugin.*|-specs.*",
}
_STARTS_COMMAND["fdfind"] = _STARTS_COMMAND["fd"]
_ALWAYS = frozenset(
    {
        *("parallel", "at", "batch", "systemd-run", "crontab", "tmux", "screen", "socat", "ed"),
        *("red", "ex", "m4"),
    }
)
_LISTS = {"tmux": ["ls"], "screen": ["-ls"], "crontab": ["-l"], "at": ["-l"]}  # and start nothing
_STARTS = {name: re.compile(options, re.DOTALL) for name, options in _STARTS_COMMAND.items()}
_NAMES = {re.compile(names): re.compile(options, re.DOTALL) for names, options in _INLINE.items()}
# Of long options these are whole names: a shorter spelling is the same to many programs.
_LONG = {name: tuple(re.findall(r"--[a-z-]{4,}", options.pattern)) for name, options in _STARTS.items()}

_SQLITE_SHOWS = re.compile(
    r"\.(tables?|schema|headers?|mode|dump|databases|index(es)?|indices|fullschema|dbinfo|timer|stats|width|"
    r"nullvalue|separator|quit|exit|explain|help|show|limit|bail|echo|changes|eqp|print)\b[^|]*|\.(import|"
    r"read)\s[^|]*"
)
_SQLITE_CALLS = re.compile(r"\b(load_extension|edit|readfile|writefile|fts3_tokenizer)\s*\(", re.IGNORECASE)
_PSQL_RUNS = re.compile(r"\\(?!(d|l|x|timing|pset|q|conninfo|echo|c|connect|i|ir)\b|d)", re.IGNORECASE)
_MYSQL_RUNS = re.compile(r"\\[!TPe.]|(^|[;\n])\s*(system|source|pager|tee|edit)\b", re.IGNORECASE)
_FILE_OF_MAKE = re.compile(r"-[a-zA-Z]*f|--(make|just)?file")
_VIM_GOES_TO = re.compile(r"\+(\d*|/[\w .-]+)")


@lru_cache(maxsize=512)
def is_interpreter(name: str) -> bool:
    return _INTERPRETERS.fullmatch(name) is not None


def runs_script(name: str) -> bool:
    """Is its first word a file that it runs?"""
    return is_interpreter(name) and _WITHOUT_SCRIPT.fullmatch(name) is None


def hides(name: str, arguments: Sequence[str], *, stdin: str | None) -> bool:
    """Does it run code that stands in its words or comes in from elsewhere?"""
    has_input = stdin is not None
    if name in _ALWAYS:
        return has_input or list(arguments) != _LISTS.get(name)
    if name == "git":
        return git_hides(arguments)
    if name in _STARTS and any(_starts(name, word) for word in arguments):
        return True
    if name in _LANGUAGES and _LANGUAGES[name](arguments, stdin or ""):
        return True
    options = known(name)
    if options and name in TARS:
        arguments = with_dashes(options.spec, arguments)
    if options is not None:
        given = read(options.spec, arguments, until=options.until)
        if not is_harmless(options, arguments):
            return True
        return has_input and _takes_input(name, arguments, given)
    inline = _options_with_code(name)
    if inline and any(inline.fullmatch(word) for word in arguments):
        return True
    has_script = any(not word.startswith("-") for word in arguments)
    return has_input and not has_script and _READS_INPUT.fullmatch(name) is not None


def _takes_input(name: str, arguments: Sequence[str], given: Given) -> bool:
    if _READS_INPUT.fullmatch(name) is None or given.has("-m", "-V", "--version", "-v"):
        return False
    if name == "gdb":
        return True
    return not given.plain or arguments[given.plain[0]] == "-"


def _starts(name: str, word: str) -> bool:
    if _STARTS[name].fullmatch(word):
        return True
    return (
        len(word) > 3
        and word.startswith("--")
        and any(each.startswith(word.partition("=")[0]) for each in _LONG[name])
    )


@lru_cache(maxsize=512)
def _options_with_code(name: str) -> re.Pattern[str] | None:
    return next((options for names, options in _NAMES.items() if names.fullmatch(name)), None)


def sed_script(arguments: Sequence[str]) -> tuple[str, set[int]]:
    """The whole script of a `sed`, and the words that it stands in."""
    options = known("sed")
    assert options
    given = read(options.spec, arguments)
    parts = given.values("-e", "--expression")
    if parts:
        stands = {part.at if part.value_at is None else part.value_at for part in parts}
        return "\n".join(part.value or "" for part in parts), stands
    if given.has("-f", "--file") or not given.plain:
        return "", set()
    # Of macOS's `sed -i '' s/a/b/` the first word is no script, and to GNU's sed the second is a file.
    first = [at for at in given.plain[:2] if arguments[given.plain[0]] == ""] or given.plain[:1]
    return "\n".join(arguments[at] for at in first), set(first)


def awk_program(arguments: Sequence[str]) -> tuple[str, set[int]]:
    options = known("awk")
    assert options
    given = read(options.spec, arguments, until=0)
    parts = given.values("-e", "--source")
    if parts:
        stands = {part.at if part.value_at is None else part.value_at for part in parts}
        return "\n".join(part.value or "" for part in parts), stands
    if given.has("-f", "--file", "-E", "--exec") or not given.plain:
        return "", set()
    return arguments[given.plain[0]], {given.plain[0]}


def _of_sed(arguments: Sequence[str], stdin: str) -> bool:
    found = read_sed(sed_script(arguments)[0])
    return found.runs or not found.is_readable or _comes_in("sed", arguments)


def _comes_in(name: str, arguments: Sequence[str]) -> bool:
    """Is its script what it is fed? The parser loses a `-` that stands before `<<`."""
    options = known(name)
    assert options
    scripts = read(options.spec, arguments, until=options.until).values("-f", "--file", "-E", "--exec")
    return any(
        script.value in {"-", "/dev/stdin"} or (script.value is None and script.name in {"-f", "--file"})
        for script in scripts
    )


def _of_awk(arguments: Sequence[str], stdin: str) -> bool:
    found = read_awk(awk_program(arguments)[0])
    return found.runs or not found.is_readable or _comes_in("awk", arguments)


def _of_sqlite(arguments: Sequence[str], stdin: str) -> bool:
    lines = [line for word in [*arguments, stdin] for line in word.splitlines()]
    return any(
        _SQLITE_CALLS.search(line) or (line.startswith(".") and not _SQLITE_SHOWS.fullmatch(line))
        for line in (line.strip() for line in lines)
    )


def _of_psql(arguments: Sequence[str], stdin: str) -> bool:
    outputs = read(known("psql").spec, arguments).values("-o", "--output")  # type: ignore[union-attr]
    pipes = any((each.value or "").lstrip().startswith("|") for each in outputs)
    said = " ".join([*arguments, stdin]).lower()
    return pipes or _PSQL_RUNS.search(said) is not None or ("copy" in said and "program" in said)


def _of_mysql(arguments: Sequence[str], stdin: str) -> bool:
    return any(_MYSQL_RUNS.search(word) for word in [*arguments, stdin])


def _of_make(arguments: Sequence[str], stdin: str) -> bool:
    """What it makes is said by what it is fed, where the parser has lost a `-`."""
    return any(_FILE_OF_MAKE.fullmatch(word) for word in arguments[-1:])


def _of_vim(arguments: Sequence[str], stdin: str) -> bool:
    return any(word.startswith("+") and not _VIM_GOES_TO.fullmatch(word) for word in arguments)


_LANGUAGES: dict[str, Callable[[Sequence[str], str], bool]] = {
    **dict.fromkeys(AWKS, _of_awk),
    **dict.fromkeys(SEDS, _of_sed),
    **dict.fromkeys(_VIMS, _of_vim),
    **dict.fromkeys(("make", "just"), _of_make),
    "sqlite3": _of_sqlite,
    "psql": _of_psql,
    "mysql": _of_mysql,
    "mariadb": _of_mysql,
}

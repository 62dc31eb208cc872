"""Words of a command that name no file whose content it reveals or changes.

What it says, looks for, leaves out, asks about or writes down as a message. Without this every line that
speaks of `.env` would be taken for one that opens it.
"""

import re
from collections.abc import Callable, Container, Iterator
from itertools import pairwise

from permissions_app.rules.shell.awk import read_awk
from permissions_app.rules.shell.git_code import subcommand_at
from permissions_app.rules.shell.globs import is_written_for_secret
from permissions_app.rules.shell.interpreters import awk_program, sed_script
from permissions_app.rules.shell.options import Given, Spec, read, spec
from permissions_app.rules.shell.sed import read_sed
from permissions_app.rules.shell.words import Word

GREPS = frozenset({"grep", "egrep", "fgrep", "rg", "ag", "ack", "zgrep"})
_SAYS = frozenset({"echo", "printf", "test", "["})
_LEAVE_OUT = GREPS | {
    *("tar", "rsync", "du", "diff", "fd", "fdfind", "ls", "tree", "zip", "ruff", "mypy", "black", "isort"),
    *("flake8", "eslint", "prettier"),
}
_LEFT_OUT = re.compile(r"--(exclude(-dir)?|extend-exclude|ignore-pattern)(=.*)?|--ignore=.*", re.DOTALL)
_LEFT_OUT_SHORT = {
    "fd": "-E",
    "fdfind": "-E",
    "ls": "-I",
    "tree": "-I",
    "diff": "-x",
}
_GREP = spec(
    "EFGPivwxcLlqsZzbHhnTUruaIoRyVe:f:m:A:B:C:d:D:",
    "regexp= file= max-count= after-context= before-context= context= color? colour? include= exclude= "
    "exclude-from= exclude-dir= label= binary-files= devices= directories= extended-regexp fixed-strings "
    "basic-regexp perl-regexp ignore-case no-ignore-case word-regexp line-regexp count files-with-matches "
    "files-without-match only-matching quiet silent no-messages invert-match line-number recursive text null "
    "dereference-recursive with-filename no-filename byte-offset initial-tab null-data line-buffered",
)
_RG = spec(
    "FPivwxcLlqsabHhnNoUuSVz0.e:f:m:A:B:C:d:g:t:T:j:M:r:E:",
    "regexp= file= max-count= after-context= before-context= context= glob= iglob= type= type-not= type-add= "
    "max-depth= threads= max-columns= replace= encoding= sort= sortr= color= colors= engine= ignore-file= "
    "hidden no-* files files-with-matches count json pretty multiline fixed-strings ignore-case smart-case "
    "word-regexp line-number vimgrep null text follow pcre2 only-matching stats trim unrestricted",
)
# What people write, in words of their own.
_COMMIT = spec(
    "apqvsneizoS::u::m:F:C:c:t:D",
    "message= file= author= date= template= reuse-message= reedit-message= "
    "fixup= squash= trailer= cleanup= gpg-sign? untracked-files? pathspec-from-file= all patch quiet verbose "
    "signoff no-* edit amend allow-empty allow-empty-message dry-run short only include reset-author",
)
_TAG = spec(
    "asfdlvem:F:u:n::i", "message= file= sort= contains= points-at= format= annotate sign force delete list"
)
_STASH = spec("pkuqSam:", "message= patch keep-index include-untracked all quiet staged pathspec-from-file=")
_NOTES = spec("fm:F:c:C:", "message= file= ref= force allow-empty")
_MERGE = spec(
    "qvnem:s:X:F:S::", "message= strategy= strategy-option= file= no-* ff-only squash commit edit quiet"
)
_MESSAGES = {"commit": _COMMIT, "tag": _TAG, "stash": _STASH, "notes": _NOTES, "merge": _MERGE}
_MESSAGE = re.compile(r"(--message|--title|--body|--subject|--notes|--search|-[tbm])")
_GLUED_MESSAGE = re.compile(r"--(message|title|body|subject|notes|search)=.*", re.DOTALL)
_LEFT_OUT_OF_GIT = re.compile(r":[!^].*|:\(exclude\).*", re.DOTALL)
# The names of tests, not of files.
_TEST_NAMES = re.compile(r"-[kt]|-g|--grep|--testNamePattern|--test-name-pattern")
_TESTERS = frozenset({"pytest", "py.test", "jest", "vitest", "mocha", "ava"})
_STARTERS_OF_TESTERS = frozenset({"npx", "yarn", "pnpm", "bunx", "python", "python3"})
# Names of files are no more than what a list of a folder says; a folder of secrets is not listed.
_LISTS_NAMES = frozenset({"ls", "stat", "du", "readlink", "realpath"})
_FILE_NAME = re.compile(
    r"(\./)?(\.env[\w.-]*|[\w-]+\.(pem|key)|id_\w+(\.pub)?|credentials\.json|\.netrc|/proc/self/exe)|/proc/self/exe"
)
_FETCHES = {"curl": re.compile(r"-[a-zA-Z]*[OJ].*|--remote-.*"), "git": None, "gh": None}
_ADDRESS = re.compile(r"https?://[\w.-]+(:\d+)?/\S*")

_BY_NAME = frozenset({"-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex"})
_ACTS = re.compile(r"-(exec|ok|delete|fprint|fls).*")
_MAX_NAMES = 40  # each is looked at together with all that stands before it
_NOT, _OR = frozenset({"!", "-not"}), frozenset({"-o", "-or"})

_GIT_NAMES = frozenset({"check-ignore", "check-attr", "ls-files", "status"})
_GIT_LOG = re.compile(
    r"--|--oneline|--stat|--all|--follow|--graph|-n|-\d+|--(format|pretty|since|until|after|before|author)=.*|"
    r"--name-(only|status)|--diff-filter=.*|--no-pager|--reverse|--decorate|--full-history"
)
_OPENS_LIST = re.compile(r"--.*(file|from).*|-X.*", re.DOTALL)
_INDEX_ONLY = {"--assume-unchanged", "--no-assume-unchanged", "--skip-worktree", "--no-skip-worktree", "--"}
_GIT_SEARCH = re.compile(r"(-[SG]|--grep=|--author=).+", re.DOTALL)

_JQ_OPENS = re.compile(r"import|include|input_filename|\$__")


def mentioned(name: str, arguments: list[Word], *, feeds: bool, is_there: Callable[[str], bool]) -> set[int]:
    """The positions of such words. `feeds`: what it prints may become the words of another command.
    `is_there`: is it a file that exists?"""
    if name in _SAYS or (name in {"basename", "dirname"} and not feeds):
        return set(range(len(arguments)))
    texts = [word.text for word in arguments]
    found = {at for at in _left_out(name, texts) if at < len(arguments) and arguments[at].known}
    found |= {at for at, text in enumerate(texts) if _is_address(name, text, texts)}
    if name in _LISTS_NAMES and not feeds:
        found |= {at for at, word in enumerate(arguments) if _is_only_listed(name, word)}
    if name in {"gh", "hg", "jj"}:
        found |= {at for at, (before, _) in enumerate(pairwise(texts), 1) if _MESSAGE.fullmatch(before)}
        found |= {at for at, text in enumerate(texts) if _GLUED_MESSAGE.fullmatch(text)}
    if name in _TESTERS or (name in _STARTERS_OF_TESTERS and not _TESTERS.isdisjoint(texts[:3])):
        found |= {at for at, (before, _) in enumerate(pairwise(texts), 1) if _TEST_NAMES.fullmatch(before)}
    if name == "yq":
        return found | _of_yq(texts, is_there)
    return found | (_OF[name](texts, feeds) if name in _OF else set())


def _is_only_listed(name: str, word: Word) -> bool:
    if word.pattern is not None:
        return (
            name in {"ls", "stat", "du"} and "/" not in word.text and not is_written_for_secret(word.pattern)
        )
    return _FILE_NAME.fullmatch(word.text) is not None


def _left_out(name: str, texts: list[str]) -> Iterator[int]:
    if name not in _LEAVE_OUT:
        return
    at = 0
    while at < len(texts):
        text = texts[at]
        if _LEFT_OUT.fullmatch(text):
            at += "=" not in text  # the next word, whatever it looks like
            yield at
        elif text == _LEFT_OUT_SHORT.get(name):
            at += 1
            yield at
        at += 1
    is_left_out = False
    for at, text in enumerate(texts if name == "zip" else []):
        is_left_out = text == "-x" if text.startswith("-") or text == "@" else is_left_out
        if is_left_out:
            yield at


def _is_address(name: str, text: str, texts: list[str]) -> bool:
    """`curl -O` makes a file of the address's last name."""
    if name not in _FETCHES or not _ADDRESS.fullmatch(text):
        return False
    saves = _FETCHES[name]
    return saves is None or not any(saves.fullmatch(each) for each in texts)


def _first_plain(texts: list[str], start: int = 0) -> set[int]:
    return set(next(([at] for at in range(start, len(texts)) if not texts[at].startswith("-")), []))


def _after(texts: list[str], options: Container[str]) -> set[int]:
    return {at for at, (before, _) in enumerate(pairwise(texts), 1) if before in options}


def _of_grep(texts: list[str], feeds: bool, of: Spec = _GREP) -> set[int]:
    given = read(of, texts)
    parts = {o.at if o.value_at is None else o.value_at for o in given.values("-e", "--regexp")}
    if of is _RG:
        # Its `-e` and `--glob` say what to look for and where; none of them opens a file.
        parts |= {o.at if o.value_at is None else o.value_at for o in given.values("-g", "--glob", "--iglob")}
        if given.has("--files"):
            return parts
    if given.has("-e", "--regexp", "-f", "--file"):
        return parts
    return parts | set(given.plain[:1])


def _of_find(texts: list[str], feeds: bool) -> set[int]:
    """The names that it looks at. Those that it looks for are named where something is done with what it
    finds; those that it leaves out are not."""
    named = _after(texts, _BY_NAME)
    if not feeds and not any(_ACTS.fullmatch(text) for text in texts):
        return named
    if "," in texts or len(named) > _MAX_NAMES:
        return set()  # what stands behind a comma is done whatever was found before
    return {at for at in named if _is_negated(texts, at) or _is_pruned(texts, at)}


def _is_negated(texts: list[str], at: int) -> bool:
    count = 0
    while at - 2 - count >= 0 and texts[at - 2 - count] in _NOT:
        count += 1
    is_flat = _depth(texts, at) == 0 and _OR.isdisjoint(texts)
    return count % 2 == 1 and is_flat


def _depth(texts: list[str], at: int) -> int:
    return texts[:at].count("(") - texts[:at].count(")")


def _is_pruned(texts: list[str], at: int) -> bool:
    """`-name x -prune -o …`, also `( -name x -o -name y ) -prune -o …`, where nothing stands before it that
    could be false."""
    begin = at - 1
    while begin >= 3 and texts[begin - 1] in _OR and texts[begin - 3] in _BY_NAME:
        begin -= 3
    in_brackets = texts[begin - 1 : begin] == ["("]
    begin -= in_brackets
    if _depth(texts, begin) != 0 or not _begins_anew(texts[:begin]):
        return False
    end = at + 1
    while end + 2 < len(texts) and texts[end] in _OR and texts[end + 1] in _BY_NAME:
        end += 3
    if in_brackets:
        if texts[end : end + 1] != [")"]:
            return False
        end += 1
    elif end > at + 1 or begin != at - 1:
        return False
    return texts[end : end + 1] == ["-prune"] and texts[end + 1 : end + 2] in (["-o"], ["-or"])


def _begins_anew(before: list[str]) -> bool:
    """Nothing but where to look, or another that is pruned."""
    if before[-1:] in (["-o"], ["-or"]):
        return before[-2:-1] == ["-prune"]
    return not any(
        (text.startswith("-") and text not in {"-L", "-P", "-H"}) or text in {"(", "!"} for text in before
    )


def _of_git(texts: list[str], feeds: bool) -> set[int]:
    start = subcommand_at(texts)
    if start is None:
        return set()
    found = {at for at, text in enumerate(texts) if _LEFT_OUT_OF_GIT.fullmatch(text)}
    if texts[:start] not in ([], ["--no-pager"]):
        return found | _message(texts, start)
    return found | _message(texts, start) | _of_git_command(texts, start, feeds)


def _message(texts: list[str], start: int) -> set[int]:
    of = _MESSAGES.get(texts[start])
    given = read(of, texts, start=start + 1) if of else Given()
    if given.strange:
        return set()
    return {o.at if o.value_at is None else o.value_at for o in given.values("-m", "--message")}


def _of_git_command(texts: list[str], start: int, feeds: bool) -> set[int]:
    command, rest = texts[start], range(start + 1, len(texts))
    options = [texts[at] for at in rest if texts[at].startswith("-")]
    if command == "grep":
        return {start + 1 + at for at in _of_grep(texts[start + 1 :], feeds)}
    if command == "clean":
        return {
            at for at in rest if texts[at - 1] in {"-e", "--exclude"} or texts[at].startswith("--exclude=")
        }
    if any(_OPENS_LIST.fullmatch(each) for each in options):
        return set()
    if command in _GIT_NAMES and not feeds:
        return set(rest)
    if command in _ONLY_INDEX and _ONLY_INDEX[command](set(options)):
        return set(rest)
    if command == "log":
        found = {at for at in rest if _GIT_SEARCH.fullmatch(texts[at])}
        found |= _after(texts, {"-S", "-G", "--grep"})
        quiet = [each for each in options if not _GIT_SEARCH.fullmatch(each)]
        return set(rest) if all(_GIT_LOG.fullmatch(each) for each in quiet) else found
    return set()


# They change what git keeps of a file, and neither the file nor what is shown of it.
_ONLY_INDEX: dict[str, Callable[[set[str]], bool]] = {
    "rm": lambda options: "--cached" in options,
    "update-index": lambda options: bool(options) and options <= _INDEX_ONLY,
    "reset": lambda options: options <= {"-q", "--quiet", "--mixed", "-N", "--"},
    "restore": lambda options: (
        bool(options & {"--staged", "-S"}) and options <= {"--staged", "-S", "-q", "--quiet", "--"}
    ),
    "rev-list": lambda options: options <= {"--all", "--count", "--", "--no-merges", "--merges", "--reverse"},
}


def _of_sed(texts: list[str], feeds: bool) -> set[int]:
    script, stands = sed_script(texts)
    return stands if read_sed(script).is_readable else set()


def _of_awk(texts: list[str], feeds: bool) -> set[int]:
    program, stands = awk_program(texts)
    return stands if read_awk(program).is_readable else set()


_JQ_TAKES = {"--arg": 2, "--argjson": 2, "--slurpfile": 2, "--rawfile": 2, "--indent": 1, "-L": 1}


def _of_jq(texts: list[str], feeds: bool) -> set[int]:
    if any(re.fullmatch(r"-[a-zA-Z]*f.*|--from-file.*", text) for text in texts):
        return set()
    at, said = 0, set()
    while at < len(texts) and texts[at].startswith("-"):
        if texts[at] in {"--arg", "--argjson"}:
            said |= {at + 1, at + 2}
        at += 1 + _JQ_TAKES.get(texts[at], 0)
    return said | ({at} if at < len(texts) and not _JQ_OPENS.search(texts[at]) else set())


def _of_yq(texts: list[str], is_there: Callable[[str], bool]) -> set[int]:
    """Its first word is what to look for, unless it is a file."""
    first = _first_plain(texts)
    if first and texts[min(first)] in {"e", "ea", "eval", "eval-all"}:
        first = _first_plain(texts, min(first) + 1)
    return {at for at in first if "load" not in texts[at] and not is_there(texts[at])}


def _of_fd(texts: list[str], feeds: bool) -> set[int]:
    return set() if feeds else _first_plain(texts)


_OF: dict[str, Callable[[list[str], bool], set[int]]] = {
    **dict.fromkeys(GREPS, _of_grep),
    "rg": lambda texts, feeds: _of_grep(texts, feeds, _RG),
    **dict.fromkeys(("fd", "fdfind"), _of_fd),
    **dict.fromkeys(("find", "gfind"), _of_find),
    **dict.fromkeys(("sed", "gsed"), _of_sed),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _of_awk),
    "git": _of_git,
    "jq": _of_jq,
}

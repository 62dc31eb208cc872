"""Words of a command that name no file whose content it reveals or changes.

What it says, looks for, leaves out, asks about or writes down as a message. Without this every line that
speaks of `.env` would be taken for one that opens it.
"""

import re
from collections.abc import Callable, Container, Iterator
from itertools import pairwise

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
_GIVES_PATTERN = re.compile(r"-[a-zA-Z]*[ef]|--(regexp|file)")
_TAKES_MESSAGE = frozenset({"git", "gh", "hg", "jj"})
_MESSAGE = re.compile(r"-[a-z]*m|--message|--title|--body|-t|-b")
_SEARCHES = frozenset({"--search", "--notes"})
_FETCHES = {"curl": re.compile(r"-[a-zA-Z]*[OJ].*|--remote-.*"), "git": None, "gh": None}
_ADDRESS = re.compile(r"https?://[\w.-]+(:\d+)?/\S*")

_BY_NAME = frozenset({"-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex"})
_ACTS = re.compile(r"-(exec|ok|delete|fprint|fls).*")
_NOT, _OR = frozenset({"!", "-not"}), frozenset({"-o", "-or"})

_GIT_NAMES = frozenset({"check-ignore", "check-attr", "ls-files", "status"})
_GIT_LOG = re.compile(
    r"--|--oneline|--stat|--all|--follow|--graph|-n|-\d+|--(format|pretty|since|until|after|before|author)=.*|"
    r"--name-(only|status)|--diff-filter=.*|--no-pager|--reverse|--decorate|--full-history"
)
_OPENS_LIST = re.compile(r"--.*(file|from).*|-X.*", re.DOTALL)
_INDEX_ONLY = {"--assume-unchanged", "--no-assume-unchanged", "--skip-worktree", "--no-skip-worktree", "--"}
_GIT_SEARCH = re.compile(r"(-[SG]|--grep=|--author=).+", re.DOTALL)

_ADDRESS_OF_LINE = r"(\d+|\$|/(?:[^/\\]|\\.)*/)"
_SED = re.compile(  # no `r` and `w`, which name files, and no `e`
    rf"({_ADDRESS_OF_LINE}(,{_ADDRESS_OF_LINE})?)?\s*!?"
    r"([dpq=]|s(?P<by>[/#|,@])(?:(?!(?P=by))[^\\]|\\.)*(?P=by)(?:(?!(?P=by))[^\\]|\\.)*(?P=by)[gpiI\d]*)",
    re.DOTALL,
)
_AWK_OPENS = re.compile(r"[<>|\"]|getline|system|@")
_JQ_OPENS = re.compile(r"import|include|input_filename|\$__")


def mentioned(name: str, arguments: list[Word], *, feeds: bool) -> set[int]:
    """The positions of such words. `feeds`: what it prints may become the words of another command."""
    if name in _SAYS or (name in {"basename", "dirname"} and not feeds):
        return set(range(len(arguments)))
    texts = [word.text for word in arguments]
    found = {at for at in _left_out(name, texts) if at < len(arguments) and arguments[at].known}
    found |= {at for at, text in enumerate(texts) if _is_address(name, text, texts)}
    if name in _TAKES_MESSAGE:
        found |= {at for at, (before, _) in enumerate(pairwise(texts), 1) if _MESSAGE.fullmatch(before)}
    if name == "gh":
        found |= _after(texts, _SEARCHES)
    return found | (_OF[name](texts, feeds) if name in _OF else set())


def _left_out(name: str, texts: list[str]) -> Iterator[int]:
    if name not in _LEAVE_OUT:
        return
    for at, text in enumerate(texts):
        if _LEFT_OUT.fullmatch(text):
            yield at if "=" in text else at + 1
        elif text == _LEFT_OUT_SHORT.get(name):
            yield at + 1
    is_left_out = False
    for at, text in enumerate(texts if name == "zip" else []):
        is_left_out = text == "-x" if text.startswith("-") else is_left_out
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


def _of_grep(texts: list[str], feeds: bool) -> set[int]:
    given = _after(texts, {"-e", "--regexp"})
    return given if any(_GIVES_PATTERN.match(text) for text in texts) else _first_plain(texts)


def _of_find(texts: list[str], feeds: bool) -> set[int]:
    """The names that it looks at. Those that it looks for are named where something is done with what it
    finds; those that it leaves out are not."""
    named = _after(texts, _BY_NAME)
    if not feeds and not any(_ACTS.fullmatch(text) for text in texts):
        return named
    return {at for at in named if _is_negated(texts, at) or _is_pruned(texts, at)}


def _is_negated(texts: list[str], at: int) -> bool:
    count = 0
    while at - 2 - count >= 0 and texts[at - 2 - count] in _NOT:
        count += 1
    return count % 2 == 1 and not {",", *_OR}.intersection(texts)


def _is_pruned(texts: list[str], at: int) -> bool:
    """`-name x -prune -o …`, also `( -name x -o -name y ) -prune -o …`."""
    if at >= 2 and texts[at - 2] in _NOT:
        return False
    end = at + 1
    while end + 2 < len(texts) and texts[end] in _OR and texts[end + 1] in _BY_NAME:
        end += 3
    if end > at + 1 or texts[end : end + 1] == [")"]:
        if texts[end : end + 1] != [")"]:
            return False
        end += 1
    return texts[end : end + 1] == ["-prune"] and texts[end + 1 : end + 2] in (["-o"], ["-or"])


def _of_git(texts: list[str], feeds: bool) -> set[int]:
    start = next((at for at, text in enumerate(texts) if not text.startswith("-")), None)
    if start is None or texts[:start] not in ([], ["--no-pager"]):
        return set()
    command, rest = texts[start], range(start + 1, len(texts))
    options = [texts[at] for at in rest if texts[at].startswith("-")]
    if command == "grep":
        return {start + 1 + at for at in _of_grep(texts[start + 1 :], feeds)}
    if any(_OPENS_LIST.fullmatch(each) for each in options):
        return set()
    if command in _GIT_NAMES and not feeds:
        return set(rest)
    if command == "rm" and "--cached" in options:
        return set(rest)
    if command == "update-index" and options and set(options) <= _INDEX_ONLY:
        return set(rest)
    if command == "log":
        found = {at for at in rest if _GIT_SEARCH.fullmatch(texts[at])}
        found |= _after(texts, {"-S", "-G", "--grep"})
        quiet = [each for each in options if not _GIT_SEARCH.fullmatch(each)]
        return set(rest) if all(_GIT_LOG.fullmatch(each) for each in quiet) else found
    return set()


def _of_sed(texts: list[str], feeds: bool) -> set[int]:
    if any(re.fullmatch(r"-[a-zA-Z]*f.*|--file.*", text) for text in texts):
        return set()
    given = _after(texts, {"-e", "--expression"}) or _first_plain(texts)
    return {at for at in given if _SED.fullmatch(texts[at])}


def _of_awk(texts: list[str], feeds: bool) -> set[int]:
    """Only where the program comes first: `-f` and `-v` take words too."""
    return {0} if texts and not texts[0].startswith("-") and not _AWK_OPENS.search(texts[0]) else set()


def _of_jq(texts: list[str], feeds: bool) -> set[int]:
    if any(re.fullmatch(r"-[a-zA-Z]*[fL].*|--from-file.*|--.*file.*", text) for text in texts):
        return set()
    return {at for at in _first_plain(texts) if not _JQ_OPENS.search(texts[at])}


_OF: dict[str, Callable[[list[str], bool], set[int]]] = {
    **dict.fromkeys(GREPS, _of_grep),
    **dict.fromkeys(("find", "gfind"), _of_find),
    **dict.fromkeys(("sed", "gsed"), _of_sed),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _of_awk),
    "git": _of_git,
    "jq": _of_jq,
}

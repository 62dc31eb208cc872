"""What `xargs` hands over of its input: the words of each command that it starts."""

import shlex
from itertools import chain

from permissions_app.rules.shell.options import Given
from permissions_app.rules.shell.words import UNKNOWN

_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\r": "\r", "\\\\": "\\", "\\0": UNKNOWN}


def handed_over(given: Given, stdin: str | None, *, by_line: bool) -> list[list[str]]:
    """`by_line`: each line by itself takes the place of a mark. Raises ValueError where nobody can say."""
    if stdin is None:
        return [[UNKNOWN]]
    lines = _lines(given, stdin, by_line=by_line)
    if by_line:
        return [[" ".join(texts)] for texts in lines]
    if counted := given.values("-L", "-l", "--max-lines"):
        return _joined(lines, int(counted[-1].value or 1))
    words = [text for texts in lines for text in texts]
    if counted := given.values("-n", "--max-args"):
        return _joined([[text] for text in words], int(counted[-1].value or "?"))
    return [words]


def _lines(given: Given, stdin: str, *, by_line: bool) -> list[list[str]]:
    """The words of each line; with a delimiter of its own there are no others, and quotes mean nothing."""
    delimiters = [each.value or "" for each in given.values("-d", "--delimiter")]
    if given.has("-0", "--null"):
        delimiters.append(UNKNOWN)
    if delimiters:
        by = _ESCAPES.get(delimiters[-1], delimiters[-1])
        if len(by) != 1:
            raise ValueError(f"no delimiter: {by}")
        texts = [stdin] if by == UNKNOWN else stdin.removesuffix(by).split(by)
        return [[text] for text in texts]
    if by_line:
        return [[_unquoted(each.lstrip())] for each in stdin.split("\n") if each.strip()]
    if "\n" not in stdin.strip() or not given.has("-L", "-l", "--max-lines"):
        return [shlex.split(stdin)]
    return [shlex.split(each) for each in stdin.split("\n") if each.strip()]


def _unquoted(text: str) -> str:
    """Blanks stay as they are."""
    reader = shlex.shlex(text, posix=True)
    reader.whitespace, reader.commenters, reader.whitespace_split = "", "", True
    return "".join(reader)


def _joined(lines: list[list[str]], at_once: int) -> list[list[str]]:
    if at_once < 1:
        raise ValueError("none at once")
    return [list(chain(*lines[at : at + at_once])) for at in range(0, len(lines), at_once)]

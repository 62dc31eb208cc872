"""Long Markdown in pieces that a platform takes, each of them whole: no fence, link or emoji is cut in two.

Where a piece ends depends on what stands before its longest end alone, so that pieces of a text that still
grows stay as they are.
"""

import re
from collections.abc import Callable

Length = Callable[[str], int]

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n`]*)$", re.MULTILINE)
# A link, or what may become one, that reaches the end of what is looked at.
_OPEN_LINK = re.compile(r"(?:!?\[[^\]\n]*(?:\]?$|\]\([^)\s]*$)|\bhttps?://\S*$|<[^>\s]*$|`[^`\n]*$)")
_JOINED = re.compile("[\u0300-\u036f\u200d\ufe00-\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
_FLAG = re.compile("[\U0001f1e6-\U0001f1ff]")
_ROOM = 40  # for a fence that is closed, and opened again


def split(text: str, longest: int, length: Length = len) -> list[str]:
    pieces: list[str] = []
    rest, fence = text, ""
    while rest:
        opened = f"{fence}\n" if fence else ""
        if length(opened + rest) <= longest:
            pieces.append(opened + rest)
            break
        cut = _cut(rest, longest - length(opened) - _ROOM, length)
        piece, rest = opened + rest[:cut].rstrip("\n"), rest[cut:].lstrip("\n")
        fence = _open_fence(piece)
        pieces.append(f"{piece}\n{_mark(fence)}" if fence else piece)
    return [piece for piece in pieces if piece.strip()]


def _cut(text: str, longest: int, length: Length) -> int:
    """Between blocks, else lines, sentences or words in the second half of what fits; else where no character
    is broken."""
    fits = _fits(text, longest, length)
    for between in ("\n\n", "\n", ". ", " "):
        at = text.rfind(between, fits // 2, fits)
        if at > 0:
            return _before_link(text, at + len(between), fits)
    return _before_link(text, _between_letters(text, fits), fits)


def _fits(text: str, longest: int, length: Length) -> int:
    """As many characters as fit. None is shorter than one."""
    fits = min(len(text), longest)
    while length(text[:fits]) > longest:
        fits -= max(1, (length(text[:fits]) - longest) // 2)
    return max(fits, 1)


def _before_link(text: str, cut: int, fits: int) -> int:
    """One that is longer than half a piece is cut all the same, where no character is broken."""
    line = text.rfind("\n", 0, cut) + 1
    found = _OPEN_LINK.search(text, line, cut)
    if found is None or (text[cut - 1 : cut].isspace() and found.end() < cut):
        return cut
    start = found.start()
    return start if start > fits // 2 else cut


def _between_letters(text: str, cut: int) -> int:
    start = cut
    while 1 < cut < len(text) and cut > start - 32 and _belongs_together(text, cut):
        cut -= 1
    return cut


def _belongs_together(text: str, at: int) -> bool:
    if _JOINED.match(text[at]) or text[at - 1] == "\u200d":
        return True
    if not _FLAG.match(text[at]):
        return False
    before = at
    while before and _FLAG.match(text[before - 1]):
        before -= 1
    return (at - before) % 2 == 1


def _open_fence(piece: str) -> str:
    """The line that opened a fence that is not closed in it."""
    fence = ""
    for found in _FENCE.finditer(piece):
        mark, info = found[1], found[2].strip()
        if not fence:
            fence = found[0].strip()
        elif not info and mark[0] == fence[0] and len(mark) >= len(_mark(fence)):
            fence = ""
    return fence


def _mark(fence: str) -> str:
    return fence[: len(fence) - len(fence.lstrip(fence[0]))] if fence else ""

"""Text that is still being written, as markup that grows: what is settled is sent once, and only the block at
the end, which may still change its meaning, is sent again."""

import re
from dataclasses import dataclass

from django.utils.safestring import SafeString

from parachute_site.pages.markup import markdown

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
LONGEST = 200_000  # characters of one block that are rendered while it grows; its row brings the rest


@dataclass(frozen=True)
class Grown:
    more: SafeString  # settled since the last time
    end: SafeString  # instead of the end that was sent then
    anew: bool  # what was sent before is to be dropped


class Writing:
    def __init__(self) -> None:
        self._text = ""
        self._settled = 0
        self._is_new = True

    @property
    def size_of_end(self) -> int:
        return len(self._text) - self._settled

    def add(self, offset: int, text: str) -> None:
        """A reader that comes back gets the text so far as one piece: it begins where it says."""
        if offset < self._settled:
            self._settled, self._is_new = 0, True
        self._text = (self._text[:offset] + text)[:LONGEST]

    def grow(self) -> Grown:
        upto = _settled(self._text, self._settled)
        more = self._text[self._settled : upto]
        self._settled, anew, self._is_new = upto, self._is_new, False
        return Grown(markdown(more, is_whole=False), markdown(self._text[upto:], is_whole=False), anew)


def _settled(text: str, begin: int) -> int:
    """Where the last block begins: after an empty line that is not in a fence, unless what follows is
    indented and so may belong to what is before it."""
    settled, at, fence, after_empty = begin, begin, "", False
    for line in text[begin:].splitlines(keepends=True):
        if after_empty and not fence and not line[0].isspace():
            settled = at
        after_empty = not line.strip()
        found = _FENCE.match(line)
        if found and not fence:
            fence = found[1]
        elif found and found[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        at += len(line)
    return settled

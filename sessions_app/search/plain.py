"""What a piece of markdown says, without the signs that say how it looks.

A piece is one line (`chunking.py`), may begin and end in the middle of anything, and anybody writes it: each
pattern looks at a bounded number of characters, and what is no mark for certain stays.
"""

import re

_KEPT = re.compile(
    r"(?<!`)(?P<fence>`{1,2})(?!`)(?P<code>.{1,500}?)(?<!`)(?P=fence)(?!`)|\\(?P<sign>[!-/:-@\[-`{-~])"
)
_PLACE = re.compile("\0(\\d+)\0")  # of what is kept as it is; no text has such a sign

_TO = r"(?:<[^<>]{0,500}>|(?:[^()<>\s]|\([^()\s]{0,100}\)){0,500})"
_LINK = re.compile(
    rf'!?\[(?P<shown>[^\[\]]{{0,300}})\](?:\({_TO}(?: "[^"]{{0,200}}")?\)|\[[^\[\]]{{0,100}}\])'
)
_IN_A_LINK = 2  # there may be a picture
_LINE = r"(?:^|(?<=[.!?:;…] ))"  # where one may have begun

_MARKS = [
    (re.compile(r"!?\[\[(?:[^\[\]|]{1,300}\|)?([^\[\]|]{1,300})\]\]"), r"\1"),
    *[(_LINK, r"\g<shown>")] * _IN_A_LINK,
    (re.compile(rf"\]\({_TO}\)?"), ""),  # of a link that begins in the piece before
    (re.compile(r"(?<!\S)\[[^\[\]]{1,100}\]: <?\w{1,10}://\S{1,500}"), ""),
    (re.compile(r"<(\w{1,10}://[^<>\s]{1,500})>"), r"\1"),
    (re.compile(r"`{3,}[\w+-]*|~~+|`"), ""),
    (re.compile(r"(?<!\S)\|(?: ?:?-+:? ?\|)+(?!\S)"), ""),  # below the head of a table
    (re.compile(r"(?<!\S)\|(?: \|)+(?!\S)"), "|"),
    (re.compile(r"(?<!\S)(?:#{1,6}|-{3,}|\*{3,}|_{3,}|={3,})(?!\S)"), ""),
    (re.compile(rf"{_LINE}(?:[-*+>] )+(?:\[[ xX]\] )?"), ""),
    (re.compile(r"(?<=\S )(?:\*|[-*+] \[[ xX]\])(?= \S)"), "·"),  # between two of a list, or times
    (re.compile(r"(?<![\w*])\*{1,3}(?=[^\s*./])|(?<=[^\s*/])\*{1,3}(?![\w*])"), ""),
    (re.compile(r"(?<!\w)(_{1,3})(?=[^\s_])(.{1,300}?)(?<=[^\s_])\1(?!\w)"), r"\2"),
]


def plain(text: str) -> str:
    kept = list[str]()

    def keep(found: re.Match[str]) -> str:
        kept.append(found["code"] or found["sign"])
        return f"\0{len(kept) - 1}\0"

    said = _KEPT.sub(keep, " ".join(text.replace("\0", "").split()))
    for mark, shown in _MARKS:
        said = " ".join(mark.sub(shown, said).split())
    return " ".join(_PLACE.sub(lambda place: kept[int(place[1])], said).split())

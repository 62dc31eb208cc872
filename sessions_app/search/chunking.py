"""A text in pieces of about 512 characters that begin and end with sentences, each with the end of the one
before it: what is said across a border is found too."""

import re
from collections.abc import Iterator

SIZE, OVERLAP = 512, 80
LONGEST = 2 * SIZE  # of what has no end in it, such as a table or a line of code
_END = re.compile(r"(?<=[.!?…。])\s+|\n{2,}|\n(?=[-*#>|\d])")


def chunks(text: str) -> list[str]:
    found: list[str] = []
    held = ""
    for sentence in _sentences(text):
        if held and len(held) + len(sentence) + 1 > SIZE:
            found.append(held)
            held = _tail(held)
        held = f"{held} {sentence}" if held else sentence
    if held.strip():
        found.append(held)
    return found


def _sentences(text: str) -> Iterator[str]:
    for part in _END.split(text):
        sentence = " ".join(part.split())
        for start in range(0, len(sentence), LONGEST):
            yield sentence[start : start + LONGEST]


def _tail(text: str) -> str:
    """Its last words, to begin the next piece with."""
    return text[-OVERLAP:].partition(" ")[2] if len(text) > OVERLAP else ""

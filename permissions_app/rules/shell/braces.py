"""`a{b,c}` is `ab ac`."""

import re
from itertools import pairwise

from permissions_app.rules.shell.parse import Unreadable

MAX_WORDS = 400

_RANGE = re.compile(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.-?\d+)?")


def open_braces(text: str) -> list[str]:
    """From the first brace that opens one on."""
    for start in [i for i, character in enumerate(text) if character == "{"][:20]:
        depth, cuts = 0, [start]
        for position in range(start, len(text)):
            character = text[position]
            if character == "{":
                depth += 1
            elif character == "}":
                depth -= 1
                if depth == 0:
                    choices = _choices(text, [*cuts, position])
                    if choices:
                        return _around(text[:start], choices, text[position + 1 :])
                    break
            elif character == "," and depth == 1:
                cuts.append(position)
    return [text]


def _choices(text: str, cuts: list[int]) -> list[str]:
    if len(cuts) > 2:
        return [text[a + 1 : b] for a, b in pairwise(cuts)]
    found = _RANGE.fullmatch(text, cuts[0] + 1, cuts[1])
    if found is None:
        return []
    if found[1].lstrip("-").isdigit() and found[2].lstrip("-").isdigit():
        first, last = int(found[1]), int(found[2])
        numbers = range(first, last + 1) if first <= last else range(first, last - 1, -1)
        return [str(number) for number in numbers[:MAX_WORDS]]
    if len(found[1]) == len(found[2]) == 1:
        first, last = sorted((ord(found[1]), ord(found[2])))
        return [chr(code) for code in range(first, last + 1)]
    return []


def _around(before: str, choices: list[str], after: str) -> list[str]:
    rests = open_braces(after)
    opened = [inner for choice in choices for inner in open_braces(choice)]
    if len(opened) * len(rests) > MAX_WORDS:
        raise Unreadable
    return [f"{before}{inner}{rest}" for inner in opened for rest in rests]

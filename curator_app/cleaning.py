"""What a model wrote, made fit for where a person reads it. It may send anything."""

import re

from sessions_app.storable import seen, storable, without_hidden

LONGEST_TITLE = 80
LONGEST_SUMMARY = 1_000
LONGEST_ACTIVITY = 500
DEEPEST = 8  # markup within markup: what is left when the inner is gone may be some again
LONGEST_TAG = 200  # of markup: beyond it a "<" is a sign like any other

# Of markup that models write. What else stands in angles may be meant: `Vec<T>`.
_NAMES = (
    "a|b|big|blockquote|body|br|code|div|em|font|h[1-6]|head|hr|html|i|iframe|img|li|mark|ol|p|pre|s|script"
)
_MORE = "small|span|strong|style|sub|sup|svg|table|tbody|td|th|thead|title|tr|u|ul|video"
_TAG = re.compile(
    rf"</?(?:{_NAMES}|{_MORE})(?:[\s/][^<>]{{0,{LONGEST_TAG}}})?>|<!--[^<>]{{0,{LONGEST_TAG}}}-->",
    re.IGNORECASE,
)
_LINK = re.compile(r"!?\[([^\[\]]{0,200})\]\([^()\s]{0,500}\)")
_MARKS = "\"'“”\u2018\u2019«»`*_#> \t"
_SPACES = re.compile(r"[^\S\n]+")


def title(text: str) -> str:
    """One short line without markup; empty where no words are left."""
    lines = (line for line in _plain(text).splitlines())
    first = next((line for each in lines if (line := _bare(each))), "")
    return shortened(first, LONGEST_TITLE)


def activity(text: str) -> str:
    return shortened(" ".join(_plain(text).split()), LONGEST_ACTIVITY)


def summary(text: str) -> str:
    lines = (line.strip() for line in _plain(text).splitlines())
    return shortened(re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip(), LONGEST_SUMMARY)


def shortened(text: str, most: int) -> str:
    """Cut between words, where there are any."""
    if len(text) <= most:
        return text
    cut = text[: most - 1]
    head, space, _ = cut.rpartition(" ")
    kept = head if space and len(head) > most // 2 else cut
    return kept.rstrip(" ,;:.-") + "…"


def _plain(text: str) -> str:
    plain = without_hidden(_SPACES.sub(" ", storable(text[: 4 * LONGEST_SUMMARY])))
    for _ in range(DEEPEST):
        plain = _TAG.sub("", _LINK.sub(r"\1", plain))
    return seen(_SPACES.sub(" ", plain))


def _bare(line: str) -> str:
    return seen(line.strip(_MARKS).removeprefix("Title:").strip(_MARKS).rstrip("."))

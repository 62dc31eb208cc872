import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bots_app.platforms.markdown import as_discord, as_telegram
from bots_app.platforms.telegram import TelegramPlatform
from bots_app.relay.splitting import split
from tests.bots.telegram_server import _problem_in

FAMILY = "👨‍👩‍👧"
PARTS = st.sampled_from(
    [
        "some words of it. ",
        "\n\n",
        "\n",
        "\n```python\nprint('a')\nfor n in x:\n    y()\n```\n",
        "\n~~~\nraw\n~~~\n",
        "[a link](https://example.org/a?b=c) ",
        "https://example.org/long/path/of/it ",
        FAMILY,
        "🇦🇹🇩🇪",
        "é́",
        "`code` ",
        "| a | b |\n|---|---|\n",
        "x" * 50,
        "List<int> & <b> ",
    ]
)
TEXTS = st.lists(PARTS, max_size=60).map("".join)


@given(text=TEXTS, longest=st.integers(150, 400), counts=st.sampled_from([len, TelegramPlatform.length]))
@settings(max_examples=200, deadline=None)
def test_pieces_fit_are_whole_and_say_all_of_it(text: str, longest: int, counts: Any) -> None:
    pieces = split(text, longest, counts)
    assert all(counts(piece) <= longest for piece in pieces)
    assert all(_fences(piece) % 2 == 0 or _fences(text) % 2 for piece in pieces)
    for piece in pieces:
        assert piece.count("](") == len(re.findall(r"\]\(https://example\.org/a\?b=c\)", piece))
        assert not piece.startswith("\u200d")
        assert not piece.rstrip("`~\n ").endswith("\u200d")
    assert "".join(_plain("".join(pieces)).split()) == "".join(_plain(text).split())


@given(text=TEXTS, more=TEXTS)
@settings(max_examples=100, deadline=None)
def test_pieces_of_a_text_that_grows_stay_as_they_are(text: str, more: str) -> None:
    begun = split(text, 200)
    assert split(text + more, 200)[: len(begun) - 1] == begun[:-1]


@given(text=TEXTS)
@settings(max_examples=200, deadline=None)
def test_marks_are_what_telegram_reads(text: str) -> None:
    assert _problem_in(as_telegram(text)) == ""


def test_what_platforms_show() -> None:
    text = "# Plan\n\n- one\n  1. two\n\n> said\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n`x<y>` **b** List<int>"
    assert as_telegram(text) == (
        "<b>Plan</b>\n\n• one\n  1. two\n\n<blockquote>said</blockquote>\na | b\n1 | 2\n\n"
        "<code>x&lt;y&gt;</code> <b>b</b> List&lt;int&gt;"
    )
    assert "```\n| a | b |\n|---|---|\n| 1 | 2 |\n```" in as_discord(text)


def _fences(text: str) -> int:
    return len(re.findall(r"^(?:```|~~~)", text, re.MULTILINE))


def _plain(text: str) -> str:
    """Without the fences, which are closed and opened again."""
    return re.sub(r"(?:```(?:python)?|~~~)", "", text)

"""Whatever a model sends, a person reads a short plain line."""

import re
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curator_app import cleaning


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("  Quinces\n\nand more", "Quinces"),
        ('"Quinces."', "Quinces"),
        ("# **Quinces**", "Quinces"),
        ("Title: Quinces", "Quinces"),
        ("<script src='x'>alert(1)</script> Quinces<br/>", "alert(1) Quinces"),
        ("[Quinces](https://example.org/x)", "Quinces"),
        ("a < b and b > c", "a < b and b > c"),
        ("Vec<T> in Rust", "Vec<T> in Rust"),
        ("\u202eseicniuQ", "seicniuQ"),
        ("\u0000\u200b", "\ufffd"),
        ("Quin\u202ece\u200bs\x1b[31m \x9b31m\x07ripe", "Quinces[31m 31mripe"),
        ("Quinces 🍐\U000e0067\U000e006f ripe\ufe0f\ufe0f\ufe0f", "Quinces 🍐 ripe"),
        ("👩\u200d🌾 ❤\ufe0f می\u200cرود", "👩\u200d🌾 ❤\ufe0f می\u200cرود"),
        ("<scr<b>ipt>Quinces</scr</b>ipt>", "Quinces"),
        ("<b></b>", ""),
        ("", ""),
        ("x" * 10_000, "x" * 79 + "…"),
        ("word " * 2_000, ("word " * 15).strip() + "…"),
    ],
)
def test_a_title(sent: str, kept: str) -> None:
    assert cleaning.title(sent) == kept


def test_a_summary_keeps_its_lines_and_an_entry_of_the_log_is_one() -> None:
    assert cleaning.summary("One.  \n\n\n\nTwo. ") == "One.\n\nTwo."
    assert cleaning.activity("One.\n\nTwo.") == "One. Two."


@given(st.text(max_size=3_000))
def test_any_text_is_bounded_and_stands_on_its_own(text: str) -> None:
    title = cleaning.title(text)
    assert len(title) <= cleaning.LONGEST_TITLE
    assert len(title.splitlines()) <= 1
    assert title == title.strip()
    assert len(cleaning.summary(text)) <= cleaning.LONGEST_SUMMARY
    assert len(cleaning.activity(text).splitlines()) <= 1
    for kept in (title, cleaning.summary(text), cleaning.activity(text)):
        assert [each for each in kept if category(each) == "Cc" and each != "\n"] == []
        assert not re.search("[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]", kept)

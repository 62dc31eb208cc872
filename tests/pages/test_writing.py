"""A text that grows is shown whole at every step, and little of it is sent twice."""

from hypothesis import given
from hypothesis import strategies as st

from parachute_site.pages.markup import markdown
from parachute_site.pages.writing import Writing
from tests.pages.test_markup import Seen, assert_is_tame

PIECES = [
    "# A\n",
    "a **b** c",
    "\n",
    "\n\n",
    "```python\n",
    "x = 1\n",
    "```\n",
    "- one\n",
    "  two\n",
    "~~~\n",
    "| a |\n",
]


class Tab:
    """What a page does with what it is sent."""

    def __init__(self) -> None:
        self.writing = Writing()
        self.settled = self.end = ""
        self.sent = 0

    def hear(self, offset: int, text: str) -> None:
        self.writing.add(offset, text)
        grown = self.writing.grow()
        self.settled = ("" if grown.anew else self.settled) + grown.more
        self.end = grown.end
        self.sent += len(grown.more) + len(grown.end)

    @property
    def words(self) -> list[str]:
        return Seen(self.settled + self.end).text.split()


@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_at_every_step_it_shows_all_the_words_so_far(pieces: list[str]) -> None:
    tab, text = Tab(), ""
    for piece in pieces:
        tab.hear(len(text), piece)
        text += piece
        assert_is_tame(tab.settled)
        assert tab.words == Seen(markdown(text, is_whole=False)).text.split()


@given(st.text(alphabet="ab \n`>-*#", max_size=80), st.integers(1, 7))
def test_nothing_breaks_whatever_is_written(text: str, step: int) -> None:
    tab = Tab()
    for at in range(0, len(text), step):
        tab.hear(at, text[at : at + step])
        assert_is_tame(tab.settled + tab.end)


def test_who_comes_back_gets_the_text_so_far_and_nothing_stands_twice() -> None:
    tab = Tab()
    tab.hear(0, "one\n\n")
    tab.hear(5, "two\n\nthree")
    tab.hear(0, "one\n\ntwo\n\nthree four")
    assert tab.words == ["one", "two", "three", "four"]


def test_a_long_text_is_not_sent_again_with_each_word() -> None:
    tab, text = Tab(), ""
    for at in range(400):
        piece = f"word {at} " + ("\n\n" if at % 20 == 19 else "")
        tab.hear(len(text), piece)
        text += piece
    assert tab.sent < 15 * len(text)  # each time all of it would be 200 times

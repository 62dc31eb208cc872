"""What is shown of a note: what it says, without its markdown."""

import pytest

from sessions_app.search.plain import plain
from tests.effort import effort


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# Quinces They ripen ## Pears They do not", "Quinces They ripen Pears They do not"),
        ("**Quinces** ripen *late*, ***so*** late", "Quinces ripen late, so late"),
        ("_so_ and __so late__", "so and so late"),
        ("[[Garden/Quinces]] and [[Pears|the pears]], ![[a.png]]", "Garden/Quinces and the pears, a.png"),
        ('[the list](https://a.org/c_(d) "its title") of [it][1]', "the list of it"),
        ("[a note](<Garden/Old trees.md>)", "a note"),
        ("[![a tree](tree.png)](https://a.org)", "a tree"),
        ("<https://a.org/x_y_z> and [1]: https://a.org/y then", "https://a.org/x_y_z and then"),
        ("`**kwargs` and ``a`b``", "**kwargs and a`b"),
        ("**`ls` first** and [`code`](x.md)", "ls first and code"),
        ("```python x = 1 ``` then", "x = 1 then"),
        (r"a \* b, \_c\_ and [\[d\]](x)", "a * b, _c_ and [d]"),
        ("- [ ] pick - [x] press", "pick · press"),
        ("Buy: * pears * quinces", "Buy: pears · quinces"),
        ("> It was said. > And heard.", "It was said. And heard."),
        ("| a | b | |---|:-:| | 1 | 2 |", "| a | b | 1 | 2 |"),
        ("~~gone~~ --- there", "gone there"),
    ],
)
def test_marks_are_not_said(text: str, said: str) -> None:
    assert plain(text) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a **bold one that goes", "a bold one that goes"),
        ("on** and `on", "on and on"),
        ("old list](https://quinces.org/a) of them", "old list of them"),
        ("see [the list](https://quin", "see [the list"),
    ],
)
def test_a_piece_begins_and_ends_in_the_middle_of_them(text: str, said: str) -> None:
    assert plain(text) == said


@pytest.mark.parametrize(
    "text",
    [
        "snake_case_name, 2**3, a*b*c",
        "**/*.md, src/*/x",
        "#garden, C#, 5 > 3, a - b",
        "<b>x</b> [sic] (so)",
        "1. One",
    ],
)
def test_what_is_no_mark_stays(text: str) -> None:
    assert plain(text) == text


@pytest.mark.parametrize("part", ["`", "[", "[ ](", "*_", "_a ", "\\`", "](", "](a", "<a://", "| --- ", "(a"])
def test_nothing_that_somebody_writes_takes_long(part: str) -> None:
    assert effort(lambda: plain(part * (2_000 // len(part)))) < 10

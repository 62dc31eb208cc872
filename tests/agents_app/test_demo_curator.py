"""The demo in the place of the curator: titles that read well, by rule."""

import pytest

from agents_app.model.demo import curator, talk
from agents_app.model.demo.conversation import Asked
from agents_app.model.demo.wire import Reply, ToolUse
from curator_app.gate import TOOLS
from curator_app.prompt import Exchange

ALL = frozenset(f"{curator.SERVER}{name}" for name in TOOLS)


def uses(
    said: str, *, number: int = 1, tools: frozenset[str] = ALL, is_summary_set: bool = False
) -> dict[str, str]:
    """Of each tool that it uses, what it says there."""
    exchange = Exchange(number, "Before", False, is_summary_set, said, (), "It is done.")
    reply = talk.answer(Asked(text=exchange.as_prompt(), results=(), tools=tools, system="", body={}))
    assert isinstance(reply, Reply)
    used = [block for block in reply.blocks if isinstance(block, ToolUse)]
    return {use.name.removeprefix(curator.SERVER): next(iter(use.input.values())) for use in used}


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("Read Welcome.md and tell me what it says", "Reading Welcome.md"),
        ("Read me one of my notes.", "Reading one of my notes"),
        ("Please read `Welcome.md`. Then sum it up.", "Reading Welcome.md"),
        ("Hello! Could you list my notes, please?", "Listing my notes"),
        ("Search my notes for quince", "Searching my notes for quince"),
        ("Add a line to the note about pears.", "Adding a line to the note about pears"),
        ("Run `date && ls`.", "Running date && ls"),
        ("Start a helper.", "Starting a helper"),
        ("Write a note about pears.", "Note about pears"),
        ("Write a note about pears and read it to me", "Note about pears"),
        ("Show me an error", "Error"),
        ("Give me a long answer.", "Long answer"),
        ("Remember that I read and write at night", "I read and write at night"),
        ("Tell me about quinces", "About quinces"),
        ("Think first: what could I write about next?", "What could I write about next"),
        ("When do quinces ripen?", "When do quinces ripen"),
        ("Make sure that the gate is shut", "Make sure that the gate is shut"),
        ("List of plants for spring", "List of plants for spring"),
        ("Hello", "Hello"),
    ],
)
def test_a_title_is_what_is_asked_for(said: str, title: str) -> None:
    assert uses(said)["update_title"] == title


def test_a_long_one_ends_with_a_word() -> None:
    title = uses(f"Read {'all that is said of quinces ' * 9}")["update_title"]
    assert title.endswith(("all…", "that…", "is…", "said…", "of…", "quinces…"))
    assert len(title) <= curator.LONGEST
    assert uses("x" * 300)["update_title"] == "X" + "x" * (curator.LONGEST - 2) + "…"


def test_it_names_a_chat_once_and_uses_what_it_is_offered() -> None:
    assert list(uses("Read a.md", number=3)) == ["update_summary", "log_activity"]
    one = frozenset({f"{curator.SERVER}log_activity"})
    assert list(uses("Read a.md", tools=one, is_summary_set=True)) == ["log_activity"]

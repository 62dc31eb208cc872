"""Whatever a model sends gets an answer, and what cannot be read is denied."""

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from permissions_app.rules.decision import Decision, Verdict
from permissions_app.rules.ladder import ToolCall, decide
from permissions_app.rules.tools import _KIND_OF
from tests.permissions_app.room import Room

NOT_UNDERSTOOD = ("deny", "not_understood")

TEXTS = st.text(st.characters(exclude_categories=())) | st.sampled_from(
    [
        "",
        ".",
        "..",
        "/",
        "~",
        ".env",
        "{",
        "a/../..",
        "/proc/self",
        "http://[",
        "$(",
        "'",
        "\ud800",
        "\0",
        "**/..",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
KEYS = ["file_path", "notebook_path", "path", "paths", "pattern", "glob", "command", "url", "isolation"]
INPUTS = st.dictionaries(st.sampled_from(KEYS), TEXTS | JSON) | st.dictionaries(TEXTS, JSON) | JSON
NAMES = st.sampled_from([*_KIND_OF, "mcp__parachute__share", "mcp__"]) | TEXTS | JSON

ROOMS: list[Callable[[Room], Room]] = [
    lambda room: room,
    lambda room: room.without_wall,
    lambda room: room.sandboxed.with_(scratch=None, own_config=None),
    lambda room: room.at_full,
    lambda room: room.at_full.with_(operator=False),
]


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=NAMES, arguments=INPUTS, as_in=st.sampled_from(ROOMS))
def test_every_call_gets_a_decision(
    room: Room, name: Any, arguments: Any, as_in: Callable[[Room], Room]
) -> None:
    decision = decide(ToolCall("toolu_1", name, arguments), as_in(room).setting)
    assert isinstance(decision, Decision)
    assert isinstance(decision.verdict, Verdict)
    assert decision.rule
    assert decision.reason.encode()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.sampled_from("./~ae\\ \t\uff0e\ud800\0"), max_size=24))
def test_no_spelling_of_a_path_leaves_the_vault(room: Room, text: str) -> None:
    """What is allowed lies in the vault as Python follows it, with blanks at its ends and without."""
    if room.read(text) == ("allow", "reading"):
        for spelling in (text, text.strip()):
            assert (room.vault / spelling).resolve().is_relative_to(room.vault.resolve())


@pytest.mark.parametrize("arguments", [None, 7, "file_path", [], ["file_path"]])
def test_an_input_that_is_no_object_is_denied(room: Room, arguments: Any) -> None:
    assert decide(ToolCall("toolu_1", "TodoWrite", arguments), room.setting).rule == "not_understood"


@pytest.mark.parametrize(
    "name", [None, 7, [], {}, "", "Re ad", "Read\n", "R\u0435ad", "Read\ud800", "x" * 300]
)
def test_a_name_that_no_tool_can_have_is_denied(room: Room, name: Any) -> None:
    assert decide(ToolCall("toolu_1", name, {"file_path": "a.md"}), room.setting).rule == "not_understood"


@pytest.mark.parametrize(
    "path",
    [
        None,
        7,
        "",
        ["a.md"],
        {"path": "a.md"},
        "a\0.md",
        "a\ud800.md",
        "a" * 1_000_000,
        "a" * 300,
        "a/" * 4000,
        " /etc/hostname",
        "/etc/hostname\t",
        "\ufeff/etc/hostname",
        "\u00a0a.md",
        "~",
        "~/x",
        "~root/x",
        "file:///etc/hostname",
        "FILE:a.md",
    ],
)
def test_a_path_that_cannot_be_read_with_certainty_is_denied(room: Room, path: Any) -> None:
    for tool in ("Read", "Write"):
        assert room.at_full.rule(tool, file_path=path) == NOT_UNDERSTOOD
    assert room.rule("NotebookEdit", notebook_path=path) == NOT_UNDERSTOOD


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Read", {}),
        ("Read", {"path": "a.md"}),
        ("Glob", {}),
        ("Glob", {"pattern": 7}),
        ("Glob", {"pattern": "*", "path": 7}),
        ("Glob", {"pattern": "*/../x"}),
        ("Glob", {"pattern": "~/*"}),
        ("Glob", {"pattern": "*" * 5000}),
        ("Grep", {"pattern": "x", "path": "~"}),
        ("Grep", {"pattern": "x", "path": " /etc"}),
        ("Grep", {"pattern": "x", "glob": ["*.md"]}),
        ("LS", {"path": False}),
        ("Bash", {}),
        ("Bash", {"command": ["ls"]}),
        ("Bash", {"command": "ls\0"}),
        ("Bash", {"command": "ls \ud800"}),
        ("WebFetch", {"prompt": "x"}),
        ("SomethingNew", {"paths": ["a.md"] * 200}),
    ],
)
def test_arguments_that_are_missing_or_odd_are_denied(
    room: Room, tool: str, arguments: dict[str, Any]
) -> None:
    assert room.rule(tool, **arguments) == NOT_UNDERSTOOD


def test_a_deeply_nested_input_is_read_to_its_end(room: Room) -> None:
    nested: Any = {"path": ".env"}
    for _ in range(50_000):
        nested = [nested]
    assert room.rule("SomethingNew", deep=nested) == ("deny", "deny_list")


@pytest.mark.parametrize(
    "tool", ["Write", "Bash", "Glob", "WebFetch", "SomethingNew", "mcp__parachute__share"]
)
def test_a_megabyte_in_every_argument_gets_a_decision_soon(room: Room, tool: str) -> None:
    start = time.perf_counter()
    for text in ("a" * 1_000_000, "(" * 1_000_000, "\u00e9/" * 500_000):
        room.at_full.rule(tool, **dict.fromkeys(KEYS, text), content=text, title=text)
    assert time.perf_counter() - start < 2


def test_a_reason_repeats_nothing_that_a_model_sent(room: Room) -> None:
    sent = json.dumps(
        [
            room.decide(tool, file_path="quince\0", command="quince\0").reason
            for tool in ("Read", "Bash", "Write")
        ]
    )
    assert "quince" not in sent


def test_an_ordinary_read_is_decided_in_under_a_millisecond(room: Room) -> None:
    call = ToolCall("toolu_1", "Read", {"file_path": str(room.vault / "notes" / "quinces.md")})
    took = []
    for _ in range(300):
        start = time.perf_counter()
        decide(call, room.setting)
        took.append(time.perf_counter() - start)
    assert statistics.median(took) < 0.001

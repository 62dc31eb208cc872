"""The demo as one that starts others, is started, and is woken: without a key, through the whole engine."""

import json
from typing import Any

import pytest

from agents_app.model.demo import helpers, talk
from agents_app.model.demo.conversation import Asked, ToolResult
from agents_app.model.demo.wire import Reply, Text, ToolUse
from agents_app.orchestration.waking import as_words

OFFERED = frozenset(
    {helpers.LIST, helpers.SPAWN, helpers.TELL, helpers.INJECT, helpers.SHARE, helpers.STATUS}
)


def answer(text: str, *results: tuple[str, Any], tools: frozenset[str] = OFFERED) -> tuple[str, Any]:
    """The tool that it uses and with what, or what it says."""
    told = tuple(ToolResult(str(n), json.dumps(said), False, name) for n, (name, said) in enumerate(results))
    reply = talk.answer(Asked(text=text, results=told, tools=tools, system="", body={}))
    assert isinstance(reply, Reply)
    last = reply.blocks[-1]
    if isinstance(last, ToolUse):
        return last.name.rpartition("__")[2], dict(last.input)
    assert isinstance(last, Text)
    return "says", last.text


def wake(**more: Any) -> str:
    return as_words([{"driverless": True, "from_session_id": "s", "from_agent_slug": "reader", **more}])


def test_it_looks_whom_it_may_start_starts_the_first_and_ends_its_turn() -> None:
    listed = (helpers.LIST, [{"id": "reader", "slug": "reader", "name": "Reader"}])
    assert answer("Start a helper.")[0] == "list_spawnable_agents"
    name, given = answer("Start a helper.", listed)
    assert (name, given["child_agent_id"]) == ("spawn_session", "reader")
    said = answer("Start a helper.", listed, (helpers.SPAWN, {"session_id": "x", "status": "pending"}))
    assert said[0] == "says" and "wakes me" in said[1]


@pytest.mark.parametrize("results", [(), ((helpers.LIST, []),)])
def test_who_may_start_nobody_says_how_that_is_changed(results: tuple[Any, ...]) -> None:
    said = answer("Start a helper.", *results, tools=OFFERED if results else frozenset())
    assert said[0] == "says" and "Accept" in said[1] and "Can spawn" in said[1]


def test_a_child_tells_its_caller() -> None:
    name, given = answer(helpers.TASK)
    assert (name, given) == ("message_caller", {"summary": "There are 0 notes here."})
    assert answer(helpers.TASK, (helpers.TELL, {"status": "sent"}))[0] == "says"


@pytest.mark.parametrize(
    ("woken", "does"),
    [
        (wake(kind="heartbeat", text="x"), "agent_status"),
        (wake(kind="state_change", new_status="complete"), "share"),
        (wake(kind="message", body="x", needs_response=True, options=["Yes"]), "inject_message"),
        (wake(kind="message", body="x", needs_response=False), "says"),
        ("Parachute wakes you. Oddly.", "says"),
    ],
)
def test_what_wakes_it_is_answered(woken: str, does: str) -> None:
    assert answer(woken)[0] == does

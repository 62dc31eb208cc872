"""The demo as one that starts others, as one that was started, and as one that is woken."""

import json
from typing import Any

from agents_app.model.demo import words
from agents_app.model.demo.conversation import Asked, ToolResult
from agents_app.model.demo.replies import last, say, use
from agents_app.model.demo.wire import Reply

WAKES = "Parachute wakes you"
_OURS, _HOUSE = "mcp__orchestration__", "mcp__parachute__"
LIST, SPAWN, TELL = f"{_OURS}list_spawnable_agents", f"{_OURS}spawn_session", f"{_OURS}message_caller"
INJECT, SHARE, STATUS = f"{_OURS}inject_message", f"{_HOUSE}share", f"{_HOUSE}agent_status"
TASK = "Report to your caller: which notes are there?"


def start(asked: Asked) -> Reply:
    if SPAWN not in asked.tools:
        return say(asked, words.NO_HELPERS)
    if started := last(asked, SPAWN):
        return say(asked, f"It was refused: {_why(started)}" if started.is_error else words.STARTED)
    listed = last(asked, LIST)
    if listed is None:
        return use(asked, LIST, {}, "They want somebody else to look. Whom may I start?")
    agents = _read(listed)
    if not agents:
        return say(asked, words.NO_HELPERS)
    given = {"child_agent_id": agents[0]["id"], "prompt": TASK}
    return use(
        asked, SPAWN, given, f"I start {agents[0]['name']}, and end my turn: I am woken when it is done."
    )


def report_to_caller(asked: Asked) -> Reply:
    """Of a child: it looks, tells whoever started it, and is through."""
    if last(asked, TELL) is not None:
        return say(asked, "I have told my caller what I found, and am through.")
    looked = last(asked, "Glob")
    if looked is None and "Glob" in asked.tools:
        return use(asked, "Glob", {"pattern": "**/*.md"}, "My caller wants to know which notes there are.")
    count = len(looked.text.splitlines()) if looked else 0
    return use(asked, TELL, {"summary": f"There are {count} notes here."}, "I tell whoever started me.")


def share(asked: Asked) -> Reply:
    if SHARE not in asked.tools:
        return say(asked, words.NO_SHARES)
    if last(asked, SHARE) is not None:
        return say(asked, words.SHARED)
    given = {"title": "Report: what a demo found", "body": words.REPORT}
    return use(asked, SHARE, given, "A report is for whoever comes by later, so I share it.")


def beat(asked: Asked) -> Reply:
    if STATUS in asked.tools and last(asked, STATUS) is None:
        given = {"status": "quiescent", "message": "Nothing to do until I am woken."}
        return use(asked, STATUS, given, "A heartbeat: I look whether there is something to do.")
    return say(asked, words.HEARTBEAT)


def woken(asked: Asked) -> Reply:
    """By the newest of what it is told."""
    try:
        newest = json.loads(asked.text.partition("\n\n")[2])[-1]
    except (ValueError, IndexError):
        return say(asked, words.WOKEN)
    match newest.get("kind"):
        case "heartbeat":
            return beat(asked)
        case "message" if newest.get("needs_response"):
            return _answer(asked, newest)
        case "state_change":
            return _tell_of(asked, newest)
    return say(asked, words.WOKEN)


def _answer(asked: Asked, wake: dict[str, Any]) -> Reply:
    if INJECT not in asked.tools or last(asked, INJECT) is not None:
        return say(asked, words.WOKEN)
    given = {"child_session_id": wake["from_session_id"], "text": (wake.get("options") or ["Go on."])[0]}
    return use(asked, INJECT, given, "It asks me something, so I answer.")


def _tell_of(asked: Asked, wake: dict[str, Any]) -> Reply:
    if SHARE not in asked.tools or last(asked, SHARE) is not None:
        return say(asked, words.WOKEN)
    how = "is through with its work" if wake["new_status"] == "complete" else "has failed"
    title = f"Report: {wake['from_agent_slug']} {how}"
    body = wake.get("error_message") or "Its chat has what it found."
    return use(
        asked, SHARE, {"title": title, "body": body}, "One of mine has ended. I leave a note for people."
    )


def _read(result: ToolResult) -> list[dict[str, str]]:
    try:
        found = json.loads(result.text)
    except ValueError:
        return []
    return found if isinstance(found, list) else []


def _why(result: ToolResult) -> str:
    try:
        return str(json.loads(result.text)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return result.text[:200]

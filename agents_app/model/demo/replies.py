"""What all answers of the demo model have in common: how it says something, and how it uses a tool."""

import posixpath
import re
from collections.abc import Mapping

from agents_app.model.demo import findings, words
from agents_app.model.demo.conversation import Asked, Said, ToolResult
from agents_app.model.demo.wire import Reply, Text, Thinking, ToolUse
from agents_app.model.demo.wire import say as plainly

PACE = 0.004
SLOW = 0.02  # for what is there to be watched

_STARTS = {
    "Read": "I will read that for you.",
    "Glob": "Let me look.",
    "Grep": "Let me search.",
    "Write": "I will write it down.",
    "Edit": "I will add a line.",
    "Bash": "Let me run that.",
    "mcp__orchestration__list_spawnable_agents": "Let me see whom I may start.",
    "mcp__orchestration__spawn_session": "I will start one.",
    "mcp__orchestration__message_caller": "I will tell whoever started me.",
    "mcp__orchestration__inject_message": "I will answer.",
    "mcp__parachute__share": "I will leave a note for people.",
}


def say(asked: Asked, text: str, *, thought: str = "", pause: float = PACE) -> Reply:
    meanwhile = "".join(map(_noticed, asked.meanwhile))
    spoken = plainly(f"{text}{meanwhile}\n\n{words.SIGNED}", pause=pause)
    return Reply((Thinking(thought), *spoken.blocks), pause=pause) if thought else spoken


def use(asked: Asked, tool: str, given: Mapping[str, object], thought: str) -> Reply:
    if tool not in asked.tools:
        return say(asked, f"For that I would need the tool {tool}, and it is not offered in this session.")
    return Reply(
        (Thinking(thought), Text(_STARTS.get(tool, "One moment.")), ToolUse(tool, given)), pause=PACE
    )


def use_and_tell(asked: Asked, tool: str, given: Mapping[str, object], thought: str) -> Reply:
    """Calls the tool, or tells what it has answered."""
    if answered := last(asked, tool):
        return say(asked, findings.tell(answered, asked))
    return use(asked, tool, given, thought)


def last(asked: Asked, tool: str) -> ToolResult | None:
    """What the tool answered last in this turn."""
    return next((result for result in reversed(asked.results) if result.name == tool), None)


def absolute(path: str, asked: Asked) -> str:
    """The tools want whole paths; where nothing says where we are, the CLI makes sense of the short one."""
    return posixpath.join(asked.directory, path)


def line(text: str) -> str:
    first = text.strip().partition("\n")[0]
    return first if len(first) <= 80 else f"{first[:79]}…"


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def slug(title: str) -> str:
    return re.sub(r"\W+", "-", title.lower()).strip("-")[:40].strip("-") or "note"


def _noticed(said: Said) -> str:
    heard = f"I heard “{line(said.text)}” while I worked"
    return f"\n\n{heard}; a demo does one thing at a time, so ask me again."

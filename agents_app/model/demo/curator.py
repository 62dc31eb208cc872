"""The demo as the curator: it names and sums up by rule what it is shown, so titles come without a key."""

import re

from agents_app.model.demo.conversation import Asked
from agents_app.model.demo.wire import Reply, ToolUse
from agents_app.model.demo.wire import say as plainly

SERVER = "mcp__curator__"
LONGEST = 60
DONE = "done"

_SHOWN = re.compile(
    r"Current title: (?P<title>.*) \([^()]*\)\n.*?Exchange number: (?P<number>\d+)\n"
    r"Tools used: (?P<tools>.*?)\n"
    r".*?<person>\n(?P<said>.*?)\n</person>.*?<assistant>\n(?P<answer>.*?)\n</assistant>",
    re.DOTALL,
)
_WISH = re.compile(
    r"(?:please|can you|could you|would you|read|show|give|write|make|add|run|execute|search for|find|open|"
    r"list|tell|remember that|remember|think first|me|one of|a|an|the|my|to)\b[\s,:]*",
    re.IGNORECASE,
)


def is_it(asked: Asked) -> bool:
    return any(tool.startswith(SERVER) for tool in asked.tools)


def answer(asked: Asked) -> Reply:
    shown = _SHOWN.search(asked.text)
    if shown is None or asked.rounds:
        return plainly(DONE)
    title = _title(shown["said"])
    used = "" if shown["tools"] == "none" else f", which used {shown['tools']}"
    wanted = {
        "update_title": {"title": title} if title and shown["number"] == "1" else {},
        "update_summary": {
            "summary": f"A conversation with the demo model. Last asked: {_line(shown['said'])}"
        },
        "log_activity": {"summary": f"Somebody said “{_line(shown['said'])}” to the demo model{used}."},
    }
    offered = [(f"{SERVER}{name}", given) for name, given in wanted.items() if given]
    return Reply(tuple(ToolUse(name, given) for name, given in offered if name in asked.tools))


def _title(said: str) -> str:
    """What is asked for, without the words that ask."""
    wish = _line(said)
    while (rest := _WISH.match(wish)) and rest.end() < len(wish):
        wish = wish[rest.end() :]
    wish = wish.rstrip(" .?!`\"'").lstrip(" `\"'")
    return (wish[:1].upper() + wish[1:])[:LONGEST]


def _line(text: str) -> str:
    return text.strip().partition("\n")[0][:200]

"""The demo as the curator: it names and sums up by rule what it is shown, so titles come without a key."""

import re

from agents_app.model.demo.conversation import Asked
from agents_app.model.demo.replies import capital
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
_POLITELY = re.compile(r"^(?:(?:hello|hi|hey|please|can you|could you|would you)\b[\s,!.]*)+", re.IGNORECASE)
_FIRST = re.compile(r"(?<=[.!?])\s+(?=[A-Z])|[\s,]+please\b")
_DOING = {
    "add": "adding",
    "execute": "executing",
    "find": "finding",
    "list": "listing",
    "look": "looking",
    "open": "opening",
    "read": "reading",
    "run": "running",
    "search": "searching",
    "share": "sharing",
    "start": "starting",
}
_AND_MORE = rf"(?:[,;]? (?:and|then)(?: then)? (?:{'|'.join(_DOING)}|give|make|say|show|tell|write)\b.*)?"
_TITLES = [  # the first that fits a wish names it
    rf"(?P<doing>{'|'.join(_DOING)})(?! of\b)(?: me)? (?P<thing>.+?){_AND_MORE}",
    r"(?:remember|(?:make|take) a note)(?: that|:)? (?P<thing>.+)",
    r"think first: (?P<thing>.+)",
    rf"(?:give|make|show|write)(?: me)? (?:an?|the|my) (?P<thing>.+?){_AND_MORE}",
    rf"(?:show|tell)(?: me)? (?P<thing>(?:about|how|what|when|where|which|who|why)\b.+?){_AND_MORE}",
    r"(?P<thing>.+)",
]


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
    """What is asked for first, as a thing or a doing, and not as a wish."""
    line = _line(said).replace("`", "")
    wish = _FIRST.split(_POLITELY.sub("", line, count=1) or line)[0].rstrip(" .?!\"'")
    found = next(filter(None, (re.fullmatch(each, wish, re.IGNORECASE) for each in _TITLES)), None)
    if found is None:
        return ""
    parts = found.groupdict()
    doing = _DOING.get(parts.get("doing", "").lower(), "")
    return _short(capital(f"{doing} {parts['thing']}".strip()))


def _short(title: str) -> str:
    if len(title) <= LONGEST:
        return title
    cut = title[: LONGEST - 1]
    return (cut.rpartition(" ")[0] or cut).rstrip(" ,;:.-") + "…"


def _line(text: str) -> str:
    return text.strip().partition("\n")[0][:200]

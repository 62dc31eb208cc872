"""The demo brain: plain words in, a tool call or a friendly answer out.

It remembers nothing between two requests. Each answer follows from the request alone, so it does not
matter which of the server, the CLI and the worker was started again in between.
"""

import itertools
import posixpath
import re
from collections.abc import Callable, Mapping

from . import findings, words
from .conversation import Asked, Said
from .wire import Failure, Reply, Text, Thinking, ToolUse, say

PACE = 0.004
LONG_PACE = 0.02

Found = re.Match[str]


def answer(asked: Asked) -> Reply | Failure:
    wish = _wish(asked.text)
    for pattern, reply in _PHRASES:
        if found := re.match(pattern, wish, re.IGNORECASE):
            return reply(found, asked)
    return _say(asked, words.LOST)


def _wish(text: str) -> str:
    """The words that ask for something: without the context before them and the politeness around them."""
    request = text.rpartition("## Request\n")[2].strip()
    request = re.sub(r"^(?:(?:please|can you|could you|would you)[\s,]+)+", "", request, flags=re.IGNORECASE)
    return re.sub(r"[\s,]+please\b[.!?]*$", "", request, flags=re.IGNORECASE)


# One function a phrase


def _greet(found: Found, asked: Asked) -> Reply:
    return _say(asked, words.GREETING)


def _thank(found: Found, asked: Asked) -> Reply:
    return _say(asked, words.THANKS)


def _interrupted(found: Found, asked: Asked) -> Reply:
    again = f": “{_line(asked.earlier)}”." if asked.earlier else "."
    return _say(asked, words.INTERRUPTED + again)


def _at_length(found: Found, asked: Asked) -> Reply:
    return Reply((Text(f"{words.LONG}\n\n{words.SIGNED}"),), pause=LONG_PACE)


def _fail(found: Found, asked: Asked) -> Failure:
    return Failure(400, "invalid_request_error", "The demo model was asked to show an error. This is one.")


def _list(found: Found, asked: Asked) -> Reply:
    thought = "They want to know what is here. Every note is a markdown file, so I look for those."
    return _use(asked, "Glob", {"pattern": "**/*.md"}, thought)


def _look_into(found: Found, asked: Asked) -> Reply:
    folder = found["folder"].rstrip("/…. ")
    return _use(asked, "Glob", {"pattern": f"{folder}/**/*"}, f"They want to know what is in {folder}.")


def _read(found: Found, asked: Asked) -> Reply:
    name = _unquoted(found["name"])
    path = name if re.search(r"\.\w+$", name) else f"{name}.md"
    thought = f"They ask for {path}. I open it and tell them what it says."
    return _use(asked, "Read", {"file_path": _absolute(path, asked)}, thought)


def _search(found: Found, asked: Asked) -> Reply:
    sought = re.sub(r" in (?:my|the) (?:notes|vault)$", "", _unquoted(found["sought"]))
    pattern = re.escape(sought).replace(r"\ ", " ")
    thought = f"Somewhere in the notes there may be “{sought}”. I search them all."
    return _use(asked, "Grep", {"pattern": pattern, "output_mode": "content", "-i": True}, thought)


def _run(found: Found, asked: Asked) -> Reply:
    command = (found["quoted"] or found["command"]).strip()
    thought = f"They want me to run `{command}`. Whether I may is not for me to say."
    return _use(asked, "Bash", {"command": command}, thought)


def _write_about(found: Found, asked: Asked) -> Reply:
    topic = _unquoted(found["topic"])
    body = f"A note about {topic}, begun by the demo model.\n\n- What I know:\n- What I want to find out:\n"
    return _write(asked, topic, body)


def _remember(found: Found, asked: Asked) -> Reply:
    fact = found["fact"].strip()
    return _write(asked, fact, f"{_capital(fact).rstrip('.')}.\n\nWritten down by the demo model.\n")


# The first pattern that fits the start of a wish decides.
_PHRASES: list[tuple[str, Callable[[Found, Asked], Reply | Failure]]] = [
    (r"show me an error\W*$", _fail),
    (r"(?:give me |write |tell me )?a (?:very )?long (?:answer|story)\b", _at_length),
    (
        r"(?:write|make|create)(?: me)?(?: an?)?(?: new| short)? note (?:about|on|called) (?P<topic>.+)",
        _write_about,
    ),
    (r"(?:remember|(?:make|take) a note)(?: that|:)? (?P<fact>.+)", _remember),
    (r"(?:run|execute)(?: the command)?:? (?:`(?P<quoted>[^`]+)`|(?P<command>.+))", _run),
    (r"(?:search|look)(?:(?: in| through)? (?:my|the) (?:notes|vault))? for (?P<sought>.+)", _search),
    (r"find (?P<sought>.+)", _search),
    (r"(?:list|show)(?: me)?(?: all)?(?: of)?(?: my| the)? (?:notes|files)\b", _list),
    (r"what(?:'s| is) in (?:my|the|this) (?:vault|folder)\b|(?:what|which) (?:notes|files)\b", _list),
    (r"(?:what(?:'s| is) in|list) (?P<folder>[^\s.?]+/|[^\s.?/]+)\W*$", _look_into),
    (r"read(?: me)?(?: the)?(?: note| file)? (?P<name>.{1,80})$", _read),
    (r"(?:open|show(?: me)?|what(?:'s| is| does)(?: in)?) (?P<name>\S*\.\w+)", _read),
    (r"(?:hello|hi|hey|good (?:morning|day|afternoon|evening)|help|test)\b", _greet),
    (r"(?:who|what) are you|are you claude|what can you do|what is this", _greet),
    (r"(?:thanks|thank you)\b", _thank),
    (r".*\binterrupted\b", _interrupted),
]


# What they have in common


def _say(asked: Asked, text: str) -> Reply:
    meanwhile = "".join(map(_noticed, asked.meanwhile))
    return say(f"{text}{meanwhile}\n\n{words.SIGNED}", pause=PACE)


def _noticed(said: Said) -> str:
    return (
        f"\n\nI heard “{_line(said.text)}” while I worked; a demo does one thing at a time, so ask me again."
    )


def _use(asked: Asked, tool: str, given: Mapping[str, object], thought: str) -> Reply:
    """Calls the tool, or tells what it has answered."""
    answered = [result for result in asked.results if result.name == tool]
    if answered:
        return _say(asked, findings.tell(answered[-1], asked))
    if tool not in asked.tools:
        return _say(asked, f"For that I would need the tool {tool}, and it is not offered in this session.")
    return Reply((Thinking(thought), Text(_STARTS[tool]), ToolUse(tool, given)), pause=PACE)


_STARTS = {
    "Read": "I will read that for you.",
    "Glob": "Let me look.",
    "Grep": "Let me search.",
    "Write": "I will write it down.",
    "Bash": "Let me run that.",
}


def _write(asked: Asked, title: str, body: str) -> Reply:
    """Writes under a name that is free: the Write tool would replace a note without a word."""
    slug = re.sub(r"\W+", "-", title.lower()).strip("-")[:40].strip("-") or "note"
    if not asked.results and "Glob" in asked.tools:
        return _use(
            asked, "Glob", {"pattern": f"Notes/{slug}*.md"}, "A new note. First I look which names are taken."
        )
    taken = {posixpath.basename(path) for result in asked.results for path in result.text.splitlines()}
    path = _absolute(f"Notes/{_free(slug, taken)}", asked)
    given = {"file_path": path, "content": f"# {_capital(_line(title))}\n\n{body}"}
    return _use(
        asked, "Write", given, "That name is free. I keep the note short, so that there is something to add."
    )


def _free(slug: str, taken: set[str]) -> str:
    names = itertools.chain([f"{slug}.md"], (f"{slug}-{number}.md" for number in itertools.count(2)))
    return next(name for name in names if name not in taken)


def _absolute(path: str, asked: Asked) -> str:
    """The tools want whole paths; where nothing says where we are, the CLI makes sense of the short one."""
    return posixpath.join(asked.directory, path)


def _unquoted(text: str) -> str:
    return text.strip().rstrip("?!").strip("`\"'“” ").removesuffix(".")


def _line(text: str) -> str:
    first = text.strip().partition("\n")[0]
    return first if len(first) <= 80 else f"{first[:79]}…"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

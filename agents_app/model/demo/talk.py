"""The demo brain: plain words in, a tool call or a friendly answer out.

It remembers nothing between two requests. Each answer follows from the request alone, so it does not
matter which of the server, the CLI and the worker was started again in between.
"""

import re
from collections.abc import Callable

from agents_app.model.demo import curator, helpers, notes, words
from agents_app.model.demo.conversation import Asked
from agents_app.model.demo.replies import SLOW, absolute, capital, line, say, use_and_tell
from agents_app.model.demo.wire import Failure, Reply

Found = re.Match[str]

# The CLI would try again by itself for two minutes, and a person is to see it.
FAILS = Failure(529, "overloaded_error", words.OVERLOADED, {"x-should-retry": "false"})


def answer(asked: Asked) -> Reply | Failure:
    if curator.is_it(asked):
        return curator.answer(asked)
    wish = _wish(asked.text)
    for pattern, reply in _PHRASES:
        if found := re.match(pattern, wish, re.IGNORECASE):
            return reply(found, asked)
    return say(asked, words.LOST)


def _wish(text: str) -> str:
    """The words that ask for something: without the context before them and the politeness around them."""
    request = text.rpartition("## Request\n")[2].strip()
    request = re.sub(r"^(?:(?:please|can you|could you|would you)[\s,]+)+", "", request, flags=re.IGNORECASE)
    return re.sub(r"[\s,]+please\b[.!?]*$", "", request, flags=re.IGNORECASE)


# One function a phrase


def _greet(found: Found, asked: Asked) -> Reply:
    return say(asked, words.GREETING)


def _thank(found: Found, asked: Asked) -> Reply:
    return say(asked, words.THANKS)


def _interrupted(found: Found, asked: Asked) -> Reply:
    again = f": “{line(asked.earlier)}”." if asked.earlier else "."
    return say(asked, words.INTERRUPTED + again)


def _at_length(found: Found, asked: Asked) -> Reply:
    return say(asked, words.LONG, pause=SLOW)


def _think(found: Found, asked: Asked) -> Reply:
    return say(asked, words.AFTER_THOUGHT, thought=words.THOUGHT, pause=SLOW)


def _fail(found: Found, asked: Asked) -> Reply | Failure:
    """Once. Whoever sends it again is answered, as after most errors of this kind."""
    return FAILS if asked.times % 2 else say(asked, words.RECOVERED)


def _list(found: Found, asked: Asked) -> Reply:
    thought = "They want to know what is here. Every note is a markdown file, so I look for those."
    return use_and_tell(asked, "Glob", {"pattern": "**/*.md"}, thought)


def _look_into(found: Found, asked: Asked) -> Reply:
    folder = found["folder"].rstrip("/…. ")
    thought = f"They want to know what is in {folder}."
    return use_and_tell(asked, "Glob", {"pattern": f"{folder}/**/*"}, thought)


def _read(found: Found, asked: Asked) -> Reply:
    name = _unquoted(found["name"])
    path = name if re.search(r"\.\w+$", name) else f"{name}.md"
    thought = f"They ask for {path}. I open it and tell them what it says."
    return use_and_tell(asked, "Read", {"file_path": absolute(path, asked)}, thought)


def _search(found: Found, asked: Asked) -> Reply:
    sought = re.sub(r" in (?:my|the) (?:notes|vault)$", "", _unquoted(found["sought"]))
    pattern = re.escape(sought).replace(r"\ ", " ")
    thought = f"Somewhere in the notes there may be “{sought}”. I search them all."
    return use_and_tell(asked, "Grep", {"pattern": pattern, "output_mode": "content", "-i": True}, thought)


def _run(found: Found, asked: Asked) -> Reply:
    command = (found["quoted"] or found["command"]).strip()
    thought = f"They want me to run `{command}`. Whether I may is not for me to say."
    return use_and_tell(asked, "Bash", {"command": command}, thought)


def _read_one(found: Found, asked: Asked) -> Reply:
    return notes.read_one(asked)


def _write_about(found: Found, asked: Asked) -> Reply:
    topic = _unquoted(found["topic"])
    return notes.write(asked, topic, notes.about(topic))


def _add_to(found: Found, asked: Asked) -> Reply:
    return notes.add_line(asked, _unquoted(found["topic"]))


def _remember(found: Found, asked: Asked) -> Reply:
    fact = found["fact"].strip()
    return notes.write(asked, fact, f"{capital(fact).rstrip('.')}.\n\nWritten down by {notes.OURS}.\n")


def _start_helper(found: Found, asked: Asked) -> Reply:
    return helpers.start(asked)


def _report_to_caller(found: Found, asked: Asked) -> Reply:
    return helpers.report_to_caller(asked)


def _share(found: Found, asked: Asked) -> Reply:
    return helpers.share(asked)


def _beat(found: Found, asked: Asked) -> Reply:
    return helpers.beat(asked)


def _woken(found: Found, asked: Asked) -> Reply:
    return helpers.woken(asked)


# The first pattern that fits the start of a wish decides.
_PHRASES: list[tuple[str, Callable[[Found, Asked], Reply | Failure]]] = [
    (rf"{helpers.WAKES}\b", _woken),
    (r"start (?:an?|the)(?: other)? (?:helper|agent|child|worker)\b", _start_helper),
    (r"report to your caller\b", _report_to_caller),
    (r"share (?:me )?(?:a|the|your) report\b", _share),
    (r"(?:show me |this is )?(?:a|your) heartbeat\b|look after (?:the|my) notes\b", _beat),
    (r"show me an error\W*$", _fail),
    (r"think (?:first|about|before|it over|hard)\b", _think),
    (r"add a line to (?:the|my) note (?:about|on|called) (?P<topic>.+)", _add_to),
    (r"read(?: me)? (?:one of )?(?:my|the) notes\W*$|read(?: me)? a note\W*$", _read_one),
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
    (r"about (?P<name>[^:]{1,80}\.\w+):", _read),  # as "Chat about this" begins
    (r"(?:open|show(?: me)?|what(?:'s| is| does)(?: in)?) (?P<name>\S*\.\w+)", _read),
    (r"(?:hello|hi|hey|good (?:morning|day|afternoon|evening)|help|test)\b", _greet),
    (r"(?:who|what) are you|are you claude|what can you do|what is this", _greet),
    (r"(?:thanks|thank you)\b", _thank),
    (r".*\binterrupted\b", _interrupted),
]


def _unquoted(text: str) -> str:
    return text.strip().rstrip("?!").strip("`\"'“” ").removesuffix(".")

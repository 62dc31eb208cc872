"""What the model answers. Every message has a number of its own, and its answer says that number."""

import re
import uuid
from pathlib import Path

from agents_app.model.demo.conversation import Asked
from agents_app.model.demo.wire import Reply, Stall, say
from tests.scripted_model import ScriptedModel, calls

KINDS = ("words", "slowly", "held", "read", "count")
AFTER_A_CRASH = "I looked at where I was."
HELD_FOR = 3.0  # seconds: long enough to be killed in
_NUMBER = re.compile(r"number (\S+)\.")


def message(kind: str, number: str) -> str:
    return f"In the way of {kind}, number {number}."


def answer(text: str) -> str:
    """To a message, or to whatever holds its text."""
    found = _NUMBER.search(text)
    return f"This answers number {found[1] if found else '?'}."


def give_to(model: ScriptedModel, vault: Path) -> None:
    note = vault / "Note.md"
    note.write_text("A note.\n")
    model.script("way of words", [_says])
    model.script("way of slowly", [lambda asked: say(answer(asked.text), pause=0.3)])
    model.script("way of held", [lambda asked: say("This ", Stall(HELD_FOR), answer(asked.text)[5:])])
    model.script("way of read", [lambda _: calls("Read", file_path=str(note)), _says])
    model.script("way of count", [lambda _: _runs_once(runs(vault)), _says])
    model.script("You were interrupted", [say(AFTER_A_CRASH)])


def runs(vault: Path) -> Path:
    """Each run of the counting tool leaves a line here."""
    return vault / "runs.txt"


def _says(asked: Asked) -> Reply:
    return say(answer(asked.text))


def _runs_once(file: Path) -> Reply:
    """Each call has a mark of its own, so a line that is there twice is one call that ran twice."""
    return calls("Bash", command=f"sleep 0.5; echo {uuid.uuid4()} >> {file}; sleep 0.5")

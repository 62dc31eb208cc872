"""A message with files, through the real CLI behind the real wall: what of them reaches the model."""

import re
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents_app.model.demo.conversation import Asked
from agents_app.model.demo.wire import Reply, say
from agents_app.runtimes.claude.runtime import ClaudeRuntime
from sessions_app.access.caller import Caller
from sessions_app.files.attachments import Given
from sessions_app.models import SessionEvent
from tests.agents_app.engine import Engine, last_words
from tests.contracts.stage import door_to, sandbox_that_runs
from tests.scripted_model import ScriptedModel, calls

pytestmark = pytest.mark.django_db(transaction=True)

# One red point.
PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as scripted:
        yield scripted


@pytest.fixture
async def engine(
    model: ScriptedModel, as_ada: Caller, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Engine]:
    sandbox_that_runs("bubblewrap")
    monkeypatch.setattr("agents_app.turns.held.ringing.send", lambda args, queue: None)
    async with door_to(model.url) as door:
        runtime = ClaudeRuntime(door, most_warm=0)
        yield Engine(as_ada, runtime)  # type: ignore[arg-type]
        await runtime.close()


def reads_the_file(asked: Asked) -> Reply:
    """As a model would: by what the message says of where it lies."""
    vault, path = (
        re.search(r"paths are below (.*?)\. ", asked.text),
        re.search(r"^- (\S+) \(", asked.text, re.M),
    )
    assert vault and path
    return calls("Read", file_path=str(Path(vault[1]) / path[1]))


async def test_the_text_of_a_file_is_in_the_prompt(engine: Engine, model: ScriptedModel) -> None:
    model.script("When?", [say("In September.")])
    note = Given("pears.md", b"Pears ripen in September.\n")
    written = await engine.answer("When?", attachments=(note,))
    assert last_words(written)["response"] == "In September."
    (asked,) = model.asked("When?")
    assert "```\nPears ripen in September.\n\n```" in asked.text
    assert "pears.md, text/plain, 26 bytes" in asked.text


@pytest.mark.parametrize("name", ["pear.png", "pear.txt"])
async def test_an_image_is_read_whatever_it_was_called(
    engine: Engine, model: ScriptedModel, name: str
) -> None:
    model.script("What is it?", [reads_the_file, say("A red point.")])
    written = await engine.answer("What is it?", attachments=(Given(name, PNG),))
    assert last_words(written)["response"] == "A red point."
    assert not results(written)[0]["isError"]
    sent = str(model.asked("What is it?")[-1].body["messages"])
    assert "'media_type': 'image/png'" in sent
    assert b64encode(PNG).decode() in sent


async def test_a_text_that_is_called_an_image_is_text(engine: Engine, model: ScriptedModel) -> None:
    """The CLI goes by the ending: under its own name nobody could read it."""
    model.script("What is it?", [reads_the_file, say("A text.")])
    written = await engine.answer("What is it?", attachments=(Given("pear.png", b"No pear.\n"),))
    assert last_words(written)["response"] == "A text."
    assert "No pear." in results(written)[0]["content"]
    assert "image/png" not in str(model.asked("What is it?")[-1].body["messages"])


def results(written: list[SessionEvent]) -> list[dict[str, Any]]:
    return [event.payload for event in written if event.type == "tool_result"]

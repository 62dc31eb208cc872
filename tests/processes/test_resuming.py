"""The ladder of resuming with the real CLI: what is told of it is what the model really got."""

import shutil
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from agents_app.model.demo.wire import say
from tests.processes.conftest import House
from tests.processes.program import of_type

pytestmark = pytest.mark.processes

ANSWER = "Quinces ripen in October."
COPIED_WITHIN = 10.0  # seconds


class Conversation:
    def __init__(self, house: House) -> None:
        self._program, self._model = house.program, house.model
        self._model.script("quinces", [say(ANSWER)])
        accepted = self._program.post("When do quinces ripen?")
        self._program.finished(accepted)
        self.id = accepted["sessionId"]
        self.own = house.up.home / "claude" / self.id / "projects"
        self.published = self._published_in(house.up.vault / ".claude" / "projects")

    def _published_in(self, folder: Path) -> Path:
        """The copy, which comes a moment after the end."""
        until = monotonic() + COPIED_WITHIN
        while monotonic() < until:
            if found := list(folder.glob(f"*/{self.id}.jsonl")):
                return found[0]
            self._program.session(self.id)
        raise AssertionError(f"No copy of the transcript came within {COPIED_WITHIN} s.")

    def go_on(self, message: str, **more: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The `done` event, and all events of the turn."""
        accepted = self._program.post(message, sessionId=self.id, **more)
        events = [e for e in self._program.finished(accepted) if e["turnId"] == accepted["turnId"]]
        (done,) = of_type(events, "done")
        assert of_type(events, "session")[-1]["resumeInfo"]["method"] == done["sessionResume"]["method"]
        return done, events

    def model_was_told(self, message: str) -> str:
        return str(self._model.asked(message)[-1].body["messages"])


@pytest.fixture
def talk(house: House) -> Conversation:
    return Conversation(house)


def damage(transcript: Path) -> None:
    lines = transcript.read_bytes().splitlines(keepends=True)
    transcript.write_bytes(b"".join([*lines[:4], b"not what it was\n", *lines[5:]]))


def test_its_own_transcript_resumes_it(talk: Conversation) -> None:
    done, _ = talk.go_on("and pears?")
    assert done["sessionResume"]["method"] == "sdk_resume"
    assert ANSWER in talk.model_was_told("and pears?")


@pytest.mark.parametrize("how", ["gone", "damaged"])
def test_the_copy_in_the_vault_takes_its_place(talk: Conversation, how: str) -> None:
    if how == "gone":
        shutil.rmtree(talk.own)
    else:
        damage(next(talk.own.glob("*/*.jsonl")))
    done, events = talk.go_on("and pears?")
    assert done["sessionResume"]["method"] == "restored"
    assert [warning["code"] for warning in of_type(events, "warning")] == ["restored"]
    assert ANSWER in talk.model_was_told("and pears?")


def test_without_either_what_was_said_is_told_again(talk: Conversation) -> None:
    shutil.rmtree(talk.own)
    talk.published.unlink()
    done, events = talk.go_on("and pears?")
    assert done["sessionResume"]["method"] == "context_injection"
    assert done["sessionResume"]["messagesInjected"] == 2
    assert of_type(events, "session_unavailable")[0]["hasHistory"] is True
    assert ANSWER in talk.model_was_told("and pears?")
    assert talk.go_on("and plums?")[0]["sessionResume"]["method"] == "sdk_resume"


@pytest.mark.parametrize(
    ("mode", "method", "knows"),
    [("inject_context", "context_injection", True), ("fresh_start", "new", False)],
)
def test_a_person_may_choose(talk: Conversation, mode: str, method: str, knows: bool) -> None:
    done, _ = talk.go_on("and pears?", recoveryMode=mode)
    assert done["sessionResume"]["method"] == method
    assert (ANSWER in talk.model_was_told("and pears?")) is knows


def test_where_next_to_nothing_is_left_of_it_all_is_told_again(talk: Conversation) -> None:
    own = next(talk.own.glob("*/*.jsonl"))
    first = own.read_bytes().splitlines()[0]
    assert b'"uuid"' not in first  # so it is no row of the conversation
    own.write_bytes(first + b"\n")
    talk.published.unlink()
    done, _ = talk.go_on("and pears?")
    assert done["sessionResume"]["method"] == "context_injection"
    assert ANSWER in talk.model_was_told("and pears?")

"""How a turn is taken up: the ladder, and what is told of it."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from agents_app.runtimes.base import CannotResume, RunRequest, Waits
from agents_app.runtimes.events import RuntimeEvent
from agents_app.runtimes.scripted import Say, ScriptedRun, ScriptedRuntime
from agents_app.turns.running import retelling
from agents_app.turns.running.starting import CHOSEN, GONE
from agents_app.turns.said.opening import Opened
from permissions_app.gate import Gate
from sessions_app.history import transcripts
from sessions_app.models import Session, SessionEvent
from tests.agents_app.engine import Engine, events, last_words, types

pytestmark = pytest.mark.django_db(transaction=True)

Damage = Callable[[bytes], bytes]


def cut(content: bytes) -> bytes:
    """Whole lines, and not all of them."""
    return b"".join(content.splitlines(keepends=True)[:-1])


def scratched(content: bytes) -> bytes:
    first, *others = content.splitlines(keepends=True)
    return b"".join([first[: len(first) // 2] + b"\n", *others])


def emptied(content: bytes) -> bytes:
    return b""


def flooded(content: bytes) -> bytes:
    """Its agent can write as many rows of nothing."""
    return content + b"{}\n" * (transcripts.MOST_LINES + 1)


DAMAGES = pytest.mark.parametrize("damage", [cut, scratched, emptied, flooded])


@pytest.fixture
async def first(engine: Engine) -> Opened:
    engine.runtime.scripts["quinces"] = [Say("In October.")]
    opened = await engine.say("When are the quinces ripe?")
    await engine.run(opened)
    return opened


def own(session_id: UUID) -> Path:
    (path,) = transcripts.config_folder(session_id).glob(f"projects/*/{session_id}.jsonl")
    return path


def copy(session_id: UUID, vault: Path) -> Path:
    (path,) = vault.glob(f".claude/projects/*/{session_id}.jsonl")
    return path


def spoil(path: Path, damage: Damage) -> None:
    path.write_bytes(damage(path.read_bytes()))


def info(written: list[SessionEvent]) -> dict[str, Any]:
    """How it was taken up, as the `session` event tells it. It is told once."""
    (told,) = [e.payload["resumeInfo"] for e in written if e.type == "session" and e.payload["resumeInfo"]]
    return dict(told)


def lost(written: list[SessionEvent]) -> dict[str, Any]:
    (told,) = [event.payload for event in written if event.type == "session_unavailable"]
    return dict(told)


def told_at_the_end(written: list[SessionEvent]) -> dict[str, Any]:
    return dict(last_words(written)["sessionResume"])


class TestItsOwnTranscript:
    async def test_is_resumed(self, engine: Engine, first: Opened) -> None:
        written = await engine.answer("and now?", session_id=first.session_id)
        assert info(written) == {
            "method": "sdk_resume",
            "isNewSession": False,
            "previousMessageCount": 2,
            "sdkSessionAvailable": True,
        }
        end = told_at_the_end(written)
        assert (end["method"], end["sdkSessionValid"], end["sdkResumeAttempted"]) == (
            "sdk_resume",
            True,
            True,
        )
        assert (end["loadedFromDisk"], end["cacheHit"], end["contextInjected"]) == (True, False, False)

    async def test_with_a_last_line_that_is_cut_is_resumed(self, engine: Engine, first: Opened) -> None:
        with own(first.session_id).open("ab") as file:
            file.write(b'{"type":"us')
        written = await engine.answer("and now?", session_id=first.session_id)
        assert info(written)["method"] == "sdk_resume", "what nobody had finished saying is no loss"

    async def test_is_none_at_first_and_that_is_no_loss(self, engine: Engine) -> None:
        written = await engine.answer("hi")
        assert (info(written)["method"], info(written)["isNewSession"]) == ("new", True)
        assert "session_unavailable" not in types(written)
        assert told_at_the_end(written)["sdkResumeAttempted"] is False


class TestTheCopyInTheVault:
    @DAMAGES
    async def test_takes_the_place_of_one_that_is_not_whole(
        self, engine: Engine, first: Opened, damage: Damage
    ) -> None:
        spoil(own(first.session_id), damage)
        written = await engine.answer("and now?", session_id=first.session_id)
        assert (info(written)["method"], info(written)["sdkSessionAvailable"]) == ("restored", True)
        assert [e.payload["code"] for e in written if e.type == "warning"] == ["restored"]
        assert (engine.runtime.requests[-1].text, engine.runtime.requests[-1].resume) == ("and now?", True)
        assert "session_unavailable" not in types(written)

    async def test_takes_the_place_of_one_that_is_gone(
        self, engine: Engine, first: Opened, vault: Path
    ) -> None:
        before = own(first.session_id).read_bytes()
        transcripts.set_aside(first.session_id)
        written = await engine.answer("and now?", session_id=first.session_id)
        assert told_at_the_end(written)["method"] == "restored"
        assert own(first.session_id).read_bytes().startswith(before)
        assert copy(first.session_id, vault).read_bytes() == own(first.session_id).read_bytes()

    async def test_is_left_alone_where_somebody_chose(self, engine: Engine, first: Opened) -> None:
        transcripts.set_aside(first.session_id)
        written = await engine.answer("and now?", session_id=first.session_id, recovery="inject_context")
        assert info(written)["method"] == "context_injection"

    @DAMAGES
    async def test_is_left_alone_where_it_is_not_whole_either(
        self, engine: Engine, first: Opened, vault: Path, damage: Damage
    ) -> None:
        transcripts.set_aside(first.session_id)
        spoil(copy(first.session_id, vault), damage)
        written = await engine.answer("and now?", session_id=first.session_id)
        assert info(written)["method"] == "context_injection"


class TestWhatWasSaidIsToldAgain:
    async def test_in_front_of_the_message(self, engine: Engine, first: Opened, vault: Path) -> None:
        await self.lose_all(first, vault)
        written = await engine.answer("and now?", session_id=first.session_id)
        request = engine.runtime.requests[-1]
        said = ("**The person:** When are the quinces ripe?", "**You:** In October.", "## Now\n\nand now?")
        assert [request.text.find(words) > 0 for words in said] == [True] * 3
        assert (request.resume, last_words(written)["response"]) == (False, "In October.")

    async def test_and_what_is_told_of_it_is_true(self, engine: Engine, first: Opened, vault: Path) -> None:
        await self.lose_all(first, vault)
        written = await engine.answer("and now?", session_id=first.session_id)
        assert types(written)[2:4] == ["session_unavailable", "session"]
        assert lost(written) == {"reason": GONE, "hasHistory": True, "messageCount": 2}
        assert info(written)["sdkSessionAvailable"] is False
        end = told_at_the_end(written)
        assert (end["contextInjected"], end["messagesInjected"], end["previousMessageCount"]) == (True, 2, 2)
        assert (end["sdkSessionValid"], end["sdkResumeAttempted"], end["loadedFromDisk"]) == (False,) * 3
        assert end["tokensEstimate"] > 0

    async def test_as_much_as_fits_and_the_last_of_it(
        self, engine: Engine, first: Opened, vault: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(4):
            await engine.answer(f"{number} {'x' * 79_000}", session_id=first.session_id)
        await self.lose_all(first, vault)
        end = told_at_the_end(await engine.answer("and now?", session_id=first.session_id))
        text = engine.runtime.requests[-1].text
        assert 39_000 < end["tokensEstimate"] <= retelling.MOST_TOKENS
        assert ("3 xxx" in text, "2 xxx" in text, "1 xxx" in text, "quinces" in text) == (
            True,
            True,
            False,
            False,
        )

    async def test_a_last_message_that_is_too_long_alone_is_not_told(
        self, engine: Engine, first: Opened, vault: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retelling, "MOST_TOKENS", 30)
        await self.lose_all(first, vault)
        written = await engine.answer("and now?", session_id=first.session_id)
        assert (info(written)["method"], lost(written)["hasHistory"]) == ("new", False)
        assert engine.runtime.requests[-1].text == "and now?"

    async def test_and_from_there_on_it_is_resumed(self, engine: Engine, first: Opened, vault: Path) -> None:
        await self.lose_all(first, vault)
        await engine.answer("and now?", session_id=first.session_id)
        written = await engine.answer("and then?", session_id=first.session_id)
        assert info(written)["method"] == "sdk_resume"

    @staticmethod
    async def lose_all(first: Opened, vault: Path) -> None:
        transcripts.set_aside(first.session_id)
        copy(first.session_id, vault).unlink()


class TestWhatSomebodyChose:
    async def test_to_tell_the_agent_what_was_said(self, engine: Engine, first: Opened) -> None:
        written = await engine.answer("and now?", session_id=first.session_id, recovery="inject_context")
        assert info(written)["method"] == "context_injection"
        assert lost(written)["reason"] == CHOSEN
        assert "In October." in engine.runtime.requests[-1].text

    async def test_to_start_anew(self, engine: Engine, first: Opened) -> None:
        written = await engine.answer("and now?", session_id=first.session_id, recovery="fresh_start")
        assert (info(written)["method"], info(written)["isNewSession"]) == ("new", False)
        assert lost(written) == {"reason": CHOSEN, "hasHistory": False, "messageCount": 2}
        assert engine.runtime.requests[-1].text == "and now?"

    async def test_is_for_one_turn(self, engine: Engine, first: Opened) -> None:
        await engine.answer("and now?", session_id=first.session_id, recovery="fresh_start")
        written = await engine.answer("and then?", session_id=first.session_id)
        assert info(written)["method"] == "sdk_resume"

    @pytest.mark.parametrize("recovery", ["inject_context", "fresh_start"])
    async def test_means_nothing_where_nothing_was_said(self, engine: Engine, recovery: str) -> None:
        written = await engine.answer("hi", recovery=recovery)
        assert (info(written)["method"], info(written)["isNewSession"]) == ("new", True)
        assert "session_unavailable" not in types(written)


class TestAnAgentThatCannotResumeAfterAll:
    @pytest.fixture(autouse=True, params=["opens", "begins"])
    def forgetful(self, engine: Engine, request: pytest.FixtureRequest) -> None:
        engine.runtime = Forgetful(engine.runtime, at=request.param)

    async def test_is_told_what_was_said(self, engine: Engine, first: Opened) -> None:
        written = await engine.answer("and now?", session_id=first.session_id)
        assert last_words(written)["response"] == "In October."
        assert "**You:** In October." in engine.runtime.requests[-1].text
        assert types(written).count("init") == 1

    async def test_and_what_is_told_of_it_is_true(self, engine: Engine, first: Opened) -> None:
        written = await engine.answer("and now?", session_id=first.session_id)
        assert (info(written)["method"], info(written)["sdkSessionAvailable"]) == ("context_injection", False)
        assert lost(written)["reason"] == "No conversation found."
        end = told_at_the_end(written)
        assert (end["sdkResumeAttempted"], end["sdkSessionValid"]) == (True, False)

    async def test_ends_the_turn_where_it_was_not_asked_to_resume(self, engine: Engine) -> None:
        engine.runtime = Forgetful(engine.runtime, at="opens", always=True)
        assert last_words(await engine.answer("hi"))["code"] == "cli_crashed"


async def test_a_copy_that_could_not_be_written_is_not_taken_for_the_whole_story(
    engine: Engine, first: Opened, vault: Path
) -> None:
    old = copy(first.session_id, vault).read_bytes()
    await engine.answer("and now?", session_id=first.session_id)
    copy(first.session_id, vault).write_bytes(old)
    transcripts.set_aside(first.session_id)
    written = await engine.answer("and then?", session_id=first.session_id)
    assert info(written)["method"] == "context_injection"


async def test_how_far_its_transcript_goes_is_known(first: Opened) -> None:
    session = await Session.objects.aget(pk=first.session_id)
    assert session.last_entry == transcripts.last_entry(own(first.session_id).read_bytes())


async def test_that_it_was_lost_does_not_end_the_turn(engine: Engine, first: Opened) -> None:
    opened = await engine.say("and now?", session_id=first.session_id, recovery="fresh_start")
    await engine.run(opened)
    written = await events(opened)
    assert types(written).index("session_unavailable") < types(written).index("init")
    assert types(written)[-1] == "done"


class Forgetful(ScriptedRuntime):
    """Cannot resume, and says so as it opens or as it begins."""

    def __init__(self, inner: ScriptedRuntime, *, at: str, always: bool = False) -> None:
        super().__init__()
        self.scripts = inner.scripts
        self._at, self._always = at, always

    @asynccontextmanager
    async def open(self, request: RunRequest, gate: Gate, waits: Waits) -> AsyncIterator[ScriptedRun]:
        async with super().open(request, gate, waits) as run:
            fails = request.resume or self._always
            if fails and self._at == "opens":
                cannot_resume()
            yield Unable(request, gate, self.steps_for) if fails else run


class Unable(ScriptedRun):
    async def events(self) -> AsyncGenerator[RuntimeEvent]:
        yield cannot_resume()


def cannot_resume() -> RuntimeEvent:
    raise CannotResume("cli_crashed", "No conversation found.")

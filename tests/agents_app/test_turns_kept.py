"""What people had read of a text whose worker was lost in the middle of it: one row, whatever comes next."""

import logging
from contextlib import aclosing
from typing import Any

import pytest

from agents_app.runtimes.events import BlockKind, Delta
from agents_app.runtimes.scripted import Begin, Say, Use
from agents_app.turns.held import leases
from agents_app.turns.held.claim import claim
from agents_app.turns.held.holder import Holder
from agents_app.turns.running.recorder import Recorder
from agents_app.turns.running.starting import INTERRUPTED, SHOWN
from agents_app.turns.said.abort import abort
from agents_app.turns.said.opening import Opened
from sessions_app.history import conversation
from sessions_app.models import Session, SessionEvent, SessionKind, Turn
from sessions_app.streaming import bus
from sessions_app.streaming.bus import memory
from sessions_app.streaming.stream import follow
from sessions_app.threads import in_thread
from tests.agents_app.engine import Engine, events, expire, last_words, pause, types
from tests.sessions_app.own_bus import OwnBus

pytestmark = pytest.mark.django_db(transaction=True)

BEGUN = "Quinces ripen in Oc"
PIECES = ("Quinces ", "ripen in ", "Oc")


class ForgetfulOfRings(OwnBus):
    """The rings by which it would know that a text is over are lost."""

    is_forgetful = False

    def _keep_tail(self, topic: str, payload: Any) -> None:
        if "delta" in payload or not self.is_forgetful:
            super()._keep_tail(topic, payload)


@pytest.fixture(autouse=True)
def own_bus(monkeypatch: pytest.MonkeyPatch) -> ForgetfulOfRings:
    own = ForgetfulOfRings()
    monkeypatch.setattr(memory, "bus", own)
    return own


async def dies(opened: Opened, *pieces: str, kind: BlockKind = BlockKind.TEXT) -> Recorder:
    """A worker takes it, says the beginning of a text, and is heard of no more."""
    taken = await in_thread(claim)(opened.session_id, Holder("dead"))
    assert taken
    turn, hold = taken
    recorder = Recorder(opened.session_id, hold, last_seq=turn.session.last_seq)
    await recorder.go_on()
    for number, piece in enumerate(pieces):
        await recorder.delta(Delta(kind, piece, starts=number == 0))
    await expire()
    return recorder


async def is_taken_back(opened: Opened) -> None:
    assert await in_thread(leases.sweep)() == 1


async def is_lost(opened: Opened, *pieces: str, **more: Any) -> None:
    await dies(opened, *pieces, **more)
    await is_taken_back(opened)


async def texts(opened: Opened) -> list[tuple[str, bool]]:
    """Each text, and whether it was interrupted."""
    written = [event.payload for event in await events(opened) if event.type == "text"]
    return [(payload["content"], "interrupted" in payload) for payload in written]


async def test_it_is_a_row_before_the_next_attempt_and_the_agent_is_told(engine: Engine) -> None:
    engine.runtime.scripts[BEGUN] = [Say("tober.")]
    opened = await engine.say("When do quinces ripen?")
    await is_lost(opened, *PIECES)
    await engine.run(opened)
    assert await texts(opened) == [(BEGUN, True), ("tober.", False)]
    written = await events(opened)
    assert types(written)[2:4] == ["text", "session"]
    assert [e.payload["block"] for e in written if e.type == "text"] == [0, 1]
    (request,) = engine.runtime.requests
    assert request.text == f"{INTERRUPTED}\n\n{SHOWN}\n\n---\n\n{BEGUN}\n\n---\n\nWhen do quinces ripen?"
    assert last_words(written)["response"] == f"{BEGUN}\n\ntober."


async def may_see() -> None:
    """Whoever follows, and all the time."""


async def test_who_follows_has_it_once(engine: Engine) -> None:
    opened = await engine.say("When do quinces ripen?")
    await dies(opened, *PIECES)
    shown: dict[int, str] = {}
    async with aclosing(follow(opened.session_id, 0, may_see)) as frames:
        async for frame in frames:
            if frame and frame["type"] == "text" and frame["seq"] is None:
                assert frame["offset"] == len(shown.get(frame["block"], ""))
                shown[frame["block"]] = shown.get(frame["block"], "") + frame["delta"]
                await is_taken_back(opened)
            elif frame and frame["type"] == "text":
                assert frame["content"] == shown.pop(frame["block"]) == BEGUN
                break
    assert await bus.current().tail(bus.session_topic(opened.session_id)) == []


@pytest.mark.parametrize("forgets", [True, False])
async def test_a_second_crash_before_the_first_word_neither_repeats_nor_loses_it(
    engine: Engine, own_bus: ForgetfulOfRings, forgets: bool
) -> None:
    own_bus.is_forgetful = forgets
    opened = await engine.say("When do quinces ripen?")
    await is_lost(opened, *PIECES)
    await is_lost(opened)
    await engine.run(opened)
    assert await texts(opened) == [(BEGUN, True), ("ok", False)]
    assert BEGUN in engine.runtime.requests[-1].text


async def test_one_that_is_interrupted_where_it_went_on_is_told_whole(engine: Engine) -> None:
    opened = await engine.say("When do quinces ripen?")
    await is_lost(opened, *PIECES)
    await is_lost(opened, "tober, ", "or l")
    await engine.run(opened)
    assert await texts(opened) == [(BEGUN, True), ("tober, or l", True), ("ok", False)]
    assert f"{BEGUN}\n\ntober, or l" in engine.runtime.requests[-1].text


async def test_what_was_finished_since_is_not_told_again(engine: Engine) -> None:
    at = pause()
    engine.runtime.scripts["interrupted"] = [Say("tober."), Use("Read", {"file_path": "Welcome.md"}), at]
    opened = await engine.say("When do quinces ripen?")
    await is_lost(opened, *PIECES)
    async with engine.paused(opened, at) as working:
        working.cancel()
    engine.runtime.scripts.clear()
    await engine.run(opened)
    assert [request.text.count(BEGUN) for request in engine.runtime.requests] == [1, 0]
    assert last_words(await events(opened))["response"] == "ok"


async def test_the_worker_that_puts_its_turn_back_keeps_it_itself(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = pause()
    engine.runtime.scripts["ripen"] = [Begin(BEGUN), at]
    opened = await engine.say("When do quinces ripen?")
    async with engine.paused(opened, at) as working:
        monkeypatch.setattr(memory, "bus", OwnBus())  # which never had it
        working.cancel()
    assert await texts(opened) == [(BEGUN, True)]


async def test_it_comes_before_the_end_of_a_turn_that_is_not_run_again(engine: Engine) -> None:
    opened = await engine.say("When do quinces ripen?")
    await Session.objects.aupdate(kind=SessionKind.SCHEDULED)
    await is_lost(opened, *PIECES)
    assert types(await events(opened))[-2:] == ["text", "typed_error"]
    assert [said["content"][0]["text"] for said in await messages(opened)] == [
        "When do quinces ripen?",
        BEGUN,
    ]


async def test_a_turn_that_was_stopped_while_its_worker_was_dead_says_it_as_its_partial_response(
    engine: Engine,
) -> None:
    opened = await engine.say("When do quinces ripen?")
    await dies(opened, *PIECES)
    await in_thread(abort)(engine.caller, opened.session_id)
    await is_taken_back(opened)
    assert last_words(await events(opened))["partialResponse"] == BEGUN


async def test_where_the_bus_has_lost_it_nothing_is_told(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = await engine.say("When do quinces ripen?")
    await dies(opened, *PIECES)
    monkeypatch.setattr(memory, "bus", OwnBus())
    await is_taken_back(opened)
    await engine.run(opened)
    assert await texts(opened) == [("ok", False)]
    assert [request.text for request in engine.runtime.requests] == ["When do quinces ripen?"]


async def test_a_bus_that_fails_keeps_no_turn_from_being_taken_back(
    engine: Engine, own_bus: OwnBus, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    opened = await engine.say("When do quinces ripen?")
    await dies(opened, *PIECES)

    async def fails(topic: str) -> None:
        raise ConnectionError

    monkeypatch.setattr(own_bus, "tail", fails)
    with caplog.at_level(logging.ERROR):
        await is_taken_back(opened)
    assert "could not be read" in caplog.text


async def test_the_words_of_another_turn_are_not_its_own(engine: Engine, own_bus: ForgetfulOfRings) -> None:
    own_bus.is_forgetful = True
    first = await engine.say("When do quinces ripen?")
    await engine.run(first)
    assert await bus.current().tail(bus.session_topic(first.session_id))
    second = await engine.say("And pears?", session_id=first.session_id)
    await is_lost(second)
    assert await texts(second) == []


async def test_what_a_worker_finished_before_it_was_lost_is_not_kept_again(
    engine: Engine, own_bus: ForgetfulOfRings
) -> None:
    own_bus.is_forgetful = True
    opened = await engine.say("When do quinces ripen?")
    recorder = await dies(opened, *PIECES)
    await recorder.keep_unfinished()
    await is_taken_back(opened)
    assert await texts(opened) == [(BEGUN, False)]


async def test_a_thought_is_kept_and_not_told(engine: Engine) -> None:
    opened = await engine.say("When do quinces ripen?")
    await is_lost(opened, "Hm, qui", kind=BlockKind.THINKING)
    await engine.run(opened)
    kept = await SessionEvent.objects.aget(turn_id=opened.turn_id, type="thinking")
    assert kept.payload == {"block": 0, "content": "Hm, qui", "interrupted": True}
    assert "Hm" not in engine.runtime.requests[-1].text


async def test_it_stands_among_the_messages_where_it_was_said(engine: Engine) -> None:
    first = await engine.say("When do quinces ripen?")
    await is_lost(first, *PIECES)
    await engine.run(first)
    second = await engine.say("And pears?", session_id=first.session_id)
    at = pause()
    engine.runtime.scripts["pears"] = [Say("Let me look."), Use("Read", {"file_path": "Welcome.md"}), at]
    async with engine.paused(second, at) as working:
        working.cancel()
    await is_lost(second, "Pears ri")
    await engine.run(second)
    told = [(said["role"], said["content"][0]["text"][:12]) for said in await messages(first)]
    assert [words for role, words in told if role == "assistant"] == [
        BEGUN[:12],
        "ok",
        "Let me look.",
        "Pears ri",
        "ok",
    ]
    assert [said.get("interrupted") for said in await messages(first)].count(True) == 2
    assert await Turn.objects.acount() == 2


async def messages(opened: Opened) -> list[dict[str, Any]]:
    session = await Session.objects.aget(pk=opened.session_id)
    return await in_thread(conversation.messages)(session)

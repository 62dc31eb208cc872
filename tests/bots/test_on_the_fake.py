"""Cards and odd cases, on the fake platform, which is quick."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import DataError

from agents_app.runtimes.scripted import Say, ScriptedRuntime, Use
from agents_app.turns.said.opening import Opened, Opening, open_turn
from bots_app.models import BotChat, BotUser, Delivery
from bots_app.platforms.base import Incoming, Place, Unreachable
from bots_app.platforms.fake import FakePlatform
from bots_app.relay import answering
from bots_app.services import hearing
from permissions_app import services as deciding
from permissions_app.models import ToolRequest
from sessions_app.access.caller import Caller
from sessions_app.access.models import Membership, Role, Workspace
from sessions_app.models import Session
from sessions_app.threads import in_thread
from tests.agents_app.engine import pause
from tests.asked import asks, run_out
from tests.bots.conftest import let_in, talking
from tests.bots.fake_town import FakeTown

pytestmark = pytest.mark.django_db(transaction=True)

ADAS, BENS, GUESTS = "11", "22", "33"


@pytest.fixture
async def town(
    no_task_is_left: None,
    behind_a_wall: None,
    workspace: Workspace,
    ada: User,
    ben: User,
) -> AsyncIterator[FakeTown]:
    """Ada and Ben are linked; a guest was let in and is nobody here."""
    await in_thread(_let_in)(workspace, {ADAS: ada, BENS: ben, GUESTS: None})
    town = FakeTown()
    async with talking(town):
        yield town


def _let_in(workspace: Workspace, people: dict[str, User | None]) -> None:
    for who, user in people.items():
        chat = BotChat.objects.create(platform="telegram", chat_id=who, chat_type="private")
        BotUser.objects.create(
            platform="telegram",
            platform_user_id=who,
            display=who,
            workspace=workspace,
            trust_level="vault",
            user=user,
            direct=chat,
        )


async def test_a_guests_request_goes_to_all_who_may_decide_and_one_answer_is_shown_to_all(
    town: FakeTown, worker: ScriptedRuntime
) -> None:
    worker.scripts["weather"] = [Use("mcp__weather__today", {"place": "Graz"}), Say("Sun.")]
    town.says(GUESTS, "the weather?")
    for who in (ADAS, BENS):
        await town.reads(who, "wants to use")
    assert not any("wants to use" in text for text in town.texts(GUESTS))
    await town.reads(GUESTS, "Waiting for somebody to decide.")
    town.presses(BENS, BENS, "Allow once")
    for who in (ADAS, BENS):
        await town.reads(who, "Allowed by ben.")
    await town.reads(GUESTS, "Sun.")
    assert not any(each.buttons for who in (ADAS, BENS) for each in town.shown(who))
    request = await ToolRequest.objects.aget()
    assert (request.status, request.decided_as.partition(":")[0]) == ("granted", "user")


async def test_each_press_is_looked_at_by_what_its_person_may_do_then(
    town: FakeTown, worker: ScriptedRuntime, as_ada: Caller, ben: User
) -> None:
    worker.scripts["weather"] = [Use("mcp__weather__today", {"place": "Graz"}), Say("Sun.")]
    town.says(GUESTS, "the weather?")
    await town.reads(BENS, "wants to use")
    await Membership.objects.filter(user=ben).aupdate(role=Role.VIEWER)
    pressed = town.presses(BENS, BENS, "Allow once")
    await town.until(lambda: pressed in town.pressed)
    assert town.pressed[pressed] == "This is not yours to decide."
    await Membership.objects.filter(user=ben).aupdate(role=Role.MEMBER)
    guest = town.presses(GUESTS, BENS, "Allow once")  # as if the message had been sent on
    await town.until(lambda: guest in town.pressed)
    assert town.pressed[guest] == "This is not yours to decide."
    request = await ToolRequest.objects.aget()
    await in_thread(deciding.deny)(as_ada, request.pk)
    late = town.presses(BENS, BENS, "Allow once")
    await town.until(lambda: late in town.pressed)
    assert town.pressed[late].startswith("This is decided already")
    await town.reads(BENS, "Not allowed, said ada.")


async def test_questions_are_answered_one_after_the_other(town: FakeTown, as_ada: Caller) -> None:
    options = [{"label": "Pears", "description": "soft"}, {"label": "Quinces", "description": "hard"}]
    asked = [
        {"question": "Which tree?", "options": options},
        {"question": "Which days?", "multiSelect": True, "options": [{"label": "Mon"}, {"label": "Tue"}]},
    ]
    opened = await in_thread(_said_by_guest)(as_ada)
    request = await in_thread(asks)(opened, is_question=True, input={"questions": asked})
    await town.reads(ADAS, "Which tree?")
    town.presses(ADAS, ADAS, "Quinces")
    await town.reads(ADAS, "Which days?")
    for label in ("Mon", "Tue", "Mon"):
        pressed = town.presses(ADAS, ADAS, label)
        await town.until(lambda: pressed in town.pressed)  # noqa: B023
    await town.until(lambda: any("✓ Tue" in label for each in town.shown(ADAS) for label, _ in each.buttons))
    town.presses(ADAS, ADAS, "Done")
    await town.reads(ADAS, "Answered by ada.")
    await request.arefresh_from_db()
    assert request.answers == {"Which tree?": "Quinces", "Which days?": ["Tue"]}


def _said_by_guest(caller: Caller) -> UUID:
    opened = open_turn(caller, Opening("hello"))
    Session.objects.filter(pk=opened.session_id).update(
        source="telegram", bot_chat=GUESTS, visibility="workspace"
    )
    return opened.session_id


async def test_what_nobody_could_read_whole_is_not_allowed_on_a_phone(town: FakeTown, as_ada: Caller) -> None:
    opened = await in_thread(_said_by_guest)(as_ada)
    await in_thread(asks)(opened, input={"place": "x" * 1_000})
    await town.reads(ADAS, "too long to be shown")
    (card,) = [each for each in town.shown(ADAS) if "too long" in each.text]
    assert [label for label, _ in card.buttons] == ["Do not allow"]


async def test_what_comes_late_is_allowed_late_and_its_answer_told(
    town: FakeTown, worker: ScriptedRuntime, as_ada: Caller, settings: Any
) -> None:
    settings.PARACHUTE_PERMISSION_TIMEOUT = 1
    worker.scripts["A person has now allowed"] = [Say("So it is sunny.")]
    worker.scripts["weather"] = [Use("mcp__weather__today", {"place": "Graz"}), Say("Not now.")]
    town.says(GUESTS, "the weather?")
    await town.reads(ADAS, "Nobody answered in time")
    await town.reads(GUESTS, "Not now.")
    town.presses(ADAS, ADAS, "Allow it now")
    await town.reads(ADAS, "Allowed by ada.")
    await town.reads(GUESTS, "So it is sunny.")


async def test_a_chat_on_the_page_asks_there_first(town: FakeTown, as_ada: Caller) -> None:
    opened = await in_thread(open_turn)(as_ada, Opening("hello"))
    request = await in_thread(asks)(opened.session_id)
    town.says(ADAS, "/status")
    await town.reads(ADAS, "Agent: default")
    assert not await Delivery.objects.filter(request=request).aexists()
    await in_thread(run_out)(request)


async def test_what_cannot_be_taken_is_refused_with_words_and_stops_nobody_else(
    town: FakeTown, worker: ScriptedRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    town.sends(GUESTS, "tool.exe", b"MZ" + b"\0" * 100)
    await town.reads(GUESTS, "tool.exe is a program.")
    town.sends(BENS, "film.mp4", b"0123456789")
    monkeypatch.setattr("bots_app.relay.talking.LARGEST_FILE", 5)
    await town.reads(BENS, "film.mp4 is larger than")
    hear = hearing.hear

    def breaks(platform: str, said: Incoming) -> BotChat | None:
        if said.text == "breaks":
            raise ZeroDivisionError
        return hear(platform, said)

    monkeypatch.setattr(hearing, "hear", breaks)
    town.says(ADAS, "breaks")
    town.says(ADAS, "hello")
    await town.reads(ADAS, "ok")


async def test_what_nobody_foresaw_is_told_by_a_number_and_tried_again(
    town: FakeTown, worker: ScriptedRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    send, failed = FakePlatform.send, list[str]()

    async def breaks_once(self: FakePlatform, place: Place, text: str, **more: Any) -> str:
        if text == "ok" and not failed:
            failed.append(text)
            raise ZeroDivisionError
        return await send(self, place, text, **more)

    monkeypatch.setattr(FakePlatform, "send", breaks_once)
    town.says(GUESTS, "hello")
    await town.reads(GUESTS, "ok")
    assert failed == ["ok"]


async def test_an_answer_that_took_long_stands_there_once_whatever_fails(
    town: FakeTown, worker: ScriptedRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "TOOK_LONG", 0.0)
    delete, failed = FakePlatform.delete, list[str]()

    async def fails_once(self: FakePlatform, place: Place, message_id: str) -> None:
        if not failed:
            failed.append(message_id)
            raise Unreachable("It does not answer.")
        await delete(self, place, message_id)

    monkeypatch.setattr(FakePlatform, "delete", fails_once)
    stands = pause()
    worker.scripts["story"] = [Say("Once upon a time."), stands, Say("The end.")]
    town.says(GUESTS, "a story")
    await town.reads(GUESTS, "Once upon a time.")
    stands.go_on.set()
    # Before its end the growing message may say all of it too.
    await town.until(lambda: failed and town.texts(GUESTS) == ["Once upon a time.\n\nThe end."])


async def test_an_answer_to_who_was_let_in_that_fails_stops_nobody_else(
    town: FakeTown, worker: ScriptedRuntime, as_ada: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(caller: Caller, opening: Opening, **more: Any) -> Opened:
        if opening.message == "let me in":
            raise ZeroDivisionError
        return open_turn(caller, opening, **more)

    monkeypatch.setattr("bots_app.services.opening.open_turn", breaks)
    town.says("44", "let me in")
    await town.reads("44", "somebody has decided")
    await let_in(as_ada, "44")
    await town.reads("44", "not foreseen")
    town.says(GUESTS, "hello")
    await town.reads(GUESTS, "ok")


async def test_what_no_database_keeps_is_left_out_and_stops_nobody(
    town: FakeTown, worker: ScriptedRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    hear = hearing.hear

    def breaks(platform: str, said: Incoming) -> BotChat | None:
        if said.text == "breaks":
            raise DataError
        return hear(platform, said)

    monkeypatch.setattr(hearing, "hear", breaks)
    town.says(ADAS, "breaks")
    town.says(GUESTS, "hello")
    await town.reads(GUESTS, "ok")


async def test_what_turns_text_around_is_seen_before_it_is_allowed(town: FakeTown, as_ada: Caller) -> None:
    opened = await in_thread(_said_by_guest)(as_ada)
    await in_thread(asks)(opened, input={"place": "Graz \u202egnp.exe"})
    card = await town.reads(ADAS, "wants to use")
    assert "Graz \ufffdU+202Egnp.exe" in card


async def test_an_answer_that_took_long_ends_as_a_new_message(
    town: FakeTown, worker: ScriptedRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "TOOK_LONG", 0.0)
    stands = pause()
    worker.scripts["story"] = [Say("Once upon a time."), stands, Say("The end.")]
    town.says(GUESTS, "a story")
    await town.reads(GUESTS, "Once upon a time.")
    stands.go_on.set()
    told = ["Once upon a time.\n\nThe end."]
    await town.until(lambda: town.texts(GUESTS) == told and town.shown(GUESTS)[0].edits == 0)

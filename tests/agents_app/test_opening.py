"""Opening a turn: what is accepted, what is refused, and that the same request is accepted once."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.test import override_settings
from django.utils import timezone

from agents_app.models import Worker
from agents_app.turns.held.ringing import SHARED
from agents_app.turns.said.opening import MOST_WAITING, Opened, Opening, open_turn
from agents_app.workers import living
from sessions_app import errors
from sessions_app.access.caller import Caller
from sessions_app.access.models import Membership, TrustLevel, Workspace
from sessions_app.access.services import caller_of_user
from sessions_app.models import Message, Receipt, Session, SessionStatus, Turn, TurnStatus
from tests.agents_app.at_once import at_once
from tests.agents_app.conftest import Rings
from tests.sharing import share

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("rings")]


@pytest.fixture
def as_vi(vi: User, workspace: Workspace) -> Caller:
    return caller_of_user(vi)


def session_of(opened: Opened) -> Session:
    return Session.objects.get(pk=opened.session_id)


def again(opened: Opened, text: str = "and now?", **more: Any) -> Opening:
    return Opening(text, session_id=opened.session_id, **more)


def field_of(error: pytest.ExceptionInfo[errors.Invalid]) -> str:
    field: str = error.value.details["fields"][0]["field"]
    return field


class TestWhatIsMade:
    @pytest.mark.database
    def test_a_session_its_message_its_turn_and_two_rows(self, as_ada: Caller, ada: User) -> None:
        opened = open_turn(as_ada, Opening("When are the quinces ripe?\nAnd pears?"))
        session, message = session_of(opened), Message.objects.get(turn=opened.turn_id)
        assert (session.title, session.status) == ("When are the quinces ripe?", SessionStatus.PENDING)
        assert (message.author, message.source) == (ada, "user")
        assert list(session.events.values_list("seq", "type")) == [(1, "session"), (2, "user_message")]
        assert opened.seq == 2

    @pytest.mark.django_db(transaction=True)
    def test_workers_are_rung_for_once_it_is_written(self, as_ada: Caller, rings: list[UUID]) -> None:
        assert rings == [open_turn(as_ada, Opening("hi")).session_id]

    @pytest.mark.django_db(transaction=True)
    def test_a_broker_that_is_away_costs_the_ring_and_not_the_message(
        self, as_ada: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def away(args: object, queue: str) -> None:
            raise ConnectionError("no broker")

        monkeypatch.setattr("agents_app.turns.held.ringing.send", away)
        assert Turn.objects.get(pk=open_turn(as_ada, Opening("hi")).turn_id).status == TurnStatus.QUEUED

    def test_a_title_has_at_most_sixty_characters_of_the_first_line(self, as_ada: Caller) -> None:
        assert session_of(open_turn(as_ada, Opening(f"\n  {'x' * 99}\ny"))).title == "x" * 60

    @pytest.mark.parametrize(
        ("text", "title"),
        [
            ("\u200b\n \u200bquinces\u200b \u2060\ny", "quinces"),
            ("\ufeffquinces\u200d", "quinces"),
            ("\u200b👩\u200d🌾\u200b", "👩\u200d🌾"),
            ("I ❤\ufe0f", "I ❤\ufe0f"),  # without its last character it is no emoji
            ("می\u200cخواهم", "می\u200cخواهم"),  # noqa: RUF001 - Persian
            ("ന്\u200d", "ന്\u200d"),  # a letter of Malayalam, as it was written before it had a code
        ],
    )
    def test_a_title_begins_and_ends_with_what_can_be_seen(
        self, as_ada: Caller, text: str, title: str
    ) -> None:
        assert session_of(open_turn(as_ada, Opening(text))).title == title

    def test_context_stands_alone_beside_a_message_that_cannot_be_seen(self, as_ada: Caller) -> None:
        opened = open_turn(as_ada, Opening(" \u200b", initial_context="It is spring."))
        assert session_of(opened).title == "It is spring."
        said = session_of(opened).events.get(type="user_message")
        assert said.payload["content"] == "It is spring."

    def test_a_message_to_an_existing_session_is_its_next_turn(self, as_ada: Caller) -> None:
        first = open_turn(as_ada, Opening("hi"))
        second = open_turn(as_ada, again(first))
        assert (second.session_id, second.seq) == (first.session_id, 4)

    def test_a_message_takes_a_session_out_of_the_archive(self, as_ada: Caller) -> None:
        opened = open_turn(as_ada, Opening("hi"))
        Session.objects.update(archived=True)
        open_turn(as_ada, again(opened))
        assert not session_of(opened).archived

    def test_context_is_kept_of_the_first_message_only(self, as_ada: Caller) -> None:
        first = open_turn(as_ada, Opening("hi", initial_context="It is spring."))
        open_turn(as_ada, again(first, initial_context="It is spring."))
        assert list(Message.objects.values_list("context", flat=True)) == ["It is spring.", ""]

    def test_a_failed_chat_goes_on(self, as_ada: Caller) -> None:
        opened = open_turn(as_ada, Opening("hi"))
        Session.objects.update(status=SessionStatus.FAILED)
        assert open_turn(as_ada, again(opened)).seq == 4


class TestWhereItWaits:
    def test_behind_so_many_of_its_session(self, as_ada: Caller) -> None:
        first = open_turn(as_ada, Opening("hi"))
        behind = [open_turn(as_ada, again(first)) for _ in range(2)]
        waits = [event.payload for event in session_of(first).events.filter(type="turn_waiting")]
        assert waits == [{"reason": "queued", "position": place} for place in (1, 2)]
        assert [opened.seq for opened in behind] == [4, 7]

    def test_nowhere_where_nothing_is_before_it(self, as_ada: Caller) -> None:
        first = open_turn(as_ada, Opening("hi"))
        Turn.objects.update(status=TurnStatus.ABORTED, ended_at=timezone.now())
        open_turn(as_ada, again(first))
        assert not session_of(first).events.filter(type="turn_waiting").exists()


@pytest.mark.django_db(transaction=True)
class TestWhereItIsRungFor:
    """The worker that keeps the session's agent warm is rung for alone, as long as it lives."""

    def test_is_the_shared_queue_at_first(self, as_ada: Caller, rings: Rings) -> None:
        open_turn(as_ada, Opening("hi"))
        assert rings.queues == [SHARED]

    @pytest.mark.parametrize(
        ("seen", "queue", "where"),
        [(0, "turns", "turns.w"), (31, "turns", SHARED), (0, "background", SHARED)],
    )
    def test_is_the_queue_of_the_worker_that_has_it_warm(
        self, as_ada: Caller, rings: Rings, seen: int, queue: str, where: str
    ) -> None:
        opened = open_turn(as_ada, Opening("hi"))
        Session.objects.update(warm_on="w")
        living.say_alive("w", uuid4(), queue)
        Worker.objects.update(seen_at=timezone.now() - timedelta(seconds=seen))
        rings.queues.clear()
        open_turn(as_ada, again(opened))
        assert rings.queues == [where]

    def test_is_the_shared_queue_where_that_worker_has_said_goodbye(
        self, as_ada: Caller, rings: Rings
    ) -> None:
        opened, boot = open_turn(as_ada, Opening("hi")), uuid4()
        Session.objects.update(warm_on="w")
        living.say_alive("w", boot, "turns")
        living.say_goodbye("w", boot)
        open_turn(as_ada, again(opened))
        assert rings.queues == [SHARED, SHARED]


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        "text", ["", " \n\t", " \n\u200b ", "\u2060\ufeff\u00ad", "\u200d\ufe0f", "\u3164\x07"]
    )
    def test_an_empty_message(self, as_ada: Caller, text: str) -> None:
        with pytest.raises(errors.Invalid) as error:
            open_turn(as_ada, Opening(text))
        assert field_of(error) == "message"

    def test_context_without_a_message_where_context_is_not_taken_any_more(self, as_ada: Caller) -> None:
        opened = open_turn(as_ada, Opening("hi"))
        with pytest.raises(errors.Invalid):
            open_turn(as_ada, again(opened, "", initial_context="It is spring."))

    @pytest.mark.parametrize("text", ["a\0b", "a\ud83d", "\udc00b"])
    @pytest.mark.parametrize("field", ["message", "initial_context", "system_prompt", "working_directory"])
    def test_what_is_no_text(self, as_ada: Caller, field: str, text: str) -> None:
        given: dict[str, Any] = {"message": "hi", field: text}
        with pytest.raises(errors.Invalid) as error:
            open_turn(as_ada, Opening(**given))
        assert field_of(error).lower() == field.replace("_", "")
        assert not Session.objects.exists()

    def test_a_message_over_its_length(self, as_ada: Caller) -> None:
        open_turn(as_ada, Opening("x" * 102_400))
        with pytest.raises(errors.TooLarge):
            open_turn(as_ada, Opening("x" * 102_401))

    def test_one_message_more_than_may_wait(self, as_ada: Caller) -> None:
        opened = open_turn(as_ada, Opening("hi"))
        for _ in range(MOST_WAITING - 1):
            open_turn(as_ada, again(opened))
        with pytest.raises(errors.QueueFull):
            open_turn(as_ada, again(opened))
        assert Turn.objects.count() == MOST_WAITING

    def test_a_message_to_a_child_that_failed(self, as_ada: Caller) -> None:
        parent, child = open_turn(as_ada, Opening("hi")), open_turn(as_ada, Opening("hi"))
        Session.objects.filter(pk=child.session_id).update(
            parent=parent.session_id, status=SessionStatus.FAILED
        )
        with pytest.raises(errors.SessionNotRunning):
            open_turn(as_ada, again(child))

    @pytest.mark.parametrize(
        ("field", "value"),
        [("system_prompt", "Be a pear."), ("working_directory", "Garden"), ("trust_level", "full")],
    )
    def test_another_value_of_what_belongs_to_the_session(
        self, as_ada: Caller, field: str, value: str
    ) -> None:
        opened = open_turn(as_ada, Opening("hi"))
        with pytest.raises(errors.Invalid):
            open_turn(as_ada, again(opened, **{field: value}))

    def test_a_model_that_is_not_allowed_here(self, as_ada: Caller) -> None:
        with pytest.raises(errors.ModelNotAllowed):
            open_turn(as_ada, Opening("hi", model="gpt"))

    def test_a_session_whose_model_is_not_allowed_any_more(self, as_ada: Caller, settings: Any) -> None:
        opened = open_turn(as_ada, Opening("hi", model="opus"))
        settings.PARACHUTE_MODELS = ("sonnet",)
        with pytest.raises(errors.ModelNotAllowed):
            open_turn(as_ada, again(opened))
        open_turn(as_ada, again(opened, model="sonnet"))
        assert session_of(opened).model == "sonnet"


class TestWhoMay:
    def test_a_member(self, as_ben: Caller) -> None:
        assert open_turn(as_ben, Opening("hi")).seq == 2

    def test_not_one_who_may_only_look(self, as_vi: Caller, as_ada: Caller) -> None:
        adas = open_turn(as_ada, Opening("hi"))
        share(adas.session_id)
        for opening in (Opening("hi"), again(adas)):
            with pytest.raises(errors.Forbidden):
                open_turn(as_vi, opening)

    def test_not_an_outsider_and_nothing_is_told_to_him(self, as_cy: Caller, as_ada: Caller) -> None:
        theirs = open_turn(as_ada, Opening("hi"))
        for opening in (again(theirs), Opening("hi", workspace="default"), Opening("hi", session_id=uuid4())):
            with pytest.raises(errors.NotFound):
                open_turn(as_cy, opening)
        with pytest.raises(errors.NotFound):
            open_turn(as_cy, Opening("hi", continued_from=theirs.session_id))

    def test_not_a_key_of_another_workspace(self, as_ada: Caller, as_cy: Caller, ada: User) -> None:
        theirs = Workspace.objects.get(slug="elsewhere")
        narrowed = replace(as_ada, workspace_ids=frozenset({theirs.pk}))
        with pytest.raises(errors.NotFound):
            open_turn(narrowed, Opening("hi", workspace="default"))


class TestTrust:
    def test_the_default_is_the_workspaces(self, as_ben: Caller) -> None:
        assert session_of(open_turn(as_ben, Opening("hi"))).trust_level == TrustLevel.VAULT

    def test_the_whole_computer_is_for_operators(self, as_ada: Caller, as_ben: Caller) -> None:
        opened = open_turn(as_ada, Opening("hi", trust_level="full"))
        assert session_of(opened).trust_level == TrustLevel.FULL
        with pytest.raises(errors.Forbidden):
            open_turn(as_ben, Opening("hi", trust_level="full"))

    def test_nobody_else_speaks_in_an_operators_session_with_the_whole_computer(
        self, as_ada: Caller, as_ben: Caller
    ) -> None:
        opened = open_turn(as_ada, Opening("hi", trust_level="full"))
        share(opened.session_id)
        with pytest.raises(errors.Forbidden):
            open_turn(as_ben, again(opened, "rm it"))

    def test_above_the_floor_is_refused_and_the_default_gives_way(self, as_ada: Caller) -> None:
        Workspace.objects.update(trust_floor=TrustLevel.VAULT, default_trust=TrustLevel.FULL)
        with pytest.raises(errors.TrustTooHigh):
            open_turn(as_ada, Opening("hi", trust_level="full"))
        assert session_of(open_turn(as_ada, Opening("hi"))).trust_level == TrustLevel.VAULT

    def test_a_session_above_a_floor_that_was_put_in_later_takes_no_more(self, as_ada: Caller) -> None:
        opened = open_turn(as_ada, Opening("hi", trust_level="full"))
        Workspace.objects.update(trust_floor=TrustLevel.VAULT)
        with pytest.raises(errors.TrustTooHigh):
            open_turn(as_ada, again(opened))

    @override_settings(PARACHUTE_ENGINE_ENVIRONMENT={"PATH": "/nowhere"})
    def test_a_box_that_nothing_here_can_build_is_refused_at_once(self, as_ada: Caller) -> None:
        with pytest.raises(errors.SandboxUnavailable):
            open_turn(as_ada, Opening("hi", trust_level="sandboxed"))


class TestDirectory:
    def test_it_is_kept_resolved(self, as_ada: Caller, vault: Path) -> None:
        opened = open_turn(as_ada, Opening("hi", working_directory="Garden/../Garden/./Beds"))
        assert session_of(opened).working_directory == str(vault / "Garden/Beds")

    @pytest.mark.parametrize("wanted", ["..", "/etc", "Garden/../../x", "out"])
    def test_outside_the_vault_is_refused_below_full_trust(
        self, as_ada: Caller, vault: Path, wanted: str
    ) -> None:
        (vault / "out").symlink_to("/etc")
        with pytest.raises(errors.OutsideVault):
            open_turn(as_ada, Opening("hi", working_directory=wanted))

    def test_at_full_trust_it_may_lie_anywhere(self, as_ada: Caller) -> None:
        opened = open_turn(as_ada, Opening("hi", working_directory="/etc", trust_level="full"))
        assert session_of(opened).working_directory == "/etc"


class TestTheSameRequestTwice:
    def test_it_is_the_same_turn(self, as_ada: Caller) -> None:
        first, second = [open_turn(as_ada, Opening("hi"), key="k") for _ in range(2)]
        assert first == second
        assert Turn.objects.count() == 1

    def test_another_body_is_refused(self, as_ada: Caller) -> None:
        open_turn(as_ada, Opening("hi"), key="k")
        with pytest.raises(errors.IdempotencyMismatch):
            open_turn(as_ada, Opening("ho"), key="k")
        assert Turn.objects.count() == 1

    def test_what_was_refused_may_be_mended_under_its_key(self, as_ada: Caller) -> None:
        with pytest.raises(errors.ModelNotAllowed):
            open_turn(as_ada, Opening("hi", model="gpt"), key="k")
        assert open_turn(as_ada, Opening("hi"), key="k").seq == 2

    def test_a_key_is_its_callers_own(self, as_ada: Caller, as_ben: Caller) -> None:
        assert open_turn(as_ada, Opening("hi"), key="k") != open_turn(as_ben, Opening("hi"), key="k")

    def test_after_a_day_it_is_another_request(self, as_ada: Caller) -> None:
        first = open_turn(as_ada, Opening("hi"), key="k")
        Receipt.objects.update(created_at=timezone.now() - timedelta(hours=24, seconds=1))
        assert open_turn(as_ada, Opening("ho"), key="k") != first

    def test_who_may_not_see_it_any_more_does_not_get_it_by_its_key(self, as_ben: Caller, ben: User) -> None:
        open_turn(as_ben, Opening("hi"), key="k")
        Membership.objects.filter(user=ben).delete()
        with pytest.raises(errors.NotFound):
            open_turn(as_ben, Opening("hi"), key="k")


@pytest.mark.database
@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    def test_the_same_request_is_accepted_once(self, as_ada: Caller) -> None:
        opened = at_once(lambda _: open_turn(as_ada, Opening("hi"), key="k"))
        assert len(set(opened)) == 1
        assert Turn.objects.count() == 1

    def test_messages_to_one_session_keep_an_order(self, as_ada: Caller) -> None:
        first = open_turn(as_ada, Opening("hi"))
        opened = at_once(lambda number: open_turn(as_ada, again(first, f"message {number}")))
        assert sorted(each.seq for each in opened) == [4, 7, 10, 13]  # with a `turn_waiting` between
        rows = session_of(first).events.order_by("seq").values_list("type", flat=True)
        assert list(rows) == ["session", "user_message", *["session", "user_message", "turn_waiting"] * 4]

    def test_no_more_than_may_wait(self, as_ada: Caller) -> None:
        first = open_turn(as_ada, Opening("hi"))
        for _ in range(MOST_WAITING - 3):
            open_turn(as_ada, again(first))
        refused = at_once(lambda _: outcome(lambda: open_turn(as_ada, again(first))))
        assert sorted(refused) == ["Opened", "Opened", "QueueFull", "QueueFull"]


def outcome(act: Callable[[], object]) -> str:
    try:
        return type(act()).__name__
    except errors.ParachuteError as error:
        return type(error).__name__

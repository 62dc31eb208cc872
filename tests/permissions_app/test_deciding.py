"""What people decide: one winner, within their rights, and as wide as they said."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from agents_app.turns.said.abort import abort
from agents_app.turns.said.deleting import delete
from agents_app.turns.said.opening import Opening, open_turn
from permissions_app import services
from permissions_app.audit import Entry
from permissions_app.models import RequestStatus, ToolRequest
from permissions_app.rules.suggestions import PatternScope
from sessions_app.access.caller import Caller
from sessions_app.access.services import caller_of_user
from sessions_app.errors import AlreadyDecided, Forbidden, Invalid, NotFound
from sessions_app.models import Session, SessionEvent, Turn, TurnStatus
from sessions_app.streaming.log import Hold, HoldLost
from tests.agents_app.at_once import at_once
from tests.asked import asks, run_out

pytestmark = pytest.mark.django_db(transaction=True)

Ask = Callable[..., ToolRequest]


@pytest.fixture
def session(as_ada: Caller, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr("agents_app.turns.said.saying.ring_workers", lambda *_: None)
    return Session.objects.get(pk=open_turn(as_ada, Opening("hi")).session_id)


@pytest.fixture
def writes(session: Session) -> Ask:
    def ask(path: str, **more: Any) -> ToolRequest:
        return asks(
            session.pk,
            tool_name="Write",
            permission_type="write",
            input={"file_path": path, "content": "x"},
            file_path=path,
            directory=session.workspace.vault_path,
            subject="Write Plans",
            suggested_grants=[
                {"scope": "once", "pattern": "", "label": "once"},
                {"scope": "folder", "pattern": "Plans/*", "label": "the folder Plans/"},
            ],
            **more,
        )

    return ask


def told(kind: str) -> list[Any]:
    return list(SessionEvent.objects.filter(type=kind).order_by("seq").values_list("payload", flat=True))


@pytest.mark.database
class TestOneWinner:
    @pytest.mark.parametrize("round_", range(3))
    def test_of_several_who_answer_at_once(self, session: Session, as_ada: Caller, round_: int) -> None:
        request = asks(session.pk)

        def decide(number: int) -> str:
            act = services.grant if number % 2 else services.deny
            try:
                return str(act(as_ada, request.pk).status)
            except AlreadyDecided:
                return "late"

        outcomes = at_once(decide)
        request.refresh_from_db()
        assert sorted(outcomes) == sorted(["late", "late", "late", request.status])
        assert [each["decision"] for each in told("permission_resolved")] == [request.status]
        assert Turn.objects.get().status == TurnStatus.RUNNING

    def test_of_several_who_allow_it_late_at_once_and_one_turn_is_opened(
        self, session: Session, as_ada: Caller
    ) -> None:
        request = asks(session.pk)
        ToolRequest.objects.update(status=RequestStatus.EXPIRED, decided_at=timezone.now())

        def grant(number: int) -> str:
            try:
                return str(services.grant(as_ada, request.pk).status)
            except AlreadyDecided:
                return "late"

        assert sorted(at_once(grant)) == ["granted", "late", "late", "late"]
        assert Turn.objects.filter(status=TurnStatus.QUEUED).count() == 1

    def test_of_one_who_allows_and_others_who_deny_it_late_at_once(
        self, session: Session, as_ada: Caller
    ) -> None:
        request = asks(session.pk)
        ToolRequest.objects.update(status=RequestStatus.EXPIRED, decided_at=timezone.now())

        def decide(number: int) -> str:
            act = services.deny if number else services.grant
            try:
                return str(act(as_ada, request.pk).status)
            except AlreadyDecided:
                return "late"

        outcomes = at_once(decide)
        request.refresh_from_db()
        assert sorted(outcomes) == sorted(["late", "late", "late", request.status])
        assert [each["decision"] for each in told("permission_resolved")] == [request.status]
        queued = Turn.objects.filter(status=TurnStatus.QUEUED).count()
        assert queued == (1 if request.status == RequestStatus.GRANTED else 0)

    def test_a_person_and_the_clock(self, session: Session, as_ada: Caller) -> None:
        request = asks(session.pk)
        run_out(request)
        hold = Hold(request.turn_id, request.attempt)

        def act(number: int) -> str:
            if number:
                return "expired" if services.expire(hold, request.pk) else "not expired"
            return str(services.grant(as_ada, request.pk).status)

        outcomes = at_once(act, 2)
        request.refresh_from_db()
        assert request.status == "granted"  # in time, or late: then it opened a turn
        assert Turn.objects.count() == (2 if outcomes[1] == "expired" else 1)

    def test_the_turn_waits_until_the_last_is_decided(self, session: Session, as_ada: Caller) -> None:
        first, second = asks(session.pk), asks(session.pk)
        services.deny(as_ada, first.pk)
        assert Turn.objects.get().status == TurnStatus.WAITING
        services.deny(as_ada, second.pk)
        assert Turn.objects.get().status == TurnStatus.RUNNING

    @pytest.mark.parametrize("round_", range(5))
    def test_nobody_waits_for_ever_where_the_session_is_deleted_meanwhile(
        self, session: Session, as_ada: Caller, round_: int
    ) -> None:
        """Each takes its locks in the same order, whether the turn is active or over."""
        first, late = asks(session.pk), asks(session.pk)
        expired = ToolRequest.objects.filter(pk=late.pk)
        expired.update(status=RequestStatus.EXPIRED, decided_at=timezone.now())
        hold = Hold(first.turn_id, first.attempt)

        def act(number: int) -> str:
            acts = (
                lambda: delete(as_ada, session.pk),
                lambda: services.grant(as_ada, first.pk),
                lambda: services.grant(as_ada, late.pk),
                lambda: services.close(hold, first.pk),
            )
            try:
                acts[number]()
            except (NotFound, AlreadyDecided, HoldLost):
                return "late"
            return "done"

        assert at_once(act)[0] == "done"
        assert not ToolRequest.objects.exists()


class TestALateDenial:
    @pytest.fixture
    def late(self, session: Session) -> ToolRequest:
        request = asks(session.pk)
        run_out(request)
        assert services.expire(Hold(request.turn_id, request.attempt), request.pk)
        return request

    def test_it_turns_the_ticket_down_and_the_agent_is_told_nothing(
        self, late: ToolRequest, as_ada: Caller
    ) -> None:
        denied = services.deny(as_ada, late.pk, reason="No more.")
        assert (denied.status, denied.decided_by_id) == (RequestStatus.DENIED, as_ada.user_id)
        assert [each["decision"] for each in told("permission_resolved")] == ["expired", "denied"]
        assert Turn.objects.count() == 1
        with pytest.raises(AlreadyDecided, match="Not allowed"):
            services.grant(as_ada, late.pk)

    def test_after_a_day_it_stays_as_it_is(self, late: ToolRequest, as_ada: Caller) -> None:
        ToolRequest.objects.update(decided_at=timezone.now() - timedelta(hours=25))
        with pytest.raises(AlreadyDecided):
            services.deny(as_ada, late.pk)


@pytest.mark.database
class TestWhereItsTurnIsBeingStopped:
    @pytest.mark.parametrize("act", [services.grant, services.deny])
    def test_nobody_decides_what_it_asks_any_more(self, act: Any, session: Session, as_ada: Caller) -> None:
        request = asks(session.pk)
        abort(as_ada, session.pk)
        with pytest.raises(AlreadyDecided, match="being stopped") as refused:
            act(as_ada, request.pk)
        assert refused.value.details == {"status": "aborted"}
        request.refresh_from_db()
        assert request.status == RequestStatus.PENDING  # until its worker has ended it

    def test_nobody_answers_its_question(self, session: Session, as_ada: Caller) -> None:
        question = asks(session.pk, is_question=True)
        abort(as_ada, session.pk)
        with pytest.raises(AlreadyDecided, match="being stopped"):
            services.answer(as_ada, question.pk, {"Which?": "That."})

    def test_nothing_is_widened(self, session: Session, writes: Ask, as_ada: Caller) -> None:
        request = writes("Plans/May.md")
        abort(as_ada, session.pk)
        with pytest.raises(AlreadyDecided):
            services.grant(as_ada, request.pk, scope=PatternScope.FOLDER)
        assert Session.objects.get().metadata == session.metadata

    @pytest.mark.parametrize("round_", range(5))
    def test_what_is_allowed_in_that_moment_is_refused_or_counts_no_more(
        self, session: Session, as_ada: Caller, round_: int
    ) -> None:
        request = asks(session.pk)

        def act(number: int) -> str:
            try:
                abort(as_ada, session.pk) if number else services.grant(as_ada, request.pk)
            except AlreadyDecided:
                return "late"
            return "done"

        outcome, stopped = at_once(act, 2)
        request.refresh_from_db()
        assert (outcome, request.status, stopped) in (
            ("done", RequestStatus.GRANTED, "done"),
            ("late", RequestStatus.PENDING, "done"),
        )
        assert not services.use(Hold(request.turn_id, request.attempt), request.pk)

    def test_what_was_allowed_before_counts_no_more_though_its_clock_had_run_out(
        self, session: Session, as_ada: Caller
    ) -> None:
        request = asks(session.pk)
        run_out(request)
        services.grant(as_ada, request.pk)
        abort(as_ada, session.pk)
        assert not services.use(Hold(request.turn_id, request.attempt), request.pk)

    def test_what_has_expired_can_still_be_allowed_and_counts(self, session: Session, as_ada: Caller) -> None:
        """The turn that it opens is another."""
        before, after = asks(session.pk), asks(session.pk)
        hold = Hold(before.turn_id, before.attempt)
        for request in (before, after):
            run_out(request)
            assert services.expire(hold, request.pk)
        services.grant(as_ada, before.pk)
        abort(as_ada, session.pk, before.turn_id)
        services.grant(as_ada, after.pk)
        assert Turn.objects.filter(status=TurnStatus.QUEUED).count() == 2
        assert [services.use(hold, each.pk) for each in (before, after)] == [True, True]


class TestWhoMay:
    @pytest.fixture(autouse=True)
    def _shared(self, session: Session) -> None:
        Session.objects.filter(pk=session.pk).update(visibility="workspace")

    def test_of_a_private_chat_its_author_alone(
        self, session: Session, as_ada: Caller, as_ben: Caller
    ) -> None:
        Session.objects.filter(pk=session.pk).update(visibility="private")
        request = asks(session.pk)
        for act in (services.grant, services.deny, services.open_card, services.close_card):
            with pytest.raises(NotFound):
                act(as_ben, request.pk)
        assert services.grant(as_ada, request.pk).status == RequestStatus.GRANTED

    def test_a_member_may(self, session: Session, as_ben: Caller) -> None:
        assert services.grant(as_ben, asks(session.pk).pk).decided_as == as_ben.name

    def test_a_viewer_may_see_it_and_not_decide(self, session: Session, vi: User) -> None:
        request = asks(session.pk)
        for act in (services.grant, services.deny, services.open_card, services.close_card):
            with pytest.raises(Forbidden):
                act(caller_of_user(vi), request.pk)

    def test_for_an_outsider_there_is_none(self, session: Session, as_cy: Caller) -> None:
        request = asks(session.pk)
        for act in (services.grant, services.deny, services.open_card, services.close_card):
            with pytest.raises(NotFound):
                act(as_cy, request.pk)

    def test_what_no_wall_holds_is_an_operators_to_decide(
        self, session: Session, as_ada: Caller, as_ben: Caller
    ) -> None:
        request = asks(session.pk, on_host=True)
        for act in (services.grant, services.deny, services.open_card, services.close_card):
            with pytest.raises(Forbidden):
                act(as_ben, request.pk)
        request.refresh_from_db()
        assert (request.status, request.opened_until) == (RequestStatus.PENDING, None)
        assert services.grant(as_ada, request.pk).status == RequestStatus.GRANTED

    def test_a_question_that_no_wall_holds_is_an_operators_to_answer(
        self, session: Session, as_ada: Caller, as_ben: Caller
    ) -> None:
        """Its agent does what the answer says, on the host."""
        question = asks(session.pk, is_question=True, on_host=True)
        with pytest.raises(Forbidden):
            services.open_card(as_ben, question.pk)
        with pytest.raises(Forbidden):
            services.answer(as_ben, question.pk, {"Which?": "That."})
        assert services.answer(as_ada, question.pk, {"Which?": "That."}).status == RequestStatus.ANSWERED

    def test_a_question_is_answered_and_nothing_else(self, session: Session, as_ada: Caller) -> None:
        question, approval = asks(session.pk, is_question=True), asks(session.pk)
        for act in (services.grant, services.deny):
            with pytest.raises(Invalid):
                act(as_ada, question.pk)
        with pytest.raises(Invalid):
            services.answer(as_ada, approval.pk, {})
        with pytest.raises(Invalid):
            services.answer(as_ada, question.pk, {"Another?": "No."})

    def test_who_allows_a_question_is_told_where_its_answer_goes(
        self, session: Session, as_ada: Caller
    ) -> None:
        question = asks(session.pk, is_question=True)
        for act in (services.grant, services.deny):
            with pytest.raises(Invalid, match=f"Send an answer to /api/chat/{session.pk}/answer"):
                act(as_ada, question.pk)


class TestWidening:
    def test_a_suggested_scope_widens_the_session_and_its_followers_hear_it(
        self, session: Session, writes: Ask, as_ada: Caller
    ) -> None:
        request = services.grant(as_ada, writes("Plans/May.md").pk, scope=PatternScope.FOLDER)
        assert (request.scope, request.pattern) == ("folder", "Plans/*")
        session.refresh_from_db()
        assert session.metadata["permissions"]["write"] == ["Chat/artifacts/*", "Plans/*"]
        (updated,) = [each["metadata"] for each in told("session_updated") if "metadata" in each]
        assert updated == session.metadata

    @pytest.mark.parametrize(
        ("pattern", "scope"),
        [
            ("Plans/*", "folder"),
            ("Plans/May.md", "file"),
            ("Plans/M*.md", "folder"),
            ("Plans/**", "recursive"),
            ("Plans/**/*", "recursive"),
            ("Plans/", "recursive"),
            ("Pl*/May.md", "recursive"),
            ("**/*", "vault"),
            (" **/* ", "vault"),
            ("**", "vault"),
            ("**/", "vault"),
            ("*/May.md", "vault"),
        ],
    )
    @pytest.mark.parametrize("given", [None, PatternScope.FILE, PatternScope.VAULT])
    def test_the_scope_that_is_recorded_is_the_patterns_own(
        self, writes: Ask, as_ada: Caller, pattern: str, scope: str, given: PatternScope | None
    ) -> None:
        services.grant(as_ada, writes("Plans/May.md").pk, pattern=pattern, scope=given)
        (resolved,) = told("permission_resolved")
        assert (resolved["pattern"], resolved["scope"]) == (pattern.strip(), scope)

    def test_the_pattern_of_a_host_is_for_all_its_pages(
        self, session: Session, as_ada: Caller, vault: Path
    ) -> None:
        page = {"url": "https://pears.example/a", "prompt": "?"}
        asked = asks(
            session.pk, tool_name="WebFetch", permission_type="read", input=page, directory=str(vault)
        )
        granted = services.grant(as_ada, asked.pk, pattern="https://pears.example/", scope=PatternScope.FILE)
        assert granted.scope == "folder"

    @pytest.mark.parametrize("held", [[f"{n}/*" for n in range(100)], ["x" * 500] * 32], ids=["many", "long"])
    def test_a_session_keeps_so_many_and_no_more(
        self, session: Session, writes: Ask, as_ada: Caller, held: list[str]
    ) -> None:
        session.metadata["permissions"]["write"] = held
        session.save(update_fields=["metadata"])
        request = writes("Plans/May.md")
        with pytest.raises(Invalid) as refusal:
            services.grant(as_ada, request.pk, pattern="Plans/*")
        assert "too many" in str(refusal.value)
        request.refresh_from_db()
        assert request.status == RequestStatus.PENDING

    def test_once_widens_nothing(self, session: Session, writes: Ask, as_ada: Caller) -> None:
        before = session.metadata
        services.grant(as_ada, writes("Plans/May.md").pk)
        session.refresh_from_db()
        assert session.metadata == before

    @pytest.mark.parametrize(
        "wanted",
        [
            {"pattern": "../*"},
            {"pattern": "/etc/*"},
            {"pattern": " "},
            {"scope": PatternScope.VAULT},
            {"scope": PatternScope.ONCE, "pattern": "x"},
        ],
    )
    def test_what_is_no_pattern_is_refused_and_nothing_is_decided(
        self, session: Session, writes: Ask, as_ada: Caller, wanted: dict[str, Any]
    ) -> None:
        request = writes("Plans/May.md")
        with pytest.raises(Invalid):
            services.grant(as_ada, request.pk, **wanted)
        request.refresh_from_db()
        assert request.status == RequestStatus.PENDING

    def test_a_card_is_answered_for_all_that_the_pattern_covers(
        self, session: Session, writes: Ask, as_ada: Caller
    ) -> None:
        first, same, elsewhere = writes("Plans/May.md"), writes("Plans/June.md"), writes("Garden/June.md")
        services.grant(as_ada, first.pk, pattern="Plans/*")
        states = [ToolRequest.objects.get(pk=each.pk).status for each in (first, same, elsewhere)]
        assert states == ["granted", "granted", "pending"]
        assert [each["pattern"] for each in told("permission_resolved")] == ["Plans/*", "Plans/*"]
        assert Turn.objects.get().status == TurnStatus.WAITING


class TestOpenCards:
    def test_it_stands_for_half_an_hour_at_most(self, session: Session, as_ada: Caller) -> None:
        request = asks(session.pk)
        long_ago = timezone.now() - timedelta(minutes=29, seconds=50)
        ToolRequest.objects.update(
            created_at=long_ago,
            expires_at=timezone.now() + timedelta(seconds=30),
            opened_until=timezone.now(),
        )
        opened = services.open_card(as_ada, request.pk)
        assert opened.opened_until == long_ago + timedelta(minutes=30)
        assert opened.expires_at - opened.opened_until < timedelta(seconds=31)

    def test_one_that_is_decided_is_told_as_it_is(self, session: Session, as_ada: Caller) -> None:
        request = asks(session.pk)
        services.deny(as_ada, request.pk)
        denied = ToolRequest.objects.values().get()
        for act in (services.open_card, services.close_card):
            assert act(as_ada, request.pk).status == "denied"
        assert ToolRequest.objects.values().get() == denied


@pytest.mark.database
def test_the_console_decides_many_at_once(session: Session, ada: User, client: Client) -> None:
    requests = [asks(session.pk), asks(session.pk), asks(session.pk, is_question=True)]
    client.force_login(ada)
    url = "/admin/permissions_app/toolrequest/"
    assert client.get(url).status_code == 200
    assert client.get(f"{url}{requests[0].pk}/change/").status_code == 200
    chosen = [str(request.pk) for request in requests]
    client.post(url, {"action": "do_not_allow", "_selected_action": chosen})
    states = [ToolRequest.objects.get(pk=pk).status for pk in chosen]
    assert states == ["denied", "denied", "pending"]


def test_the_console_says_what_is_asked_without_its_secrets_and_what_waits_comes_first(
    session: Session, writes: Ask, as_ada: Caller, ada: User, client: Client
) -> None:
    older = asks(session.pk, tool_name="Bash", input={"command": "curl -H 'Authorization: Bearer abcdefgh'"})
    newer, over = writes("Plans/May.md"), asks(session.pk, input={"password": "hunter2", "place": "Graz"})
    services.deny(as_ada, over.pk)
    client.force_login(ada)
    page = client.get("/admin/permissions_app/toolrequest/")
    assert [each.pk for each in page.context["cl"].result_list] == [newer.pk, older.pk, over.pk]
    shown = page.content.decode()
    assert "curl -H" in shown
    assert "Plans/May.md" in shown
    assert "place: Graz" in shown
    assert "abcdefgh" not in shown
    assert "hunter2" not in shown


def test_the_console_allows_only_what_is_pending(session: Session, ada: User, client: Client) -> None:
    expired, pending = [asks(session.pk), asks(session.pk)], asks(session.pk)
    old = ToolRequest.objects.filter(pk__in=[each.pk for each in expired])
    old.update(status=RequestStatus.EXPIRED, decided_at=timezone.now())
    client.force_login(ada)
    chosen = [str(each.pk) for each in (*expired, pending)]
    given = {"action": "allow_once", "_selected_action": chosen}
    page = client.post("/admin/permissions_app/toolrequest/", given, follow=True).content.decode()
    assert "2 requests were left out" in page
    assert "1 request was decided." in page
    assert [ToolRequest.objects.get(pk=pk).status for pk in chosen] == ["expired", "expired", "granted"]
    assert Turn.objects.count() == 1


@pytest.mark.database
@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "granted"},
        {"status": "expired"},
        {"decided_at": timezone.now()},
        {"status": "granted", "decided_at": timezone.now()},
        {"status": "answered", "decided_at": timezone.now(), "decided_as": "user:1"},
        {"status": "denied", "decided_at": timezone.now(), "decided_as": "user:1", "scope": "once"},
        {"pattern": "*"},
        {"used_at": timezone.now()},
        {"status": "maybe"},
        {"permission_type": "all"},
        {"scope": "world"},
        {"expires_at": timezone.now() - timedelta(days=1)},
    ],
)
def test_the_database_refuses_what_must_never_be(session: Session, wrong: dict[str, Any]) -> None:
    asks(session.pk)
    with pytest.raises(IntegrityError), transaction.atomic():
        ToolRequest.objects.update(**wrong)


@pytest.mark.database
def test_one_pending_request_a_tool_use(session: Session) -> None:
    asks(session.pk, tool_use_id="t")
    with pytest.raises(IntegrityError), transaction.atomic():
        asks(session.pk, tool_use_id="t")


class TestTheAudit:
    def test_is_told_who_was_asked_for_what_and_what_they_said(
        self, writes: Ask, as_ada: Caller, audited: list[Entry]
    ) -> None:
        request = writes("Plans/a.md")
        services.grant(as_ada, request.pk, scope=PatternScope.FOLDER)
        asked, answered = audited
        assert (asked.kind, asked.outcome, asked.who) == ("request", "asked", "platform")
        assert (answered.kind, answered.outcome, answered.who) == ("answer", "granted", as_ada.name)
        assert (answered.tool, answered.pattern, answered.session_id) == (
            "Write",
            "Plans/*",
            request.session_id,
        )

    def test_is_told_before_any_bell_rings(
        self, writes: Ask, as_ada: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        writes("Plans/a.md")  # by a worker that takes the turn, and rings for that
        happened: list[str] = []
        monkeypatch.setattr("permissions_app.audit._sink", lambda entry: happened.append(entry.kind))
        monkeypatch.setattr("sessions_app.streaming.bus.ring", lambda topic, payload: happened.append("bell"))
        request = writes("Plans/b.md")
        services.grant(as_ada, request.pk)
        in_short = [each for each, before in zip(happened, ["", *happened], strict=False) if each != before]
        assert in_short == ["request", "bell", "answer", "bell"]

    def test_is_told_what_became_of_it_where_its_session_was_deleted(
        self, session: Session, as_ada: Caller, audited: list[Entry]
    ) -> None:
        asks(session.pk)
        delete(as_ada, session.pk)
        assert [entry.outcome for entry in audited] == ["asked", "aborted"]

    def test_is_not_told_of_what_came_too_late(
        self, writes: Ask, as_ada: Caller, audited: list[Entry]
    ) -> None:
        request = writes("Plans/a.md")
        services.deny(as_ada, request.pk)
        with pytest.raises(AlreadyDecided):
            services.grant(as_ada, request.pk)
        assert [entry.outcome for entry in audited] == ["asked", "denied"]

    def test_a_pattern_that_covers_something_else_widens_nothing(
        self, session: Session, writes: Ask, as_ada: Caller
    ) -> None:
        request = writes("Plans/a.md")
        with pytest.raises(Invalid, match="does not cover"):
            services.grant(as_ada, request.pk, pattern="Garden/*")
        request.refresh_from_db()
        assert request.status == RequestStatus.PENDING

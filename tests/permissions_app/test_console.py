"""What operators read and are offered about permissions in the console."""

import re

import pytest
from django.contrib import messages
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents_app.turns.said.opening import Opening, open_turn
from permissions_app import services
from permissions_app.grants import request_grant
from permissions_app.models import GrantRequest, PermissionGrant, RequestStatus, ToolRequest
from sessions_app.access.caller import Caller
from sessions_app.access.models import Membership, Role, Workspace
from sessions_app.models import Session
from tests.asked import asks

pytestmark = pytest.mark.django_db(transaction=True)

TOOLS = "/admin/permissions_app/toolrequest/"
WANTED = "/admin/permissions_app/grantrequest/"
GRANTS = "/admin/permissions_app/permissiongrant/"


@pytest.fixture
def console(ada: User, client: Client) -> Client:
    client.force_login(ada)
    return client


@pytest.fixture
def session(as_ada: Caller, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr("agents_app.turns.said.saying.ring_workers", lambda *_: None)
    return Session.objects.get(pk=open_turn(as_ada, Opening("hi")).session_id)


def said(console: Client, action: str, *chosen: ToolRequest) -> list[tuple[int, str]]:
    given = {"action": action, "_selected_action": [str(each.pk) for each in chosen]}
    page = console.post(TOOLS, given, follow=True)
    return [(each.level, each.message) for each in page.context["messages"]]


class TestWhatIsSaid:
    def test_what_is_decided_already_is_named_in_the_words_of_the_filter(
        self, console: Client, session: Session, as_ada: Caller
    ) -> None:
        request = asks(session.pk)
        services.deny(as_ada, request.pk)
        (refused, _) = said(console, "allow_once", request)
        why = "mcp__weather__today (Not allowed): This is decided already: Not allowed."
        assert refused == (messages.WARNING, why)

    def test_that_nothing_was_decided_is_a_warning_and_says_where_the_reason_is(
        self, console: Client, session: Session, as_ada: Caller
    ) -> None:
        denied, expired = asks(session.pk), asks(session.pk)
        services.deny(as_ada, denied.pk)
        old = ToolRequest.objects.filter(pk=expired.pk)
        old.update(status=RequestStatus.EXPIRED, decided_at=timezone.now())
        *reasons, (level, last) = said(console, "allow_once", denied, expired)
        assert len(reasons) == 2
        assert level == messages.WARNING
        assert last == "0 requests were decided. The reason for each stands above."

    def test_what_was_decided_is_a_success(self, console: Client, session: Session) -> None:
        assert said(console, "allow_once", asks(session.pk)) == [(messages.INFO, "1 request was decided.")]


def test_a_question_is_listed_by_what_it_asks_without_its_secrets(console: Client, session: Session) -> None:
    questions = [
        {"question": "Which pears?", "options": [{"label": "Conference"}]},
        {"question": "May I use password=hunter2?"},
    ]
    asks(session.pk, is_question=True, input={"questions": questions})
    page = console.get(TOOLS).content.decode()
    [shown] = re.findall(r'field-asked">([^<]*)<', page)
    assert shown.startswith("Which pears? May I use password=")
    assert "hunter2" not in page


@pytest.mark.parametrize(
    "where",
    [
        *(TOOLS, WANTED, GRANTS, "/admin/permissions_app/auditrow/", "/admin/permissions_app/auditseal/"),
        "/admin/sessions_app/apikey/",
    ],
)
def test_each_list_says_in_which_zone_its_times_are(
    console: Client, workspace: Workspace, where: str
) -> None:
    assert " to view (times in UTC)</h1>" in console.get(where).content.decode()


def test_the_page_of_one_says_it_too(console: Client, session: Session) -> None:
    page = console.get(f"{TOOLS}{asks(session.pk).pk}/change/").content.decode()
    assert "<h1>View tool request (times in UTC)</h1>" in page


class TestWhatIsOffered:
    ALL = ("approve_for_session", "approve_always", "deny")

    @pytest.mark.parametrize(
        ("role", "offered"),
        [(Role.OWNER, ALL), (Role.MEMBER, ("approve_for_session", "deny")), (Role.VIEWER, ()), (None, ())],
    )
    def test_of_what_agents_want_is_what_the_person_may_decide(
        self, console: Client, session: Session, role: Role | None, offered: tuple[str, ...]
    ) -> None:
        request_grant(session, "writer")
        Membership.objects.filter(user__username="ada").update(role=role or Role.OWNER)
        if role is None:
            Membership.objects.all().delete()
        assert offers(console, WANTED) == offered

    @pytest.mark.parametrize(("role", "offered"), [(Role.MEMBER, ("revoke",)), (Role.VIEWER, ())])
    def test_of_what_they_have_too(
        self, console: Client, session: Session, role: Role, offered: tuple[str, ...]
    ) -> None:
        given = {"agent": "default", "child_agent": "writer", "scope": "persistent"}
        PermissionGrant.objects.create(workspace=session.workspace, **given)
        Membership.objects.filter(user__username="ada").update(role=role)
        assert offers(console, GRANTS) == offered

    def test_what_is_not_offered_does_nothing(self, console: Client, session: Session) -> None:
        asked = request_grant(session, "writer")
        Membership.objects.filter(user__username="ada").update(role=Role.MEMBER)
        console.post(WANTED, {"action": "approve_always", "_selected_action": [str(asked.pk)]})
        assert GrantRequest.objects.get().status == "pending"


def offers(console: Client, where: str) -> tuple[str, ...]:
    page = console.get(where).content.decode()
    return tuple(re.findall(r'<option value="(\w+)"', page))

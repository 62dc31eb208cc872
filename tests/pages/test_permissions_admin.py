"""What operators see and do about permissions in the console."""

import json
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from agents_app.turns.said.opening import Opening, open_turn
from permissions_app.audit import AuditKind, Entry, Outcome
from permissions_app.audit.appending import append
from permissions_app.grants import holds_spawn_grant, request_grant
from permissions_app.models import AuditRow, GrantRequest, PermissionGrant
from sessions_app.access.models import Workspace
from sessions_app.access.services import caller_of_user
from sessions_app.models import Session
from tests.asked import asks
from tests.pages.browsing import Enter

pytestmark = pytest.mark.django_db(transaction=True)

ROWS = "/admin/permissions_app/auditrow/"
REQUESTS = "/admin/permissions_app/grantrequest/"
GRANTS = "/admin/permissions_app/permissiongrant/"
TOOLS = "/admin/permissions_app/toolrequest/"


@pytest.fixture
def session(workspace: Workspace, ada: User) -> Session:
    made: Session = Session.objects.create(workspace=workspace, model="m", vault_root="/v", created_by=ada)
    return made


@pytest.fixture
def rows(session: Session) -> list[AuditRow]:
    for tool, outcome in (("Read", Outcome.ALLOWED), ("Bash", Outcome.DENIED)):
        entry = Entry(AuditKind.DECISION, outcome, session_id=session.pk, tool=tool, rule="rung")
        append([entry.finished()])
    return list(AuditRow.objects.order_by("number"))


def act(browser: Client, where: str, action: str, *chosen: object) -> str:
    given = {"action": action, "_selected_action": [str(each) for each in chosen]}
    answer = browser.post(where, given, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_audit_is_shown_filtered_and_found(
    as_ada_in: Client, rows: list[AuditRow], session: Session
) -> None:
    assert b"2 audit rows" in as_ada_in.get(ROWS).content
    for query in ("?outcome__exact=denied", f"?q={session.pk}", "?q=Bash", "?kind__exact=decision"):
        page = as_ada_in.get(ROWS + query).content
        assert b"Bash" in page
    assert b"1 audit row" in as_ada_in.get(ROWS + "?outcome__exact=denied").content


@pytest.mark.parametrize("value", ["'x'", "CAST(x'ff' AS TEXT)"])
@pytest.mark.parametrize("column", ["at", "entry", "session_id", "turn_id", "tool", "summary"])
def test_where_a_row_cannot_be_read_the_page_says_what_to_do(
    as_ada_in: Client, rows: list[AuditRow], column: str, value: str
) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("This database takes only what a column is for.")
    spoilt = f"UPDATE permissions_app_auditrow SET {column} = {value} WHERE id = {rows[0].pk}"
    with connection.cursor() as cursor:
        cursor.execute(spoilt)
    answer = as_ada_in.get(ROWS)
    assert answer.status_code == 200
    is_readable = column in ("tool", "summary") and value == "'x'"
    assert ("manage.py verify_audit" in answer.content.decode()) is not is_readable


def test_what_came_under_no_rule_has_a_name_to_filter_by(as_ada_in: Client, rows: list[AuditRow]) -> None:
    append([Entry(AuditKind.GRANT, Outcome.GRANTED, tool="spawn").finished()])
    assert b'href="?rule=">(none)</a>' in as_ada_in.get(ROWS).content.replace(b"\n", b"")
    assert b"1 audit row" in as_ada_in.get(f"{ROWS}?rule=").content


def test_the_audit_is_read_only(as_ada_in: Client, rows: list[AuditRow]) -> None:
    assert as_ada_in.get(f"{ROWS}add/").status_code == 403
    assert as_ada_in.post(f"{ROWS}{rows[0].pk}/delete/", {"post": "yes"}).status_code == 403
    assert as_ada_in.post(f"{ROWS}{rows[0].pk}/change/", {"who": "nobody"}).status_code == 403
    act(as_ada_in, ROWS, "delete_selected", rows[0].pk)
    assert AuditRow.objects.count() == 2


def test_chosen_rows_are_exported(as_ada_in: Client, rows: list[AuditRow]) -> None:
    given = {"action": "export", "_selected_action": [rows[1].pk]}
    answer = as_ada_in.post(ROWS, given)
    assert answer["Content-Disposition"].startswith("attachment")
    [line] = answer.getvalue().splitlines()
    assert json.loads(line)["tool"] == "Bash"


def test_several_requests_are_approved_at_once(as_ada_in: Client, session: Session) -> None:
    asked = [request_grant(session, child) for child in ("writer", "reader")]
    page = act(as_ada_in, REQUESTS, "approve_for_session", *(each.pk for each in asked))
    assert "2 done" in page
    assert holds_spawn_grant(session.workspace, "default", "reader", session.pk)
    assert "decided this already" in act(as_ada_in, REQUESTS, "deny", asked[0].pk)


def test_a_request_is_denied(as_ada_in: Client, session: Session) -> None:
    asked = request_grant(session, "writer")
    act(as_ada_in, REQUESTS, "deny", asked.pk)
    assert GrantRequest.objects.get().status == "denied"


def test_a_grant_is_taken_back(as_ada_in: Client, session: Session) -> None:
    grant = PermissionGrant.objects.create(
        workspace=session.workspace, agent="default", child_agent="writer", scope="persistent"
    )
    act(as_ada_in, GRANTS, "revoke", grant.pk)
    assert not holds_spawn_grant(session.workspace, "default", "writer", None)


@pytest.fixture
def taken_back(as_ada_in: Client, session: Session) -> PermissionGrant:
    given = {"workspace": session.workspace, "agent": "default", "scope": "persistent"}
    grant: PermissionGrant = PermissionGrant.objects.create(child_agent="writer", **given)
    act(as_ada_in, GRANTS, "revoke", grant.pk)
    PermissionGrant.objects.create(child_agent="reader", **given)
    return grant


def test_a_grant_that_is_taken_back_already_is_said_to_be(
    as_ada_in: Client, taken_back: PermissionGrant
) -> None:
    page = act(as_ada_in, GRANTS, "revoke", taken_back.pk)
    assert "may start writer: This grant is taken back already." in page


def test_grants_are_filtered_by_whether_they_are_in_force(
    as_ada_in: Client, taken_back: PermissionGrant
) -> None:
    page = as_ada_in.get(GRANTS).content.decode()
    for words, child in (("in force", "reader"), ("taken back", "writer")):
        [query] = re.findall(rf'<a href="([^"]*)">\s*{words}</a>', page)
        [grant] = as_ada_in.get(GRANTS + query).context["cl"].result_list
        assert grant.child_agent == child


def test_of_many_that_are_refused_ten_are_told_and_how_many_more(as_ada_in: Client, session: Session) -> None:
    now = timezone.now()
    given = {"session": session, "agent": "default", "status": "denied", "decided_at": now}
    asked = [
        GrantRequest.objects.create(workspace=session.workspace, child_agent=f"writer-{n}", **given)
        for n in range(12)
    ]
    page = act(as_ada_in, REQUESTS, "deny", *(each.pk for each in asked))
    assert page.count("decided this already") == 10
    assert "2 more were refused." in page


def test_of_many_tools_that_are_refused_ten_are_told_and_how_many_more(as_ada_in: Client, ada: User) -> None:
    opened = open_turn(caller_of_user(ada), Opening("hi"))
    asked = [asks(opened.session_id).pk for _ in range(11)]
    assert "11 requests were decided." in act(as_ada_in, TOOLS, "do_not_allow", *asked)
    page = act(as_ada_in, TOOLS, "do_not_allow", *asked)
    assert page.count("This is decided already: ") == 10
    assert "1 more was refused." in page
    assert "0 requests were decided." in page


def test_an_operator_decides_only_where_they_are_a_member(
    person: object, enter: Enter, session: Session, cy: User
) -> None:
    asked = request_grant(session, "writer")
    cy.is_staff = cy.is_superuser = True
    cy.save()
    act(enter(cy), REQUESTS, "approve_for_session", asked.pk)
    assert GrantRequest.objects.get().status == "pending"


@pytest.mark.parametrize("is_shared", [False, True])
def test_of_somebody_elses_private_chat_it_shows_that_it_is_there_and_no_words(
    as_ada_in: Client, ben: User, workspace: Workspace, is_shared: bool
) -> None:
    """In lists, of each row, by searching, and in what is exported."""
    opened = open_turn(caller_of_user(ben), Opening("Medlars are kept dark"))
    session = Session.objects.get(pk=opened.session_id)
    asked = asks(session.pk, input={"place": "Medlars"}, file_path="Medlars.md", why="Medlars")
    wanted = request_grant(session, "writer", "Medlars")
    given: dict[str, Any] = {
        "arguments": {"file_path": "Medlars.md"},
        "session_id": session.pk,
        "tool": "Read",
    }
    entry = Entry(AuditKind.DECISION, Outcome.ALLOWED, **given)
    append([entry.finished()])
    row = AuditRow.objects.get()
    if is_shared:
        Session.objects.update(visibility="workspace")
    chosen = {"action": "export", "_selected_action": [row.pk]}
    for where, pk in ((TOOLS, asked.pk), (REQUESTS, wanted.pk), (ROWS, row.pk)):
        listed = as_ada_in.get(where)
        assert len(listed.context["cl"].result_list) == 1
        pages = [listed.content, as_ada_in.get(f"{where}{pk}/change/").content]
        assert [b"Medlars" in page for page in pages] == [is_shared] * 2
    for where, word in ((TOOLS, "Medlars"), (REQUESTS, "Medlars"), (ROWS, "Read")):
        assert len(as_ada_in.get(f"{where}?q={word}").context["cl"].result_list) == is_shared
    assert (b"Medlars" in as_ada_in.post(ROWS, chosen).getvalue()) is is_shared
    for where, column in ((TOOLS, "file_path"), (REQUESTS, "reason"), (ROWS, "summary")):
        guess = as_ada_in.get(f"{where}?{column}__startswith=Medl")
        assert guess.status_code == 400, "or it would be told letter by letter"
    deleting = as_ada_in.get(f"/admin/sessions_app/workspace/{workspace.pk}/delete/")
    assert is_shared or b"Medlars" not in deleting.content


def test_whoever_is_no_operator_sees_none_of_it(enter: Enter, ben: User, rows: list[AuditRow]) -> None:
    answer = enter(ben).get(ROWS)
    assert answer.status_code == 302
    assert reverse("admin:login") in answer["Location"]

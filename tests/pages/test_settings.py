"""The settings page: a password, keys, and who is in the workspaces that one owns."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents_app.sandboxes import walls
from agents_app.sandboxes.walls import WhatIsHere
from sessions_app.access.caller import Caller
from sessions_app.access.models import ApiKey, KeyScope, Membership, Role, Workspace
from sessions_app.access.services import caller_of_key, link_is_good, make_key, make_sign_in_link
from tests.pages.browsing import PASSWORD, Enter, is_in, send

pytestmark = pytest.mark.django_db

NEW = "quinces in October"
CHANGE = {"old_password": PASSWORD["password"], "new_password1": NEW, "new_password2": NEW}
KEY = {"name": "laptop", "scopes": ["read", "chat"], "lasts": "90"}
FORMS = ["password", "keys", "keys/1/revoke"]


def role_of(user: User) -> str | None:
    return Membership.objects.filter(user=user).values_list("role", flat=True).first()


def text_of(answer: Any) -> str:
    return re.sub(r"<[^>]+>", " ", answer.content.decode())


@pytest.mark.parametrize("where", FORMS)
def test_a_form_is_for_who_is_in_and_for_its_page(where: str, ada: User, workspace: Workspace) -> None:
    assert Client().post(f"/settings/{where}")["Location"].startswith("/signin?next=")
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(ada)
    assert strict.post(f"/settings/{where}").status_code == 403
    assert strict.get(f"/settings/{where}")["Location"] == "/settings"


# The password


def test_a_new_password_needs_the_one_there_is(as_ada_in: Client, ada: User) -> None:
    for old in ({"old_password": "wrong"}, {"old_password": ""}):
        answer = as_ada_in.post("/settings/password", CHANGE | old)
        assert answer.status_code == 422
        assert 'aria-invalid="true"' in answer.content.decode()
    ada.refresh_from_db()
    assert not ada.check_password(NEW)
    assert as_ada_in.post("/settings/password", CHANGE)["Location"] == "/settings"
    ada.refresh_from_db()
    assert ada.check_password(NEW)


def test_who_came_by_a_link_sets_a_first_password(enter: Enter, ada: User, browser: Client) -> None:
    ada.set_unusable_password()
    ada.save()
    page = enter(ada)
    assert "old_password" not in page.get("/settings").content.decode()
    assert page.post("/settings/password", CHANGE).status_code == 302
    assert send(browser, "/signin", {"username": "ada", "password": NEW})["Location"] == "/"


@pytest.mark.parametrize(
    "bad",
    [
        {"new_password2": "another"},
        {"new_password1": "short", "new_password2": "short"},
        {"new_password1": "password1", "new_password2": "password1"},
        {"new_password1": "", "new_password2": ""},
        {"new_password1": "nul\0 nul nul", "new_password2": "nul\0 nul nul"},
    ],
)
def test_a_bad_new_password_says_why(bad: dict[str, str], as_ada_in: Client, ada: User) -> None:
    answer = as_ada_in.post("/settings/password", CHANGE | bad)
    assert answer.status_code == 422
    assert "errorlist" in answer.content.decode()
    ada.refresh_from_db()
    assert ada.check_password(PASSWORD["password"])


def test_a_new_password_ends_every_other_login_and_no_key(enter: Enter, ada: User) -> None:
    here, there = enter(ada), enter(ada)
    _, token = make_key(ada, "laptop")
    link = make_sign_in_link(ada)
    here.post("/settings/password", CHANGE)
    assert is_in(here)
    assert not is_in(there)
    assert not link_is_good(link)
    assert caller_of_key(token) is not None


def test_the_cookie_of_this_browser_is_a_new_one(as_ada_in: Client) -> None:
    stolen = Client()
    stolen.cookies["sessionid"] = as_ada_in.cookies["sessionid"].value
    as_ada_in.post("/settings/password", CHANGE)
    assert not is_in(stolen)


def test_guesses_at_the_current_password_run_out(as_ada_in: Client) -> None:
    for _ in range(10):
        assert as_ada_in.post("/settings/password", CHANGE | {"old_password": "x"}).status_code == 422
    answer = as_ada_in.post("/settings/password", CHANGE)
    assert answer.status_code == 429
    assert answer["Retry-After"]


def test_a_form_with_another_mistake_costs_no_guess(as_ada_in: Client) -> None:
    for _ in range(12):
        as_ada_in.post("/settings/password", CHANGE | {"new_password2": "x"})
    assert as_ada_in.post("/settings/password", CHANGE).status_code == 302


# Keys


def made(answer: Any) -> str:
    assert answer.status_code == 201
    found = re.search(r"para_[\w-]+", answer.content.decode())
    assert found
    return found[0]


def test_a_key_is_shown_once_and_works(as_ada_in: Client, ada: User) -> None:
    answer = as_ada_in.post("/settings/keys", KEY)
    token = made(answer)
    assert "no-store" in answer["Cache-Control"]
    caller = caller_of_key(token)
    assert caller is not None
    assert (caller.user_id, caller.workspace_ids) == (ada.pk, None)
    assert sorted(caller.scopes) == ["chat", "read"]
    listed = as_ada_in.get("/settings").content.decode()
    assert "laptop" in listed
    assert "para_" not in listed
    assert ApiKey.objects.get().digest not in listed


def test_a_key_may_be_for_one_workspace_and_for_a_while(as_ada_in: Client, workspace: Workspace) -> None:
    caller = caller_of_key(made(as_ada_in.post("/settings/keys", KEY | {"workspaces": ["default"]})))
    assert caller is not None
    assert caller.workspace_ids == frozenset({workspace.pk})
    end = ApiKey.objects.get().expires_at
    assert end is not None
    assert timedelta(days=89) < end - timezone.now() <= timedelta(days=90)


def test_a_key_may_be_for_good(as_ada_in: Client) -> None:
    made(as_ada_in.post("/settings/keys", KEY | {"lasts": "0"}))
    assert ApiKey.objects.get().expires_at is None


@pytest.mark.parametrize(
    "bad",
    [
        {"name": ""},
        {"name": "x" * 101},
        {"name": "\0"},
        {"scopes": []},
        {"scopes": ["all"]},
        {"lasts": "99999999"},
        {"lasts": ""},
        {"workspaces": ["nowhere"]},
        {"workspaces": ["elsewhere"]},
    ],
)
def test_what_cannot_be_taken_makes_no_key(bad: dict[str, Any], as_ada_in: Client, as_cy: Caller) -> None:
    answer = as_ada_in.post("/settings/keys", KEY | bad)
    assert answer.status_code == 422
    assert "<details open>" in answer.content.decode()
    assert not ApiKey.objects.exists()


def test_a_revoked_key_is_over_and_gone(as_ada_in: Client, ada: User) -> None:
    key, token = make_key(ada, "laptop")
    assert as_ada_in.post(f"/settings/keys/{key.pk}/revoke")["Location"] == "/settings"
    assert caller_of_key(token) is None
    assert "laptop" not in as_ada_in.get("/settings").content.decode()
    assert as_ada_in.post(f"/settings/keys/{key.pk}/revoke").status_code == 404


def test_a_key_of_somebody_else_is_not_there(as_ada_in: Client, ben: User) -> None:
    key, token = make_key(ben, "bens own")
    assert "bens own" not in as_ada_in.get("/settings").content.decode()
    assert as_ada_in.post(f"/settings/keys/{key.pk}/revoke").status_code == 404
    assert caller_of_key(token) is not None


def test_a_name_of_a_key_is_text(as_ada_in: Client) -> None:
    answer = as_ada_in.post("/settings/keys", KEY | {"name": "<script>alert(1)</script>"})
    assert b"<script>alert" not in answer.content


def test_a_key_says_whether_it_was_used_and_when_it_ends(as_ada_in: Client, ada: User) -> None:
    make_key(ada, "new")
    _, used = make_key(ada, "old", scopes=[KeyScope.READ])
    caller_of_key(used)
    ApiKey.objects.filter(name="old").update(expires_at=timezone.now() - timedelta(days=1))
    said = text_of(as_ada_in.get("/settings"))
    assert all(word in said for word in ("never used", "just now", "ended", "good until it is revoked"))
    ApiKey.objects.filter(name="old").update(last_used_at=timezone.now() - timedelta(minutes=1))
    assert "minute ago" in text_of(as_ada_in.get("/settings"))


# Members


def test_an_owner_adds_changes_and_removes(as_ada_in: Client, cy: User) -> None:
    assert (
        as_ada_in.post("/workspaces/of/default/members", {"user": "cy", "role": "viewer"}).status_code == 302
    )
    assert role_of(cy) == Role.VIEWER
    one = f"/workspaces/of/default/members/{cy.pk}"
    assert as_ada_in.post(one, {"role": "member"}).status_code == 302
    assert role_of(cy) == Role.MEMBER
    assert as_ada_in.post(f"{one}/remove").status_code == 302
    assert role_of(cy) is None
    assert as_ada_in.post(f"{one}/remove").status_code == 404


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"user": "zoe", "role": "member"}, 422),
        ({"user": "", "role": "member"}, 422),
        ({"user": "\0", "role": "member"}, 422),
        ({"user": "cy", "role": "king"}, 422),
        ({"user": "cy"}, 422),
        ({"user": "ben", "role": "owner"}, 409),
    ],
)
def test_who_cannot_be_added_is_said(
    form: dict[str, str], status: int, as_ada_in: Client, ben: User, cy: User
) -> None:
    answer = as_ada_in.post("/workspaces/of/default/members", form)
    assert answer.status_code == status
    assert 'role="alert"' in answer.content.decode()
    assert (role_of(ben), role_of(cy)) == (Role.MEMBER, None)


def test_who_was_switched_off_is_not_added(as_ada_in: Client, cy: User) -> None:
    User.objects.filter(pk=cy.pk).update(is_active=False)
    answer = as_ada_in.post("/workspaces/of/default/members", {"user": "cy", "role": "member"})
    assert answer.status_code == 422


def test_the_last_owner_stays(as_ada_in: Client, ada: User, ben: User) -> None:
    one = f"/workspaces/of/default/members/{ada.pk}"
    for answer in (as_ada_in.post(one, {"role": "member"}), as_ada_in.post(f"{one}/remove")):
        assert answer.status_code == 409
        assert "last owner" in text_of(answer)
    as_ada_in.post(f"/workspaces/of/default/members/{ben.pk}", {"role": "owner"})
    assert as_ada_in.post(f"{one}/remove").status_code == 302
    assert (role_of(ada), role_of(ben)) == (None, Role.OWNER)


def test_an_owner_who_was_switched_off_is_none_who_is_left(as_ada_in: Client, ada: User, ben: User) -> None:
    Membership.objects.filter(user=ben).update(role=Role.OWNER)
    User.objects.filter(pk=ben.pk).update(is_active=False)
    assert as_ada_in.post(f"/workspaces/of/default/members/{ada.pk}/remove").status_code == 409


@pytest.mark.parametrize(("name", "status"), [("ben", 403), ("vi", 403), ("cy", 404)])
def test_who_owns_nothing_here_changes_nothing(
    name: str, status: int, enter: Enter, ada: User, as_cy: Caller
) -> None:
    user = User.objects.get(username=name)
    page = enter(user)
    for where, form in (
        ("", {"user": "cy", "role": "owner"}),
        (f"/{ada.pk}", {"role": "viewer"}),
        (f"/{ada.pk}/remove", {}),
        (f"/{user.pk}", {"role": "owner"}),
    ):
        assert page.post(f"/workspaces/of/default/members{where}", form).status_code == status
    assert "Add somebody" not in text_of(page.get("/workspaces/of/default"))
    assert role_of(ada) == Role.OWNER


def test_a_workspace_that_is_not_there_is_404(as_ada_in: Client) -> None:
    form = {"user": "cy", "role": "owner"}
    assert as_ada_in.post("/workspaces/of/nowhere/members", form).status_code == 404


def test_who_was_removed_sees_nothing_of_it(as_ada_in: Client, ben: User, enter: Enter) -> None:
    page = enter(ben)
    assert 'value="default"' in page.get("/settings").content.decode()
    as_ada_in.post(f"/workspaces/of/default/members/{ben.pk}/remove")
    assert 'value="default"' not in page.get("/settings").content.decode()
    assert page.post(f"/workspaces/of/default/members/{ben.pk}", {"role": "owner"}).status_code == 404


# The admin


@pytest.mark.parametrize("what", ["auth/user", "sessions_app/workspace", "sessions_app/membership"])
def test_operators_keep_people_and_workspaces(what: str, enter: Enter, ada: User, ben: User) -> None:
    assert enter(ada).get(f"/admin/{what}/").status_code == 200
    assert enter(ada).get(f"/admin/{what}/add/").status_code == 200
    assert enter(ben).get(f"/admin/{what}/", follow=True).status_code == 404


def test_the_admin_shows_keys_without_their_hash(as_ada_in: Client, ben: User) -> None:
    key, token = make_key(ben, "laptop")
    for where in ("", f"{key.pk}/change/"):
        page = as_ada_in.get(f"/admin/sessions_app/apikey/{where}")
        assert page.status_code == 200
        assert "laptop" in page.content.decode()
        assert not any(word in page.content.decode() for word in (token, key.digest, key.digest[:12]))
    assert as_ada_in.get("/admin/sessions_app/apikey/add/").status_code == 403


def test_an_operator_revokes_keys(as_ada_in: Client, ben: User) -> None:
    key, token = make_key(ben, "laptop")
    as_ada_in.post("/admin/sessions_app/apikey/", {"action": "revoke", "_selected_action": [key.pk]})
    assert caller_of_key(token) is None


def test_the_admin_has_no_form_for_ones_own_password(as_ada_in: Client) -> None:
    assert as_ada_in.get("/admin/password_change/")["Location"] == "/settings"


def test_many_keys_and_members_cost_no_query_more(
    as_ada_in: Client, ada: User, workspace: Workspace, django_assert_max_num_queries: Any
) -> None:
    for n in range(5):
        make_key(ada, f"key {n}", workspaces=[workspace])
        Membership.objects.create(workspace=workspace, user=User.objects.create_user(f"somebody{n}"))
    with django_assert_max_num_queries(13):  # five of them for the rail
        assert as_ada_in.get("/settings").status_code == 200


# What agents may reach


def here(monkeypatch: pytest.MonkeyPatch, box: str = "", vault: str = "") -> None:
    """What the machine says of its walls: why they do not work, or nothing."""
    said = [("full", "none", ""), ("vault", "bubblewrap", vault), ("sandboxed", "podman", box)]
    found = [WhatIsHere(level, wall, not why, why, "") for level, wall, why in said]
    monkeypatch.setattr(walls, "what_is_here", lambda: found)


def test_each_level_is_told_with_the_wall_that_works(
    as_ada_in: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    here(monkeypatch)
    page = " ".join(text_of(as_ada_in.get("/settings")).split())
    assert all(name in page for name in ("Whole computer", "This folder", "Read-only box"))
    assert "Works here, with bubblewrap" in page
    assert "Works here, with podman" in page
    assert "Works here, without a wall" in page
    assert "No wall for it here" not in page


def test_an_operator_reads_why_a_level_does_not_work_and_what_follows(
    as_ada_in: Client, enter: Enter, ben: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    here(monkeypatch, box="podman is not installed: <b>apt</b> install podman.")
    page = as_ada_in.get("/settings").content.decode()
    assert "podman is not installed: &lt;b&gt;apt&lt;/b&gt; install podman." in page
    assert "Until then nothing runs at this level." in page
    assert "podman is not installed" not in enter(ben).get("/settings").content.decode()
    here(monkeypatch, vault="bubblewrap is not installed.")
    assert "Until then a person decides about each command" in text_of(as_ada_in.get("/settings"))

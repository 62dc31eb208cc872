"""The pages: signing in and out, what they show to whom, and how they look when something is wrong."""

import logging
from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import path
from django.utils import timezone

from agents_app.turns.said.opening import Opening, open_turn
from parachute_site.logs import IsNews
from parachute_site.urls import urlpatterns as ours
from sessions_app.access.caller import Caller
from sessions_app.access.models import SignInLink, Workspace
from sessions_app.access.services import make_sign_in_link
from tests.pages.browsing import PASSWORD, is_in, send

pytestmark = pytest.mark.django_db


def breaks(request: object) -> HttpResponse:
    raise ZeroDivisionError("a secret")


urlpatterns = [*ours, path("breaks", breaks), path("api/breaks", breaks)]


def test_a_name_and_its_password_sign_in(browser: Client) -> None:
    answer = send(browser, "/signin", PASSWORD)
    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert is_in(browser)


@pytest.mark.parametrize(
    "change", [{"password": "wrong"}, {"username": "zoe"}, {"username": "a\0b"}, {"password": ""}]
)
def test_anything_else_says_what_to_do(change: dict[str, str], browser: Client) -> None:
    answer = send(browser, "/signin", PASSWORD | change)
    assert answer.status_code == 403
    assert "make signin" in answer.content.decode()
    assert not is_in(browser)


def test_who_was_switched_off_does_not_get_in(browser: Client, ada: User) -> None:
    User.objects.update(is_active=False)
    assert send(browser, "/signin", PASSWORD).status_code == 403


def test_signing_in_needs_the_token_of_the_page(browser: Client) -> None:
    browser.get("/signin")
    answer = browser.post("/signin", PASSWORD)
    assert answer.status_code == 403
    assert "This page was open for too long" in answer.content.decode()
    assert not is_in(browser)


def test_signing_in_changes_the_session_and_the_token(browser: Client) -> None:
    browser.get("/signin")
    session = browser.session
    session["planted"] = True
    session.save()
    browser.cookies["sessionid"] = planted = str(session.session_key)
    before = browser.cookies["csrftoken"].value
    send(browser, "/signin", PASSWORD)
    assert browser.cookies["sessionid"].value != planted
    assert browser.cookies["csrftoken"].value != before


def test_the_cookie_of_a_login_is_for_nobody_else(browser: Client) -> None:
    send(browser, "/signin", PASSWORD)
    cookie = browser.cookies["sessionid"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"


def test_a_page_that_was_asked_for_is_where_one_gets(browser: Client) -> None:
    wanted = f"/chat/{uuid4()}"
    asked = browser.get(wanted)
    assert asked["Location"] == f"/signin?next={wanted}"
    page = browser.get(asked["Location"])
    assert f'name="next" value="{wanted}"' in page.content.decode()
    assert send(browser, asked["Location"], {**PASSWORD, "next": wanted})["Location"] == wanted


@pytest.mark.parametrize(
    "wanted",
    [
        "https://evil.example/",
        "//evil.example/",
        "///evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "javascript:alert(1)",
        "http:evil.example",
        "http://testserver@evil.example/",
        " //evil.example",
        "\x00//evil.example",
    ],
)
def test_nobody_is_sent_elsewhere_after_signing_in(wanted: str, browser: Client) -> None:
    assert send(browser, "/signin", {**PASSWORD, "next": wanted})["Location"] == "/"


def test_who_is_in_already_finds_the_way_on(as_ada_in: Client) -> None:
    """A tab whose login was renewed in another one is sent here."""
    page = as_ada_in.get("/signin?next=/settings").content.decode()
    assert "You are signed in as ada" in page
    assert 'href="/settings"' in page
    assert "evil" not in as_ada_in.get("/signin?next=//evil.example/").content.decode()


# By a link


@pytest.fixture
def link(ada: User) -> str:
    return f"/signin/{make_sign_in_link(ada)}"


def test_a_link_shows_a_button_and_the_button_uses_it(browser: Client, link: str) -> None:
    for _ in range(3):  # what fetches links ahead uses none up
        page = browser.get(link)
        assert page.status_code == 200
        assert "<button" in page.content.decode()
        assert browser.head(link).status_code == 200
    assert not is_in(browser)
    assert send(browser, link)["Location"] == "/welcome"  # once: see test_welcome.py
    assert is_in(browser)


def test_a_link_is_good_once(browser: Client, link: str) -> None:
    send(browser, link)
    other = Client()
    for answer in (other.get(link), other.post(link)):
        assert answer.status_code == 403
        assert "make signin" in answer.content.decode()
    assert not is_in(other)


def test_who_is_in_and_opens_the_used_link_again_goes_to_the_chats(browser: Client, link: str) -> None:
    send(browser, link)
    assert browser.get(link)["Location"] == "/"


def test_a_link_is_good_for_ten_minutes(browser: Client, link: str) -> None:
    assert SignInLink.objects.get().expires_at - timezone.now() > timedelta(minutes=9)
    now = timezone.now()
    SignInLink.objects.update(created_at=now - timedelta(minutes=11), expires_at=now - timedelta(minutes=1))
    assert browser.get(link).status_code == 403


@pytest.mark.parametrize("token", ["wrong", "x" * 5_000, "%00", "..", "é"])
def test_a_link_that_was_never_made_says_what_to_do(token: str, browser: Client) -> None:
    answer = browser.get(f"/signin/{token}")
    assert answer.status_code == 403
    assert "make signin" in answer.content.decode()


def test_a_link_needs_the_token_of_its_page(browser: Client, link: str) -> None:
    browser.get(link)
    assert browser.post(link).status_code == 403
    assert send(browser, link).status_code == 302  # and is not used up by the attempt


def test_no_log_line_holds_a_link(browser: Client, link: str, caplog: pytest.LogCaptureFixture) -> None:
    browser.get(link)
    browser.post(link)  # without a token: Django logs the path that it refused
    assert "/signin/…" in caplog.text
    assert link not in caplog.text


def test_that_we_are_not_ready_is_no_news() -> None:
    line = logging.LogRecord(
        "django.request", logging.ERROR, "", 0, "%s: %s", ("No", "/api/health/ready"), None
    )
    assert not IsNews().filter(line)


# Signed in


def test_signing_out_ends_the_login(as_ada_in: Client) -> None:
    assert as_ada_in.get("/signout")["Location"] == "/"
    assert is_in(as_ada_in)
    assert as_ada_in.post("/signout")["Location"] == "/signin"
    assert not is_in(as_ada_in)


@pytest.mark.parametrize("page", ["/", "/settings", f"/chat/{uuid4()}"])
def test_a_page_is_for_who_is_in(page: str, browser: Client) -> None:
    answer = browser.get(page)
    assert (answer.status_code, answer["Location"]) == (302, f"/signin?next={page}")


def test_a_chat_is_shown_to_who_may_see_it(as_ada: Caller, as_cy: Caller, ada: User, cy: User) -> None:
    said = open_turn(as_ada, Opening("<script>alert('quinces')</script>"))
    for user, status in ((ada, 200), (cy, 404)):
        client = Client()
        client.force_login(user)
        page = client.get(f"/chat/{said.session_id}")
        assert page.status_code == status
        assert b"<script>alert" not in page.content
        assert (b"quinces" in page.content) == (status == 200)
        assert (b"quinces" in client.get("/").content) == (status == 200)


def test_a_chat_that_is_not_there_is_404_in_our_look(as_ada_in: Client) -> None:
    for where in (f"/chat/{uuid4()}", "/chat/17", "/nowhere", "/.env", "/static/../manage.py"):
        page = as_ada_in.get(where)
        assert page.status_code == 404
        assert "There is nothing here" in page.content.decode()


@pytest.mark.urls(__name__)
def test_what_breaks_is_500_in_our_look_and_says_no_secret(as_ada_in: Client) -> None:
    as_ada_in.raise_request_exception = False
    page = as_ada_in.get("/breaks")
    assert page.status_code == 500
    assert "Something failed" in page.content.decode()
    assert "secret" not in page.content.decode()
    answer = as_ada_in.get("/api/breaks")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")


@pytest.mark.parametrize(
    "page",
    [
        "/",
        "/settings",
        "/signin",
        "/signin/wrong",
        "/nowhere",
        "/admin/",
        "/api/docs",
        "/api/nothing",
        "/static/page.css",
    ],
)
def test_every_page_has_our_policy(page: str, as_ada_in: Client) -> None:
    answer = as_ada_in.get(page)
    policy = answer["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert not any(word in policy for word in ("unsafe", "*", "http:", "https:", "ws:"))
    assert answer["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("page", ["/", "/settings", "/signin", "/welcome", "/nowhere"])
def test_no_page_has_anything_inline_or_from_elsewhere(page: str, as_ada_in: Client) -> None:
    html = as_ada_in.get(page).content.decode()
    assert not any(
        word in html for word in (" style=", " onclick=", "<style", "//cdn", "http://", "https://")
    )
    assert html.count("<script") == html.count('<script type="module" src="/static/')


@pytest.mark.parametrize("page", ["/", "/settings", "/signin", "/welcome"])
def test_a_page_is_kept_by_nobody(page: str, as_ada_in: Client) -> None:
    assert "no-store" in as_ada_in.get(page)["Cache-Control"]


def test_a_host_that_is_not_served_gets_no_page(as_ada_in: Client) -> None:
    assert as_ada_in.get("/", headers={"host": "evil.example"}).status_code == 400


# The admin


def test_the_admin_is_for_operators(ada: User, ben: User, workspace: Workspace) -> None:
    for user, status in ((ada, 200), (ben, 404)):
        client = Client()
        client.force_login(user)
        assert client.get("/admin/", follow=True).status_code == status


def test_what_nobody_may_do_there_is_403_in_our_look(as_ada_in: Client) -> None:
    page = as_ada_in.get("/admin/permissions_app/auditrow/add/")
    assert page.status_code == 403
    assert "This is not yours to do" in page.content.decode()
    assert 'href="/"' in page.content.decode()
    assert "<script" not in page.content.decode()


def test_the_admin_has_no_door_of_its_own(browser: Client) -> None:
    answer = browser.get("/admin/", follow=True)
    assert answer.redirect_chain[-1][0] == "/signin?next=/admin/"
    assert send(browser, "/signin", {**PASSWORD, "next": "/admin/"})["Location"] == "/admin/"
    assert Client().post("/admin/login/", PASSWORD).status_code == 302


def test_the_admin_sends_nobody_elsewhere(browser: Client) -> None:
    answer = browser.get("/admin/login/?next=//evil.example/")
    assert answer["Location"] == "/signin?next=/admin/"

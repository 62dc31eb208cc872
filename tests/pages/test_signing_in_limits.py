"""Wrong passwords and links run out, and the owner gets in all the same."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from sessions_app.access.models import SignInTries
from sessions_app.access.services import make_sign_in_link
from tests.pages.browsing import PASSWORD, is_in, send

pytestmark = pytest.mark.django_db

Clock = Callable[..., None]
WRONG = PASSWORD | {"password": "wrong"}


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Clock:
    def move(**by: float) -> None:
        then = timezone.now() + timedelta(**by)
        monkeypatch.setattr(timezone, "now", lambda: then)

    return move


def fail(browser: Client, times: int, **change: str) -> None:
    for _ in range(times):
        assert send(browser, "/signin", WRONG | change).status_code == 403


def test_the_eleventh_wrong_password_is_told_to_wait(browser: Client) -> None:
    fail(browser, 10)
    answer = send(browser, "/signin", WRONG)
    assert answer.status_code == 429
    assert 590 <= int(answer["Retry-After"]) <= 600
    assert "Try again in 10 minutes" in answer.content.decode()


def test_the_right_password_waits_too(browser: Client) -> None:
    fail(browser, 10)
    assert send(browser, "/signin", PASSWORD).status_code == 429
    assert not is_in(browser)


def test_it_is_over_after_ten_minutes_whatever_came_meanwhile(browser: Client, later: Clock) -> None:
    fail(browser, 10)
    later(minutes=9)
    assert send(browser, "/signin", WRONG).status_code == 429
    later(minutes=1.1)
    assert send(browser, "/signin", PASSWORD).status_code == 302


def test_a_link_lets_the_owner_in_through_every_limit(browser: Client, ada: User) -> None:
    for n in range(40):
        send(browser, "/signin", WRONG | {"username": f"nobody{n}"})
    assert browser.get("/signin/bad").status_code == 429
    assert send(browser, f"/signin/{make_sign_in_link(ada)}").status_code == 302
    assert is_in(browser)


def test_a_name_that_nobody_has_runs_out_in_the_same_way(browser: Client) -> None:
    fail(browser, 10, username="zoe")
    assert send(browser, "/signin", WRONG | {"username": "zoe"}).status_code == 429
    assert send(browser, "/signin", PASSWORD).status_code == 302


@pytest.mark.parametrize("name", ["ADA", "\uff41da", "Ada"])
def test_a_name_is_one_however_it_is_written(name: str, browser: Client) -> None:
    fail(browser, 10, username=name)
    assert send(browser, "/signin", PASSWORD).status_code == 429


def test_an_address_runs_out_over_many_names(browser: Client) -> None:
    for n in range(30):
        fail(browser, 1, username=f"nobody{n}")
    assert send(browser, "/signin", PASSWORD).status_code == 429
    elsewhere = Client(enforce_csrf_checks=True, REMOTE_ADDR="192.0.2.7")
    assert send(elsewhere, "/signin", PASSWORD).status_code == 302


def test_a_home_in_ipv6_is_one_address(browser: Client) -> None:
    for n in range(30):
        fail(Client(enforce_csrf_checks=True, REMOTE_ADDR=f"2001:db8::{n:x}"), 1, username=f"nobody{n}")
    same, other = (
        Client(enforce_csrf_checks=True, REMOTE_ADDR=where) for where in ("2001:db8::ffff", "2001:db8:1::1")
    )
    assert send(same, "/signin", PASSWORD).status_code == 429
    assert send(other, "/signin", PASSWORD).status_code == 302


def test_addresses_of_ipv4_stay_apart_on_a_socket_of_ipv6(browser: Client) -> None:
    for n in range(31):
        fail(Client(enforce_csrf_checks=True, REMOTE_ADDR=f"::ffff:192.0.2.{n}"), 1, username=f"nobody{n}")


def test_a_right_password_gives_the_tries_of_its_name_back(browser: Client) -> None:
    for _ in range(2):
        fail(browser, 9)
        assert send(browser, "/signin", PASSWORD).status_code == 302
        browser.logout()


def test_one_good_name_buys_no_tries_at_others(browser: Client) -> None:
    for n in range(30):
        fail(browser, 1, username=f"nobody{n}")
        browser.logout()
        if n < 29:
            assert send(browser, "/signin", PASSWORD).status_code == 302
            browser.logout()
    assert send(browser, "/signin", PASSWORD).status_code == 429


def test_bad_links_run_out(browser: Client) -> None:
    for _ in range(30):
        assert browser.get("/signin/bad").status_code == 403
    answer = browser.get("/signin/bad")
    assert answer.status_code == 429
    assert answer["Retry-After"]


def test_nobody_reads_in_the_database_who_tried(browser: Client) -> None:
    fail(browser, 1, username="my password in the wrong field")
    assert "wrong field" not in str(list(SignInTries.objects.values()))


def test_old_tries_are_cleared_away(browser: Client, later: Clock) -> None:
    fail(browser, 3, username="zoe")
    later(minutes=11)
    fail(browser, 1, username="yan")
    assert SignInTries.objects.count() == 2


def test_an_unknown_name_is_answered_as_a_wrong_password(browser: Client) -> None:
    wrong, unknown = (
        send(browser, "/signin", WRONG | change).content.decode() for change in ({}, {"username": "zoe"})
    )
    assert wrong.partition("<form")[0] == unknown.partition("<form")[0]


def test_who_has_no_password_gets_in_with_none(browser: Client, ada: User) -> None:
    ada.set_unusable_password()
    ada.save()
    for password in ("", "!", ada.password):
        assert send(browser, "/signin", PASSWORD | {"password": password}).status_code == 403

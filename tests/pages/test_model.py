"""A key is entered in the page, and counts from then on. Only operators see that there is one."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents_app.model import chosen
from agents_app.model.endpoint import ModelEndpoint
from tests.model_on_loopback import Taking, taking
from tests.pages.browsing import Enter

pytestmark = pytest.mark.django_db

KEY = "sk-ant-api03-a-key-of-a-decent-length"
WHERE = "/settings/model"


@pytest.fixture
def model() -> Iterator[Taking]:
    with taking(KEY) as model:
        yield model


def form(model: Taking, key: str = KEY) -> dict[str, str]:
    return {"key": key, "kind": "", "address": model.url}


def html(page: Client, where: str) -> str:
    return page.get(where).content.decode()


@pytest.mark.parametrize("where", [WHERE, f"{WHERE}/remove", "/welcome/model", "/welcome/vault"])
def test_a_form_is_for_operators_who_are_in_and_for_its_page(
    where: str, ada: User, ben: User, enter: Enter, model: Taking
) -> None:
    assert Client().post(where)["Location"].startswith("/signin?next=")
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(ada)
    assert strict.post(where).status_code == 403
    assert strict.get(where)["Location"] in ("/settings", "/welcome")
    answer = enter(ben).post(where, form(model) | {"path": "/tmp"})
    assert answer.status_code == 403
    assert "Only an operator" in answer.content.decode()
    assert model.asked == []


def test_with_a_key_of_the_api_nobody_reaches_it(ada: User, key: Any, model: Taking) -> None:
    assert Client().post(WHERE, form(model), headers=key(ada)).status_code == 302
    assert chosen.current().is_demo


def test_leaving_the_demo_begins_a_new_chat(as_ada_in: Client, model: Taking) -> None:
    assert "demo answers" in html(as_ada_in, "/settings")
    answer = as_ada_in.post(WHERE, form(model))
    assert answer["Location"] == "/"
    page = html(as_ada_in, "/settings")
    assert f"{model.url} answers from now on." in page
    assert f"…{KEY[-4:]}" in page
    assert KEY not in page
    assert not as_ada_in.get("/").context["is_demo"]


def test_at_anthropic_it_is_claude_who_answers(as_ada_in: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chosen, "check", lambda endpoint, kind: "")
    as_ada_in.post(WHERE, {"key": KEY})
    assert "Claude answers from now on." in html(as_ada_in, "/settings")


def test_another_key_stays_on_the_page_and_without_one_the_demo_is_back(
    as_ada_in: Client, model: Taking
) -> None:
    as_ada_in.post(WHERE, form(model))
    form_again = as_ada_in.get("/settings").context["model_form"]
    assert form_again["address"].value() == model.url  # or the next key for it would go elsewhere
    assert as_ada_in.post(WHERE, form(model))["Location"] == "/settings"
    assert as_ada_in.post(f"{WHERE}/remove")["Location"] == "/settings"
    assert as_ada_in.get("/").context["is_demo"]


def test_a_wrong_key_is_refused_beside_its_field_and_not_repeated(as_ada_in: Client, model: Taking) -> None:
    answer = as_ada_in.post(WHERE, form(model, "sk-ant-a-wrong-key"))
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "does not accept this key" in page
    assert "sk-ant-a-wrong-key" not in page
    assert as_ada_in.post(WHERE, {}).status_code == 422


def test_what_could_not_be_checked_is_said(as_ada_in: Client, model: Taking) -> None:
    model.status = 529
    as_ada_in.post(WHERE, form(model))
    assert "answered 529" in html(as_ada_in, "/settings")


def test_what_the_environment_says_is_shown_and_cannot_be_changed(
    as_ada_in: Client, settings: Any, model: Taking
) -> None:
    settings.PARACHUTE_MODEL = ModelEndpoint("https://gateway.example")
    settings.PARACHUTE_MODEL_IS_SET_BY = ("ANTHROPIC_BASE_URL",)
    page = html(as_ada_in, "/settings")
    assert "ANTHROPIC_BASE_URL" in page
    assert "<fieldset disabled" in page
    answer = as_ada_in.post(WHERE, form(model))
    assert answer.status_code == 409
    assert "ANTHROPIC_BASE_URL" in answer.content.decode()


def test_a_stored_key_that_cannot_be_read_is_said(as_ada_in: Client, settings: Any, model: Taking) -> None:
    as_ada_in.post(WHERE, form(model))
    settings.SECRET_KEY, key = "another", settings.SECRET_KEY
    settings.SECRET_KEY_FALLBACKS = [key]  # who is in stays in
    assert "Enter the key again" in html(as_ada_in, "/settings")


def test_who_is_no_operator_is_told_nothing_of_it(ben: User, enter: Enter) -> None:
    assert "demo answers" not in html(enter(ben), "/settings")

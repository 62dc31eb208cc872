"""Which model answers: the environment's, else the one that was entered, else the demo."""

import logging
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from agents_app import model_access, model_check
from agents_app.endpoint import ANTHROPIC, OAUTH_BETA, ModelEndpoint
from agents_app.model_access import Wanted
from agents_app.models import ModelAccess
from sessions_app.access.caller import Caller
from sessions_app.errors import Conflict, Forbidden, Invalid
from tests.model_on_loopback import Taking, taking

pytestmark = [pytest.mark.database, pytest.mark.django_db]

KEY = "sk-ant-api03-a-key-of-a-decent-length"
OTHER = "sk-ant-api03-another-key-of-that-length"


@pytest.fixture
def model() -> Iterator[Taking]:
    with taking(KEY) as model:
        yield model


@pytest.fixture
def nothing_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_access, "check", lambda endpoint, kind: "")


def stored() -> ModelAccess:
    return ModelAccess.objects.get()


def test_without_anything_the_demo_answers() -> None:
    assert model_access.current().is_demo


def test_a_key_that_the_model_takes_opens_it_from_now_on(as_ada: Caller, model: Taking) -> None:
    assert model_access.save(as_ada, Wanted(f" {KEY}\n", address=f"{model.url}/v1/")) == ""
    assert model_access.current() == ModelEndpoint(model.url, ("x-api-key", KEY))
    assert model.asked[0]["anthropic-version"]
    model_access.remove(as_ada)
    assert model_access.current().is_demo


@pytest.mark.parametrize("status", [401, 403, 302])
def test_one_that_is_refused_changes_nothing(as_ada: Caller, model: Taking, status: int) -> None:
    model_access.save(as_ada, Wanted(KEY, address=model.url))
    model.status = status
    with pytest.raises(Invalid) as refused:
        model_access.save(as_ada, Wanted(OTHER, address=model.url))
    assert OTHER not in str(refused.value.as_json())
    assert len(model.asked) == 2  # a redirect is not followed
    assert model_access.current().header == ("x-api-key", KEY)


@pytest.mark.parametrize("status", [404, 429, 529])
def test_one_that_nobody_could_check_is_kept_and_that_is_said(
    as_ada: Caller, model: Taking, status: int
) -> None:
    model.status = status
    assert f"answered {status}" in model_access.save(as_ada, Wanted(OTHER, address=model.url))
    assert model_access.current().header == ("x-api-key", OTHER)


def test_so_is_one_for_a_model_that_is_not_there_or_says_nothing(
    as_ada: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_check, "PATIENCE", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert "could not be reached" in model_access.save(
            as_ada, Wanted(KEY, address=f"http://127.0.0.1:{port}")
        )
    assert "could not be reached" in model_access.save(
        as_ada, Wanted(KEY, address=f"http://127.0.0.1:{port}")
    )


@pytest.mark.usefixtures("nothing_is_checked")
@pytest.mark.parametrize(
    ("wanted", "header", "beta"),
    [
        (Wanted("sk-ant-oat01-xxxxxxxx"), "Bearer sk-ant-oat01-xxxxxxxx", OAUTH_BETA),
        (Wanted("token-of-a-gateway", "auth_token"), "Bearer token-of-a-gateway", ""),
        (Wanted("anything-else-here"), "anything-else-here", ""),
    ],
)
def test_the_beginning_tells_what_it_is(as_ada: Caller, wanted: Wanted, header: str, beta: str) -> None:
    model_access.save(as_ada, wanted)
    now = model_access.current()
    assert now.header
    assert (now.url, now.header[1], now.beta) == (ANTHROPIC, header, beta)


@pytest.mark.usefixtures("nothing_is_checked")
@pytest.mark.parametrize(
    "wanted",
    [
        Wanted("short"),
        Wanted("two words here"),
        Wanted("with\r\nx-evil: header"),
        Wanted("schlüssel-mit-ü"),
        Wanted(KEY, address="ftp://x.example"),
        Wanted(KEY, address="https://me:secret@x.example"),
        Wanted(KEY, address="https://x.example/?a=b"),
        Wanted(KEY, address="https://x.example:port"),
        Wanted(KEY, address="https://"),
    ],
)
def test_what_cannot_be_meant_is_refused(as_ada: Caller, wanted: Wanted) -> None:
    with pytest.raises(Invalid):
        model_access.save(as_ada, wanted)
    assert not ModelAccess.objects.exists()


@pytest.mark.usefixtures("nothing_is_checked")
def test_only_an_operator_in_person_changes_it(as_ada: Caller, as_ben: Caller) -> None:
    for caller in (as_ben, replace(as_ada, key_id=1)):
        with pytest.raises(Forbidden):
            model_access.save(caller, Wanted(KEY))
        with pytest.raises(Forbidden):
            model_access.remove(caller)


@pytest.mark.usefixtures("nothing_is_checked")
def test_the_environment_wins_and_says_so(
    as_ada: Caller, settings: Any, django_assert_num_queries: Any
) -> None:
    model_access.save(as_ada, Wanted(KEY))
    settings.PARACHUTE_MODEL = ModelEndpoint("https://gateway.example")
    settings.PARACHUTE_MODEL_IS_SET_BY = ("ANTHROPIC_BASE_URL",)
    with django_assert_num_queries(0):
        assert model_access.current().url == "https://gateway.example"
    with pytest.raises(Conflict, match="ANTHROPIC_BASE_URL"):
        model_access.save(as_ada, Wanted(KEY))


@pytest.mark.usefixtures("nothing_is_checked")
def test_it_is_sealed_and_in_no_log(as_ada: Caller, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="agents_app")
    model_access.save(as_ada, Wanted(KEY))
    kept = str(ModelAccess.objects.values().get())
    assert KEY not in kept + repr(stored()) + repr(model_access.current()) + repr(Wanted(KEY)) + caplog.text
    assert stored().ending == KEY[-4:]
    model_access.save(as_ada, Wanted("only-12-long"))
    assert stored().ending == ""


@pytest.mark.usefixtures("nothing_is_checked")
def test_with_another_secret_key_it_says_what_to_do(as_ada: Caller, settings: Any) -> None:
    model_access.save(as_ada, Wanted(KEY))
    settings.SECRET_KEY = "another one"
    now = model_access.current()
    assert not now.is_demo
    assert now.header is None
    assert "Enter the key again" in now.problem
    model_access.save(as_ada, Wanted(KEY))
    assert model_access.current().problem == ""


@pytest.mark.usefixtures("nothing_is_checked")
def test_there_is_one_and_of_a_known_kind(as_ada: Caller) -> None:
    model_access.save(as_ada, Wanted(KEY))
    model_access.save(as_ada, Wanted(OTHER))
    assert stored().ending == OTHER[-4:]
    for wrong in ({"id": 2}, {"kind": "guess"}):
        with pytest.raises(IntegrityError), transaction.atomic():
            ModelAccess.objects.update(**wrong)

"""Which model answers: the environment's, else the one that was entered, else the demo."""

import logging
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from agents_app.model import check, chosen
from agents_app.model.chosen import Typed
from agents_app.model.endpoint import ANTHROPIC, OAUTH_BETA, ModelEndpoint
from agents_app.models import ModelAccess
from sessions_app.access.caller import Caller
from sessions_app.errors import Conflict, Forbidden, Invalid
from tests.model_on_loopback import Taking, taking

pytestmark = pytest.mark.django_db

KEY = "sk-ant-api03-a-key-of-a-decent-length"
OTHER = "sk-ant-api03-another-key-of-that-length"


@pytest.fixture
def model() -> Iterator[Taking]:
    with taking(KEY) as model:
        yield model


@pytest.fixture
def nothing_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chosen, "check", lambda endpoint, kind: "")


def stored() -> ModelAccess:
    return ModelAccess.objects.get()


def test_without_anything_the_demo_answers() -> None:
    assert chosen.current().is_demo


def test_a_key_that_the_model_takes_opens_it_from_now_on(as_ada: Caller, model: Taking) -> None:
    assert chosen.save(as_ada, Typed(f" {KEY}\n", address=f"{model.url}/v1/")) == ""
    assert chosen.current() == ModelEndpoint(model.url, ("x-api-key", KEY))
    assert model.asked[0]["anthropic-version"]
    chosen.remove(as_ada)
    assert chosen.current().is_demo


@pytest.mark.parametrize("status", [401, 403, 302])
def test_one_that_is_refused_changes_nothing(as_ada: Caller, model: Taking, status: int) -> None:
    chosen.save(as_ada, Typed(KEY, address=model.url))
    model.status = status
    with pytest.raises(Invalid) as refused:
        chosen.save(as_ada, Typed(OTHER, address=model.url))
    assert OTHER not in str(refused.value.as_json())
    assert len(model.asked) == 2  # a redirect is not followed
    assert chosen.current().header == ("x-api-key", KEY)


@pytest.mark.parametrize("status", [404, 429, 529])
def test_one_that_nobody_could_check_is_kept_and_that_is_said(
    as_ada: Caller, model: Taking, status: int
) -> None:
    model.status = status
    assert f"answered {status}" in chosen.save(as_ada, Typed(OTHER, address=model.url))
    assert chosen.current().header == ("x-api-key", OTHER)


def test_so_is_one_for_a_model_that_is_not_there_or_says_nothing(
    as_ada: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "PATIENCE", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert "could not be reached" in chosen.save(as_ada, Typed(KEY, address=f"http://127.0.0.1:{port}"))
    assert "could not be reached" in chosen.save(as_ada, Typed(KEY, address=f"http://127.0.0.1:{port}"))


@pytest.mark.usefixtures("nothing_is_checked")
@pytest.mark.parametrize(
    ("wanted", "header", "beta"),
    [
        (Typed("sk-ant-oat01-xxxxxxxx"), "Bearer sk-ant-oat01-xxxxxxxx", OAUTH_BETA),
        (Typed("token-of-a-gateway", "auth_token"), "Bearer token-of-a-gateway", ""),
        (Typed("anything-else-here"), "anything-else-here", ""),
    ],
)
def test_the_beginning_tells_what_it_is(as_ada: Caller, wanted: Typed, header: str, beta: str) -> None:
    chosen.save(as_ada, wanted)
    now = chosen.current()
    assert now.header
    assert (now.url, now.header[1], now.beta) == (ANTHROPIC, header, beta)


@pytest.mark.usefixtures("nothing_is_checked")
@pytest.mark.parametrize(
    "wanted",
    [
        Typed("short"),
        Typed("two words here"),
        Typed("with\r\nx-evil: header"),
        Typed("schlüssel-mit-ü"),
        Typed(KEY, address="ftp://x.example"),
        Typed(KEY, address="https://me:secret@x.example"),
        Typed(KEY, address="https://x.example/?a=b"),
        Typed(KEY, address="https://x.example:port"),
        Typed(KEY, address="https://"),
    ],
)
def test_what_cannot_be_meant_is_refused(as_ada: Caller, wanted: Typed) -> None:
    with pytest.raises(Invalid):
        chosen.save(as_ada, wanted)
    assert not ModelAccess.objects.exists()


@pytest.mark.usefixtures("nothing_is_checked")
def test_only_an_operator_in_person_changes_it(as_ada: Caller, as_ben: Caller) -> None:
    for caller in (as_ben, replace(as_ada, key_id=1)):
        with pytest.raises(Forbidden):
            chosen.save(caller, Typed(KEY))
        with pytest.raises(Forbidden):
            chosen.remove(caller)


@pytest.mark.usefixtures("nothing_is_checked")
def test_the_environment_wins_and_says_so(
    as_ada: Caller, settings: Any, django_assert_num_queries: Any
) -> None:
    chosen.save(as_ada, Typed(KEY))
    settings.PARACHUTE_MODEL = ModelEndpoint("https://gateway.example")
    settings.PARACHUTE_MODEL_IS_SET_BY = ("ANTHROPIC_BASE_URL",)
    with django_assert_num_queries(0):
        assert chosen.current().url == "https://gateway.example"
    with pytest.raises(Conflict, match="ANTHROPIC_BASE_URL"):
        chosen.save(as_ada, Typed(KEY))


@pytest.mark.usefixtures("nothing_is_checked")
def test_it_is_sealed_and_in_no_log(as_ada: Caller, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="agents_app")
    chosen.save(as_ada, Typed(KEY))
    kept = str(ModelAccess.objects.values().get())
    assert KEY not in kept + repr(stored()) + repr(chosen.current()) + repr(Typed(KEY)) + caplog.text
    assert stored().ending == KEY[-4:]
    chosen.save(as_ada, Typed("only-12-long"))
    assert stored().ending == ""


@pytest.mark.usefixtures("nothing_is_checked")
def test_with_another_secret_key_it_says_what_to_do(as_ada: Caller, settings: Any) -> None:
    chosen.save(as_ada, Typed(KEY))
    settings.SECRET_KEY = "another one"
    now = chosen.current()
    assert not now.is_demo
    assert now.header is None
    assert "Enter the key again" in now.problem
    chosen.save(as_ada, Typed(KEY))
    assert chosen.current().problem == ""


@pytest.mark.database
@pytest.mark.usefixtures("nothing_is_checked")
def test_there_is_one_and_of_a_known_kind(as_ada: Caller) -> None:
    chosen.save(as_ada, Typed(KEY))
    chosen.save(as_ada, Typed(OTHER))
    assert stored().ending == OTHER[-4:]
    for wrong in ({"id": 2}, {"kind": "guess"}):
        with pytest.raises(IntegrityError), transaction.atomic():
            ModelAccess.objects.update(**wrong)

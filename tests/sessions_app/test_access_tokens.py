"""Tokens of helper processes: for one session, one audience, and as long as what they were made for lives."""

from uuid import uuid4

import pytest

from sessions_app.access import tokens
from sessions_app.access.tokens import Audience
from sessions_app.errors import Forbidden, Unauthenticated

SESSION = uuid4()
LIVING = set[str]()


@pytest.fixture(autouse=True)
def living(monkeypatch: pytest.MonkeyPatch) -> None:
    LIVING.clear()
    LIVING.add("run-1")
    monkeypatch.setitem(tokens.alive, Audience.CURATOR, lambda token: token.holder in LIVING)


def test_it_says_for_whom_it_is_while_that_lives() -> None:
    text = tokens.issue(Audience.CURATOR, SESSION, "run-1")
    assert tokens.read(text, Audience.CURATOR, SESSION).holder == "run-1"
    LIVING.clear()
    with pytest.raises(Unauthenticated):
        tokens.read(text, Audience.CURATOR, SESSION)


def test_it_opens_nothing_else() -> None:
    text = tokens.issue(Audience.CURATOR, SESSION, "run-1")
    for audience, session in ((Audience.CURATOR, uuid4()), (Audience.ORCHESTRATION, SESSION)):
        with pytest.raises(Forbidden):
            tokens.read(text, audience, session)


@pytest.mark.parametrize("spoilt", ["", "x", "para_x", "\0", "a:b:c"])
def test_what_is_no_token_is_nobody(spoilt: str) -> None:
    good = tokens.issue(Audience.CURATOR, SESSION, "run-1")
    for text in (spoilt, good[:-1], good + "x", tokens.issue(Audience.SESSION, SESSION, "run-1")):
        with pytest.raises(Unauthenticated):
            tokens.read(text, Audience.CURATOR, SESSION)

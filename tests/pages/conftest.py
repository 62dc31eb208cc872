import pytest
from django.contrib.auth.models import User
from django.test import Client

from sessions_app.access.models import Workspace
from tests.pages.browsing import Enter


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents_app.turns.held.ringing.send", lambda args, queue: None)


@pytest.fixture
def browser(workspace: Workspace) -> Client:
    return Client(enforce_csrf_checks=True)


@pytest.fixture
def enter(workspace: Workspace) -> Enter:
    """A browser in which somebody is signed in."""

    def begin(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return begin


@pytest.fixture
def as_ada_in(ada: User, enter: Enter) -> Client:
    return enter(ada)

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents_app import tasks
from sessions_app.access.models import Workspace


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks.run_session, "apply_async", lambda args, queue: None)


@pytest.fixture
def browser(workspace: Workspace) -> Client:
    return Client(enforce_csrf_checks=True)


@pytest.fixture
def as_ada_in(ada: User, workspace: Workspace) -> Client:
    client = Client()
    client.force_login(ada)
    return client

"""A session of Ada's, its turns, and a bus that these tests have for themselves."""

import asyncio
from collections.abc import Callable, Iterator
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from sessions_app.models import Session, Turn, TurnStatus, Workspace
from sessions_app.models.turn import ACTIVE, OVER
from sessions_app.streaming.bus import memory
from sessions_app.threads import THREADS, in_thread
from tests.sessions_app.own_bus import OwnBus


@pytest.fixture
def session(workspace: Workspace, ada: User) -> Session:
    made: Session = Session.objects.create(
        workspace=workspace, created_by=ada, title="Quinces", model="m", vault_root=workspace.vault_path
    )
    return made


@pytest.fixture
def turn(session: Session) -> Callable[..., Turn]:
    """A turn of the session in a status, with what that status asks for."""
    opened = iter(range(2, 1_000, 2))

    def make(status: TurnStatus = TurnStatus.QUEUED, **more: Any) -> Turn:
        now = timezone.now()
        held = {"leased_at": now, "boot": uuid4(), "attempt": 1} if status in ACTIVE else {}
        ended = {"ended_at": now} if status in OVER else {}
        fields = {"session": session, "opened_seq": next(opened), **held, **ended, **more}
        made: Turn = Turn.objects.create(status=status, **fields)
        return made

    return make


@pytest.fixture
def own_bus(monkeypatch: pytest.MonkeyPatch) -> OwnBus:
    bus = OwnBus()
    monkeypatch.setattr(memory, "bus", bus)
    return bus


@pytest.fixture
def service_threads(transactional_db: None) -> Iterator[None]:
    """The threads of the pool outlive the test, and their connections would keep its database from ending."""
    yield
    connection.close()
    all_of_them = Barrier(THREADS)

    def close() -> None:
        all_of_them.wait(10)
        connection.close()

    async def close_all() -> None:
        await asyncio.gather(*(in_thread(close)() for _ in range(THREADS)))

    asyncio.run(close_all())

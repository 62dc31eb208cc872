import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db.backends.utils import CursorWrapper
from django.test import Client

from agents_app.runtimes.scripted import ScriptedRuntime
from agents_app.turns.held.holder import Holder
from agents_app.turns.running.run import run_waiting_turns
from sessions_app.access.caller import Caller
from sessions_app.access.models import KeyScope
from tests.api.web import Headers, Web

Key = Callable[..., Headers]


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody runs what is said, unless a test takes `worker`."""
    monkeypatch.setattr("agents_app.turns.held.ringing.send", lambda args, queue: None)


@pytest.fixture(autouse=True)
async def no_task_is_left() -> AsyncIterator[None]:
    before = asyncio.all_tasks()
    yield
    ours: set[asyncio.Task[Any] | None] = {asyncio.current_task(), *before}
    assert [task for task in asyncio.all_tasks() if task not in ours] == []


@pytest.fixture
async def worker(
    scripted: ScriptedRuntime, no_broker: None, no_task_is_left: None, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ScriptedRuntime]:
    """Runs what is rung for, in the loop of the test."""
    loop = asyncio.get_running_loop()
    running: set[asyncio.Task[None]] = set()

    def begin(session_id: UUID) -> None:
        running.add(loop.create_task(run_waiting_turns(session_id, Holder("w"), scripted)))

    def ring(args: tuple[str], queue: str) -> None:
        loop.call_soon_threadsafe(begin, UUID(args[0]))

    monkeypatch.setattr("agents_app.turns.held.ringing.send", ring)
    yield scripted
    async with asyncio.timeout(15):
        await asyncio.gather(*running)


@pytest.fixture
def nobody(workspace: object) -> Web:
    return Web()


@pytest.fixture
def ada_calls(ada: User, key: Key) -> Web:
    return Web(key(ada))


@pytest.fixture
def ben_calls(ben: User, key: Key) -> Web:
    return Web(key(ben))


@pytest.fixture
def vi_calls(vi: User, key: Key) -> Web:
    return Web(key(vi))


@pytest.fixture
def cy_calls(cy: User, as_cy: Caller, key: Key) -> Web:
    """With every scope: what refuses him is that things are not his."""
    return Web(key(cy, scopes=list(KeyScope)))


@pytest.fixture
def ada_browser(ada: User, workspace: object) -> Web:
    return _browser_of(ada)


@pytest.fixture
def ben_browser(ben: User, workspace: object) -> Web:
    return _browser_of(ben)


@pytest.fixture
def cy_browser(cy: User, as_cy: Caller) -> Web:
    return _browser_of(cy)


def _browser_of(user: User) -> Web:
    """A browser in which somebody is signed in, and whose page sends the CSRF token."""
    client = Client()
    client.force_login(user)
    token = "t" * 32
    cookie = f"sessionid={client.cookies['sessionid'].value}; csrftoken={token}"
    return Web({"cookie": cookie, "x-csrftoken": token, "origin": "http://localhost"})


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Counts what is asked of the database, in whatever thread."""
    asked: list[str] = []
    execute = CursorWrapper.execute

    def counting(self: Any, sql: str, params: Any = None) -> Any:
        asked.append(sql)
        return execute(self, sql, params)

    @contextmanager
    def count() -> Any:
        with monkeypatch.context() as patch:
            asked.clear()
            patch.setattr(CursorWrapper, "execute", counting)
            yield asked

    return count

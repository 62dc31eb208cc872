"""A phone, the real library, `up` with its processes and the real CLI: from a token to the first answer."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from agents_app.model.demo.wire import say
from tests.bots.telegram_server import TelegramServer
from tests.processes.conftest import furnish
from tests.processes.program import Program
from tests.processes.running import RunningUp, StartUp
from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.processes

EVE = "4242"
IDLE_MOST = 24  # MB


class Phone:
    """The town in a loop of its own, beside the processes."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.town = self._do(self._begin())

    async def _begin(self) -> TelegramServer:
        town = TelegramServer()
        await town.begin()
        return town

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def says(self, text: str) -> None:
        self._loop.call_soon_threadsafe(self.town.says, EVE, text)

    def reads(self, words: str) -> str:
        return str(self._do(self.town.reads(EVE, words)))

    def until(self, holds: Callable[[], Any]) -> None:
        self._do(self.town.until(holds, 30))

    def end(self) -> None:
        self._do(self.town.end())
        self._loop.call_soon_threadsafe(self._loop.stop)


@pytest.fixture
def phone() -> Iterator[Phone]:
    phone = Phone()
    yield phone
    phone.end()


@pytest.fixture
def running(
    start_up: StartUp, model: ScriptedModel, phone: Phone, variables: dict[str, str], tables: Path
) -> RunningUp:
    furnish(variables, tables)
    return start_up({"ANTHROPIC_BASE_URL": model.url, "TELEGRAM_API_URL": phone.town.url})


def is_noted(up: RunningUp) -> bool:
    """Whoever speaks next knows the message that stands in the chat. (A process that dies between the answer
    of the platform and this row leaves a beginning in the chat that nobody knows of.)"""
    with closing(sqlite3.connect(f"file:{up.home / 'db.sqlite3'}?mode=ro", uri=True)) as rows:
        waiting = "SELECT messages FROM bots_app_delivery WHERE kind = 'answer' AND state = 'waiting'"
        return any(len(messages) > 2 for (messages,) in rows.execute(waiting))


def of_person(up: RunningUp) -> httpx.Client:
    headers = {"X-CSRFToken": up.cookies["csrftoken"]}
    return httpx.Client(base_url=up.address, cookies=up.cookies, headers=headers, timeout=60)


def test_from_a_token_to_an_answer_that_outlives_the_process_that_speaks(
    running: RunningUp, model: ScriptedModel, phone: Phone
) -> None:
    idle = psutil.Process(running.pid_of("bots")).memory_full_info().pss / 1e6
    assert idle < IDLE_MOST, f"{idle:.0f} MB"
    person = of_person(running)
    kept = person.put("/api/bots/config", json={"telegram": {"token": phone.town.token}})
    assert kept.status_code == 200, kept.text
    tested = person.post("/api/bots/telegram/test").json()
    assert tested == {"ok": True, "account": phone.town.account, "error": None}

    phone.says("hello from the phone")
    phone.reads("somebody has decided")
    (request,) = person.get("/api/bots/pairing").json()["requests"]
    let_in = person.post(f"/api/bots/pairing/{request['id']}/approve", json={"trustLevel": "vault"})
    assert let_in.status_code == 200, let_in.text
    phone.reads("ok")

    gate = model.hold()
    model.script("a story", [say("Once upon a time ", gate, "there was a quince.")])
    phone.says("a story")
    phone.reads("Once upon a time")
    phone.until(lambda: is_noted(running))
    running.kill("bots")
    running.wait_log("bots started", times=2)
    gate.release()
    phone.reads("Once upon a time there was a quince.")
    told = [text for text in phone.town.texts(EVE) if "Once upon" in text]
    assert len(told) == 1
    session = Program(running).http.get("/api/chat").json()["sessions"][0]
    assert session["linkedBot"] == {"platform": "telegram", "chatId": EVE, "chatType": "private"}
    assert (session["source"], session["visibility"]) == ("telegram", "workspace")
    logs = b"".join(path.read_bytes() for path in (running.home / "logs").iterdir())
    assert phone.town.token.encode() not in logs

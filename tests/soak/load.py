"""Conversations that go on whatever dies: who says things tries again until they are accepted, and a reader
comes back with the last `seq` that it has."""

import asyncio
import json
import random
import time
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import aiohttp

from tests.processes.program import TERMINAL, Event
from tests.soak import script
from tests.soak.killer import Kill

TRIED_AGAIN_AFTER = 0.2  # seconds; nothing tells when a port opens again
SILENT_AT_MOST = 40.0  # a stream says something every 15 s
ANSWERS_WITHIN = 30.0
PATIENCE = 4.0  # seconds, on average, until somebody goes on talking to what does not answer
MOST_UNANSWERED = 8
SENT_AGAIN = 0.2  # of all messages, as if the answer had been lost: few kills come in that very moment
AWAY = (aiohttp.ClientError, OSError, TimeoutError)


@dataclass(frozen=True)
class Said:
    text: str
    turn: str


@dataclass
class Conversation:
    """One session: what was accepted in it, and the rows that its reader got."""

    web: aiohttp.ClientSession
    dice: random.Random
    session: str = ""
    said: list[Said] = field(default_factory=list)
    rows: list[Event] = field(default_factory=list)
    replayed: list[Event] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    instead: Counter[str] = field(default_factory=Counter)  # of an answer, or of an event: what came
    _unanswered: list[str] = field(default_factory=list)
    _kills: list[Kill] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    async def go(self, enough: asyncio.Event) -> None:
        await self._say()
        async with asyncio.TaskGroup() as readers:
            reader = readers.create_task(self._follow(self.rows, self._heard))
            while not enough.is_set():
                await self._say()
                await self._wait_a_while()
            await self._until(lambda: not self._unanswered)
            await self._replay()
            await self._until(lambda: len(self.rows) >= len(self.replayed))
            reader.cancel()

    def suffers(self, kill: Kill) -> None:
        """It waits for an answer while something is killed: how long until it goes on is measured."""
        if self._unanswered:
            self._kills.append(kill)

    @property
    def _path(self) -> str:
        return f"/api/chat/{self.session}"

    async def _say(self) -> None:
        kind = self.dice.choice(script.KINDS)
        key = uuid.uuid4().hex[:8]
        text = script.message(kind, key)
        accepted = await self._tried(lambda: self._post(text, key))
        if self.dice.random() < SENT_AGAIN:
            accepted = await self._tried(lambda: self._post(text, key))
        self.session = accepted["sessionId"]
        self.said.append(Said(text, accepted["turnId"]))
        if not any(row["type"] in TERMINAL and row["turnId"] == accepted["turnId"] for row in self.rows):
            self._unanswered.append(accepted["turnId"])

    async def _post(self, text: str, key: str) -> dict[str, Any] | None:
        headers = {"Idempotency-Key": key, "Prefer": "respond-async"}
        order = {"message": text, "sessionId": self.session or None}
        async with self.web.post("/api/chat", json=order, headers=headers) as answer:
            return await self._expected(answer, 202)

    async def _expected(self, answer: aiohttp.ClientResponse, status: int) -> dict[str, Any] | None:
        if answer.status == status:
            return dict(await answer.json())
        self.instead[f"status {answer.status}"] += 1
        self.complaints.append(f"{self.session}: {answer.method} {answer.status} {await answer.text()}")
        return None

    async def _tried(self, request: Callable[[], Any]) -> dict[str, Any]:
        """Until it is answered: web may be away, or die while it answers."""
        while True:
            try:
                async with asyncio.timeout(ANSWERS_WITHIN):
                    if found := await request():
                        return dict(found)
            except AWAY as error:
                self.instead[type(error).__name__] += 1
            await asyncio.sleep(TRIED_AGAIN_AFTER)

    async def _follow(self, rows: list[Event], heard: Callable[[Event], bool]) -> None:
        """Collects the rows, over as many connections as it takes, until `heard` has enough."""
        while True:
            try:
                async with aclosing(self._events(rows[-1]["seq"] if rows else 0)) as events:
                    async for event in events:
                        if event["seq"] is not None:
                            self._check_next(rows, event)
                            rows.append(event)
                        if heard(event):
                            return
            except AWAY as error:
                self.instead[f"stream: {type(error).__name__}"] += 1
            await asyncio.sleep(TRIED_AGAIN_AFTER)

    async def _events(self, after: int) -> AsyncGenerator[Event]:
        timeout = aiohttp.ClientTimeout(total=None, sock_read=SILENT_AT_MOST)
        async with self.web.get(f"{self._path}/events", params={"after": after}, timeout=timeout) as answer:
            if answer.status != 200:
                await self._expected(answer, 200)
                return
            async for line in answer.content:
                if line.startswith(b"data:"):
                    yield json.loads(line[5:])

    def _check_next(self, rows: list[Event], event: Event) -> None:
        last = rows[-1]["seq"] if rows else 0
        if event["seq"] != last + 1:
            self.complaints.append(f"{self.session}: a reader got seq {event['seq']} after {last}")

    def _heard(self, event: Event) -> bool:
        if event["type"] in TERMINAL and event["turnId"] in self._unanswered:
            self._unanswered.remove(event["turnId"])
        if is_of_a_run(event["type"], event):
            self._recover(datetime.fromisoformat(event["ts"]).timestamp())
        self._news.set()
        return False

    def _recover(self, written: float) -> None:
        for kill in [kill for kill in self._kills if kill.at < written]:
            kill.recoveries.append(time.time() - kill.at)
            self._kills.remove(kill)
        if not self._unanswered:
            self._kills.clear()  # all was written before the kill, and only read after it

    async def _wait_a_while(self) -> None:
        """For the answer, as most people do, but not for ever: a web that is away is spoken to as well."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.dice.expovariate(1 / PATIENCE)):
                await self._until(lambda: not self._unanswered)
        await self._until(lambda: len(self._unanswered) < MOST_UNANSWERED)

    async def _until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            self._news.clear()
            await self._news.wait()

    async def _replay(self) -> None:
        """All rows anew, by a reader that has seen nothing."""
        found = await self._tried(self._look)
        await self._follow(self.replayed, lambda event: event["seq"] == found["lastSeq"])

    async def _look(self) -> dict[str, Any] | None:
        async with self.web.get(self._path) as answer:
            return await self._expected(answer, 200)


def is_of_a_run(kind: str, payload: Mapping[str, Any]) -> bool:
    """And not of the opening of a turn, or of its waiting: such rows may come at any time."""
    is_opening = kind == "session" and payload["resumeInfo"] is None
    return not is_opening and kind not in ("user_message", "turn_waiting")

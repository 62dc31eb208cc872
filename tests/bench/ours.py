"""Ours, from outside: over HTTP, with a key, as any program has it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any

import aiohttp

TERMINAL = {"done", "aborted", "error", "typed_error"}


class NotAnswered(Exception):
    """A turn that ended otherwise than with an answer."""

    def __init__(self, event: dict[str, Any]) -> None:
        super().__init__(str(event))
        self.code = event.get("code") or (event.get("error") or {}).get("code", "")


class Ours:
    def __init__(self, address: str, key: str) -> None:
        self._address = address
        self._headers = {"Authorization": f"Bearer {key}"}

    @asynccontextmanager
    async def web(self) -> AsyncIterator[aiohttp.ClientSession]:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(
            self._address, headers=self._headers, connector=connector, timeout=aiohttp.ClientTimeout(300)
        ) as web:
            yield web

    async def new_chat(self, message: str, **more: Any) -> float:
        async with self.web() as web:
            first, _ = await self.say(web, message, **more)
            return first

    async def next_messages(self, message: str, times: int) -> list[float]:
        async with self.web() as web:
            _, session = await self.say(web, message)
            return [(await self.say(web, message, session))[0] for _ in range(times)]

    async def at_once(self, message: str, times: int) -> list[float]:
        async with self.web() as web:
            return [
                first for first, _ in await asyncio.gather(*(self.say(web, message) for _ in range(times)))
            ]

    async def say(
        self, web: aiohttp.ClientSession, message: str, session: str | None = None, **more: Any
    ) -> tuple[float, str]:
        """Seconds until the first piece of text, and the session; the answer is read to its end."""
        began, first = perf_counter(), 0.0
        async with web.post("/api/chat", json={"message": message, "sessionId": session, **more}) as answer:
            if answer.status != 200:
                raise NotAnswered(await answer.json())
            async for event in events(answer):
                if event["type"] == "text" and not first:
                    first = perf_counter() - began
                if event["type"] in TERMINAL and event["type"] != "done":
                    raise NotAnswered(event)
        return first, str(event["sessionId"])

    async def accepted(self, web: aiohttp.ClientSession, message: str) -> str:
        async with web.post(
            "/api/chat", json={"message": message}, headers={"Prefer": "respond-async"}
        ) as answer:
            return str((await answer.json())["sessionId"])

    async def finished(self, web: aiohttp.ClientSession, message: str) -> str:
        """A session in which that was said and answered."""
        _, session = await self.say(web, message)
        return session

    async def last_seq(self, web: aiohttp.ClientSession, session: str) -> int:
        async with web.get(f"/api/chat/{session}") as answer:
            return int((await answer.json())["lastSeq"])


async def events(answer: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    async for line in answer.content:
        if line.startswith(b"data:"):
            yield json.loads(line[5:])

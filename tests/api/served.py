"""Our application for a server of a test: over the database of that test, without a broker, with little
patience, and with a path that tells how many readers listen."""

import os

import django
from django.conf import settings

settings.DATABASES["default"]["NAME"] = os.environ["PARACHUTE_TESTS_DATABASE"]
django.setup()

from collections.abc import AsyncIterator  # noqa: E402
from contextlib import asynccontextmanager  # noqa: E402
from typing import Any  # noqa: E402

from agents_app.turns.held import ringing  # noqa: E402
from parachute_site.asgi import application as ours  # noqa: E402
from parachute_site.entrance.channel import Channel  # noqa: E402
from parachute_site.entrance.rules import Patience  # noqa: E402
from sessions_app.streaming.bus.memory import bus  # noqa: E402

listening: set[object] = set()
_subscribe = bus.subscribe


@asynccontextmanager
async def subscribe(topic: str) -> AsyncIterator[Any]:
    async with _subscribe(topic) as listener:
        listening.add(listener)
        try:
            yield listener
        finally:
            listening.remove(listener)


bus.subscribe = subscribe  # type: ignore[method-assign]
Channel.patience = Patience(headers=0.3, body=1)
ringing.send = lambda args, queue: None


async def application(scope: Any, receive: Any, send: Any) -> None:
    if scope["path"] != "/api/served/readers":
        await ours(scope, receive, send)
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(len(listening)).encode()})

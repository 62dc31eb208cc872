"""A turn that asks a person, as its tests see it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agents_app.runtimes.scripted import Use
from agents_app.turns.held.holder import Holder
from agents_app.turns.said.opening import Opened
from permissions_app.models import ToolRequest
from sessions_app.models import SessionEvent
from sessions_app.streaming import bus
from sessions_app.threads import in_thread
from tests.agents_app.engine import PATIENCE, Engine


def use(place: str = "Graz", **more: Any) -> Use:
    """A tool of a server that is not ours: a person decides about it, whatever wall stands there."""
    return Use("mcp__weather__today", {"place": place, **more})


@asynccontextmanager
async def asked(
    engine: Engine, opened: Opened, holder: Holder | None = None, *, tools: int = 1
) -> AsyncIterator[Any]:
    """While a worker runs it, and its agent waits for a person. Left, the worker is through with it."""
    async with bus.current().subscribe(bus.session_topic(opened.session_id)) as listener:
        working = asyncio.create_task(engine.run(opened, holder))
        engine.working.append(working)
        async with asyncio.timeout(PATIENCE):
            while len(requests := await pending(opened)) < tools and not working.done():
                await listener.next(1)
    if working.done():
        working.result()
    assert len(requests) == tools, "it ended, or asked something else"
    try:
        yield requests[0] if tools == 1 else requests
    finally:
        await asyncio.wait({working})
    if not working.cancelled():
        working.result()


async def pending(opened: Opened) -> list[ToolRequest]:
    return await in_thread(list)(ToolRequest.objects.pending().filter(session=opened.session_id))


async def decided(request: ToolRequest) -> ToolRequest:
    found: ToolRequest = await ToolRequest.objects.aget(pk=request.pk)
    return found


def resolved(written: list[SessionEvent]) -> list[str]:
    return [event.payload["decision"] for event in written if event.type == "permission_resolved"]

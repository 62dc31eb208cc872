"""`follow_inbox`: all that a caller may decide, over all sessions, as it comes and goes.

1. Subscribe, and only then
2. read what is pending, and tell what is new and what is there no longer;
3. wait for a ring of one of the caller's workspaces, or a silence of `KEEP_ALIVE` seconds, because rings can
   be lost; and read again. Rings that come within `READS_EVERY` seconds of a read are one read after it.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from time import monotonic
from uuid import UUID

from permissions_app import reading
from permissions_app.frames import Asked, frame
from permissions_app.models import GrantRequest, ToolRequest
from permissions_app.services.telling import INBOX
from sessions_app.access.caller import Caller
from sessions_app.models import Workspace
from sessions_app.streaming import bus
from sessions_app.streaming.bus import Payload
from sessions_app.streaming.listing import KEEP_ALIVE, pass_over, rung
from sessions_app.threads import in_thread

READS_EVERY = 0.1  # a person waits for it


async def follow_inbox(find_caller: Callable[[], Caller]) -> AsyncGenerator[list[Payload]]:
    """What is news together, an empty list in a silence. `find_caller` is asked before each read, so that who
    may decide less by then is told of less. If it raises, the inbox ends with that."""
    shown: dict[UUID, Asked] = {}
    async with bus.current().subscribe(INBOX) as listener:
        is_first = True
        while True:
            now, workspaces, gone = await in_thread(_read)(find_caller(), set(shown))
            may_read_at = monotonic() + READS_EVERY
            news = [frame(gone.get(pk, shown[pk]), is_over=True) for pk in shown if pk not in now]
            news += [frame(request) for pk, request in now.items() if pk not in shown]
            shown = now
            if news or not is_first:
                yield news
            is_first = False
            await rung(listener, workspaces, KEEP_ALIVE)
            await asyncio.sleep(may_read_at - monotonic())
            await pass_over(listener)


def _read(caller: Caller, shown: set[UUID]) -> tuple[dict[UUID, Asked], frozenset[int], dict[UUID, Asked]]:
    """Three queries, and two more where something is there no longer."""
    workspaces = frozenset(Workspace.objects.visible_to(caller).values_list("pk", flat=True))
    asked: list[Asked] = [*reading.pending(caller), *reading.pending_grants(caller)]
    now = {request.pk: request for request in asked}
    lost = shown - now.keys()
    return now, workspaces, _over(caller, lost) if lost else {}


def _over(caller: Caller, lost: set[UUID]) -> dict[UUID, Asked]:
    """As what they ended. A row that is gone, or not for this caller any more, is not among them."""
    requests = ToolRequest.objects.visible_to(caller).select_related("decided_by")
    grants = GrantRequest.objects.visible_to(caller).select_related("decided_by")
    return {**requests.in_bulk(lost), **grants.in_bulk(lost)}

"""`follow_list`: the newest sessions of a caller, each time that what a list shows of them changed.

1. Subscribe, and only then
2. read the page, and give it away if it is another than the last;
3. wait for a ring of one of the caller's workspaces, or a silence of `KEEP_ALIVE` seconds, because rings can
   be lost; and read again. Rings that come within `READS_EVERY` seconds of a read are one read after it.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from time import monotonic
from typing import Any

from sessions_app import reading
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.models import Session
from sessions_app.reading import Page, SessionFilter
from sessions_app.streaming import bus
from sessions_app.streaming.bus import Listener
from sessions_app.threads import in_thread

KEEP_ALIVE = 15.0
READS_EVERY = 0.25
NEWEST = SessionFilter(exact={}, limit=50)

# What a change of makes a list another one. Not how much was said or paid: that changes with each turn, and
# with each turn its activity does.
SHOWN = (
    "id",
    "title",
    "summary",
    "model",
    "trust_level",
    "status",
    "archived",
    "visibility",
    "shown_tags",
    "is_active",
    "is_waiting",
)


async def follow_list(find_caller: Callable[[], Caller]) -> AsyncGenerator[Page]:
    """`find_caller` is asked before each read, so that who may see less by then sees less. If it raises,
    the list ends with that."""
    shown: Any = None
    async with bus.current().subscribe(bus.LISTS) as listener:
        while True:
            page, workspaces = await in_thread(_read)(find_caller())
            may_read_at = monotonic() + READS_EVERY
            if _shown(page) != shown:
                shown = _shown(page)
                yield page
            await rung(listener, workspaces, KEEP_ALIVE)
            await asyncio.sleep(may_read_at - monotonic())
            await pass_over(listener)


def _read(caller: Caller) -> tuple[Page, frozenset[int]]:
    """Four queries, however many sessions there are."""
    workspaces = frozenset(Workspace.objects.visible_to(caller).values_list("pk", flat=True))
    return reading.page(caller, NEWEST), workspaces


def _shown(page: Page) -> Any:
    """In its order, which is that of the last access."""
    return page.total, [_shown_of(session) for session in page.sessions]


def _shown_of(session: Session) -> list[Any]:
    return [getattr(session, name) for name in SHOWN]


async def rung(listener: Listener, workspaces: frozenset[int], keep_alive: float) -> None:
    """Returns with a ring of one of these workspaces, or after a silence in which the others do not count."""
    silent_until = monotonic() + keep_alive
    while (left := silent_until - monotonic()) > 0:
        heard = await listener.next(left)
        if heard is None or heard["workspace"] in workspaces:
            return


async def pass_over(listener: Listener) -> None:
    """What rang until now is seen by the read that comes now."""
    while await listener.next(0) is not None:
        pass

"""Whoever reads for long is looked at again: a key, a login, a membership may be gone meanwhile."""

from collections.abc import Awaitable, Callable
from time import monotonic
from uuid import UUID

from django.utils.translation import gettext as _

from sessions_app.access.caller import Caller
from sessions_app.access.models import KeyScope
from sessions_app.errors import Forbidden, NotFound, Unauthenticated
from sessions_app.models import Session
from sessions_app.threads import in_thread

LOOKS_AGAIN_EVERY = 45.0  # seconds; a stream looks with a frame, and has one every 15: within the minute

FindCaller = Callable[[], Awaitable[Caller | None]]


class Watch:
    """Over one stream of one session. `scope` is the right that the stream was opened with."""

    def __init__(self, find_caller: FindCaller, session_id: UUID, scope: KeyScope = KeyScope.READ) -> None:
        self._find_caller = find_caller
        self._session_id = session_id
        self._scope = scope
        self._looked = monotonic()

    async def check(self) -> None:
        if monotonic() - self._looked >= LOOKS_AGAIN_EVERY:
            await self.look()

    async def look(self) -> None:
        """Now: the session was shared, or is not any more."""
        self._looked = monotonic()
        await check_visible(may(await self._find_caller(), self._scope), self._session_id)


def may(caller: Caller | None, scope: KeyScope) -> Caller:
    if caller is None:
        raise Unauthenticated
    if not caller.may(scope):
        raise Forbidden(_("This key has no scope `%(scope)s`. Make one that has it.") % {"scope": scope})
    return caller


async def check_visible(caller: Caller, session_id: UUID) -> None:
    if session_id not in await visible_among(caller, [session_id]):
        raise NotFound


async def visible_among(caller: Caller, session_ids: list[UUID]) -> set[UUID]:
    found = Session.objects.visible_to(caller).filter(pk__in=session_ids).values_list("pk", flat=True)
    return await in_thread(lambda: set(found))()

"""What streams of what is asked: the inbox as server-sent events."""

from contextlib import aclosing
from time import monotonic

from permissions_app.inbox import follow_inbox
from sessions_app.access.caller import Caller
from sessions_app.access.models import KeyScope
from sessions_app.consumers import SentEvents
from sessions_app.streaming import watch
from sessions_app.streaming.sse import bodies


class InboxStream(SentEvents):
    """`GET /api/permissions/stream`."""

    async def check(self) -> None:
        watch.may(self.scope["caller"], KeyScope.READ)

    async def pass_on(self) -> None:
        looked = monotonic()
        async with aclosing(follow_inbox(self._caller)) as parts:
            async for part in parts:
                if monotonic() - looked >= watch.LOOKS_AGAIN_EVERY:
                    looked = monotonic()
                    self.scope["caller"] = await self.scope["find_caller"]()
                    self._caller()
                for body in bodies(part or [None]):
                    await self.send_piece(body)

    def _caller(self) -> Caller:
        return watch.may(self.scope["caller"], KeyScope.READ)

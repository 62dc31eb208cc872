"""Sending no faster than a reader reads.

Daphne takes whatever it is sent, and what the socket does not take it keeps: a reader that stalls would fill
the memory of `web`. Twisted, below it, tells a *producer* when enough waits and when that has gone. Here it
makes `send` wait, as ASGI has it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

Send = Callable[[Any], Awaitable[None]]


def patient(send: Send) -> Send:
    """`send` that returns when its connection takes more. One of another server is left as it is."""
    protocol = send.args[-1] if isinstance(send, partial) and send.args else None
    if not hasattr(protocol, "registerProducer") or getattr(protocol, "channel", protocol) is None:
        return send  # not Daphne's, or its reader has left already
    flow = _Flow(protocol)

    async def send_and_wait(message: Any) -> None:
        if message["type"] == "http.response.body" and not message.get("more_body"):
            flow.end()  # the connection goes on to the next request
        await send(message)
        await flow.takes_more.wait()

    return send_and_wait


class _Flow:
    """A push producer, as Twisted calls it, in the place of whoever was one before."""

    def __init__(self, protocol: Any) -> None:
        self.takes_more = asyncio.Event()
        self.takes_more.set()
        self._protocol = protocol
        protocol.unregisterProducer()
        protocol.registerProducer(self, True)

    def end(self) -> None:
        if self._protocol is not None:
            self._protocol.unregisterProducer()
            self.stopProducing()

    def pauseProducing(self) -> None:
        self.takes_more.clear()

    def resumeProducing(self) -> None:
        self.takes_more.set()

    def stopProducing(self) -> None:
        """The reader has left, or this is over."""
        self._protocol = None
        self.takes_more.set()

"""The seam of the bus: a doorbell for the readers of a topic, and the text that is not finished yet."""

from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

Payload = dict[str, Any]


class Listener(Protocol):
    async def next(self, timeout: float) -> Payload | None:
        """What was published, in order; None after `timeout` seconds of silence, or at once where this
        listener fell behind and lost some: either way, the rows are to be read again."""


class Bus(Protocol):
    """Callers rely on this: what is published after `subscribe` was entered is heard, unless the bus itself
    restarts; nothing is kept for later but the tail; a bus that is away is no error for who publishes."""

    async def publish(self, topic: str, payload: Payload) -> None: ...

    def subscribe(self, topic: str) -> AbstractAsyncContextManager[Listener]: ...

    async def tail(self, topic: str) -> list[Payload]:
        """The unfinished block as one delta with all of its text so far; empty between blocks."""

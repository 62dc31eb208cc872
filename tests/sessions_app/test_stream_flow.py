"""A server that keeps what a reader does not take: we wait for it. And many frames are sent as few."""

import asyncio
from functools import partial
from typing import Any

import pytest

from sessions_app.streaming.flow import patient
from sessions_app.streaming.sse import LARGEST_BODY, as_sse, bodies

PIECE = {"type": "http.response.body", "body": b"x", "more_body": True}
END = {"type": "http.response.body", "body": b""}


class Connection:
    """As much of Daphne's as matters."""

    def __init__(self) -> None:
        self.channel: Any = self
        self.producer: Any = None
        self.sent: list[Any] = []

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        assert self.producer is None and streaming
        self.producer = producer

    def unregisterProducer(self) -> None:
        self.producer = None


async def reply(connection: Connection, message: Any) -> None:
    connection.sent.append(message)


@pytest.fixture
def connection() -> Connection:
    return Connection()


async def settled(sending: asyncio.Future[None]) -> bool:
    for _ in range(5):
        await asyncio.sleep(0)
    return sending.done()


async def test_who_sends_waits_until_the_reader_takes_more(connection: Connection) -> None:
    send = patient(partial(reply, connection))
    await send(PIECE)
    connection.producer.pauseProducing()
    sending = asyncio.ensure_future(send(PIECE))
    assert not await settled(sending)
    connection.producer.resumeProducing()
    assert await settled(sending)
    assert connection.sent == [PIECE, PIECE]


async def test_a_reader_that_leaves_keeps_nobody_waiting(connection: Connection) -> None:
    send = patient(partial(reply, connection))
    connection.producer.pauseProducing()
    sending = asyncio.ensure_future(send(PIECE))
    assert not await settled(sending)
    connection.producer.stopProducing()
    assert await settled(sending)
    connection.channel = None  # as Twisted leaves it
    await send(END)


async def test_the_end_is_not_waited_for(connection: Connection) -> None:
    send = patient(partial(reply, connection))
    connection.producer.pauseProducing()
    await send(END)
    assert connection.producer is None


async def test_what_is_not_daphnes_is_left_as_it_is(connection: Connection) -> None:
    async def send(message: Any) -> None: ...

    assert patient(send) is send
    connection.channel = None  # its reader left before the application began
    gone = partial(reply, connection)
    assert patient(gone) is gone


def test_many_frames_are_few_pieces_of_a_bounded_size() -> None:
    frames: list[Any] = [{"type": "model", "seq": n, "model": "m" * 1_000} for n in range(1_000)]
    pieces = list(bodies([*frames, None]))
    assert b"".join(pieces) == b"".join(map(as_sse, [*frames, None]))
    assert len(pieces) < 20
    assert max(map(len, pieces)) < LARGEST_BODY + 1_100

"""What the entrance says while a request comes. Here its connection is a string and its clock is turned by
hand; `test_api_daphne.py` has the same over real sockets."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from parachute_site.entrance.channel import Channel, Factory
from parachute_site.entrance.rules import SMALL, Patience
from tests.api.web import Web

PATIENCE = Patience(headers=20, body=30, slowest=1000, refused=2)
KEY = "Authorization: Bearer para_who_knows"
COOKIE = "Cookie: sessionid=who-knows"
FORM = "Content-Type: multipart/form-data; boundary=x"
LARGEST = 30 * SMALL


class Wire(StringTransport):
    """A connection as its client sees it."""

    is_closed_by_us = False

    def loseWriteConnection(self) -> None:
        self.is_closed_by_us = True


class Server:
    """Daphne's, as far as a request needs it, with an application that never answers."""

    root_path = ""
    proxy_forwarded_address_header = None
    request_buffer_size = 8192
    server_name = ""

    def __init__(self) -> None:
        self.served: list[str] = []
        self.bodies: list[asyncio.Queue[dict[str, Any]]] = []
        self.protocols: list[Any] = []

    def protocol_connected(self, protocol: Any) -> None:
        self.protocols.append(protocol)

    def protocol_disconnected(self, protocol: Any) -> None:
        pass

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        self.served.append(scope["path"])
        self.bodies.append(asyncio.Queue())
        return self.bodies[-1]


class Connection:
    def __init__(self) -> None:
        self.server, self.clock, self.wire = Server(), Clock(), Wire()
        factory = Factory(self.server)
        factory.reactor = self.clock
        self.channel: Channel = factory.buildProtocol(None)
        self.channel.patience = PATIENCE
        self.channel.makeConnection(self.wire)

    def send(self, data: str | bytes) -> None:
        self.channel.dataReceived(data.encode() if isinstance(data, str) else data)

    def ask(self, path: str, *headers: str, method: str = "POST", host: str = "localhost") -> None:
        self.send("\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}", *headers, "", ""]))

    def refused(self) -> tuple[int, str] | None:
        """With what, once the connection is closed on our side."""
        if not self.wire.is_closed_by_us:
            return None
        head, _, body = self.wire.value().partition(b"\r\n\r\n")
        assert b"\r\nConnection: close" in head
        return int(head.split()[1]), str(json.loads(body)["error"]["code"])


@pytest.fixture
def connection() -> Connection:
    return Connection()


def chunk(size: int) -> bytes:
    return b"%x\r\n" % size + b"x" * size + b"\r\n"


@pytest.mark.parametrize(
    ("path", "headers", "expected"),
    [
        ("/api/chat", [FORM, "Content-Length: 65537"], (413, "too_large")),
        ("/api/chat", [FORM, KEY, "Content-Length: 65537"], (413, "too_large")),
        ("/api/chat", [KEY, f"Content-Length: {LARGEST + 1}"], (413, "too_large")),
        ("/api/chat", [COOKIE, f"Content-Length: {LARGEST + 1}"], (413, "too_large")),
        ("/api/chat", ["Cookie: other=x", f"Content-Length: {SMALL + 1}"], (413, "too_large")),
        ("/signin", [COOKIE, "Content-Length: 65537"], (413, "too_large")),
        ("/x/../api/chat", [KEY, "Content-Length: 65537"], (413, "too_large")),
        ("/api/chat", [KEY, "Content-Length: x"], (400, "invalid")),
        ("/api/chat", [KEY, "Host: localhost", "Content-Length: 5"], (400, "invalid")),
        ("/api/chat", [KEY, "Content-Length: 5", "Transfer-Encoding: chunked"], (400, "invalid")),
    ],
)
def test_it_is_refused_by_its_headers(
    path: str, headers: list[str], expected: tuple[int, str], connection: Connection
) -> None:
    connection.ask(path, "Expect: 100-continue", *headers)
    assert connection.refused() == expected
    connection.send(b"POST /api/chat HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
    assert connection.server.served == []


@pytest.mark.parametrize("length", ["0", "29000000"])
@pytest.mark.parametrize("path", ["/", "/api/chat", "/ws", "/static/chat/page.js"])
def test_a_foreign_host_is_refused_before_its_body(path: str, length: str, connection: Connection) -> None:
    connection.ask(path, KEY, f"Content-Length: {length}", host="evil.example")
    assert connection.refused() == (400, "invalid")
    assert connection.server.served == []


@pytest.mark.parametrize(
    ("path", "headers", "most"),
    [("/api/chat", [], SMALL), ("/api/chat", [KEY, FORM], 65_536), ("/signin", [COOKIE], 65_536)],
    ids=["without a key", "a form", "to a page"],
)
def test_a_body_in_chunks_is_cut_at_its_limit(
    path: str, headers: list[str], most: int, connection: Connection
) -> None:
    connection.ask(path, "Transfer-Encoding: chunked", *headers)
    connection.send(chunk(most))
    assert connection.refused() is None
    connection.send(chunk(1) + chunk(1) + b"0\r\n\r\n")
    assert connection.refused() == (413, "too_large")
    (request,) = connection.server.protocols
    assert request.content.closed
    assert connection.server.served == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("header", [KEY, COOKIE])
@pytest.mark.parametrize("announced", [True, False])
async def test_who_is_nobody_has_no_more_than_who_says_nothing(
    announced: bool, header: str, connection: Connection
) -> None:
    ask_large(connection, header, announced=announced)
    assert connection.wire.producerState == "paused"
    await until(connection.refused)
    assert connection.refused() == (401, "unauthenticated")
    assert connection.wire.producerState == "producing"  # what still comes is thrown away


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("announced", [True, False])
async def test_who_is_somebody_may_send_what_a_message_takes(
    announced: bool, connection: Connection, ada_calls: Web
) -> None:
    ((name, value),) = ada_calls.headers.items()
    ask_large(connection, f"{name}: {value}", announced=announced)
    connection.clock.advance(PATIENCE.body + 20)  # they wait for us
    await until(lambda: connection.wire.producerState == "producing")
    rest = LARGEST - (SMALL + 1)
    connection.send(b"x" * rest if announced else chunk(rest))
    if announced:
        assert connection.server.served == ["/api/chat"]
    else:
        assert connection.refused() is None
        connection.send(chunk(1))
        assert connection.refused() == (413, "too_large")


@pytest.mark.django_db(transaction=True)
async def test_who_leaves_while_it_is_looked_up_is_not_answered(connection: Connection) -> None:
    ask_large(connection, KEY, announced=True)
    connection.channel.connectionLost()
    await until(lambda: connection.wire.producerState == "producing")
    assert connection.refused() is None


def ask_large(connection: Connection, header: str, *, announced: bool) -> None:
    """The first byte over a megabyte, of 30."""
    how = f"Content-Length: {LARGEST}" if announced else "Transfer-Encoding: chunked"
    connection.ask("/api/chat", header, how)
    connection.send(b"x" * (SMALL + 1) if announced else chunk(SMALL + 1))


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(15):
        while not condition():
            await asyncio.sleep(0)


def test_a_form_is_given_on_as_it_came(connection: Connection) -> None:
    body = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\ny\r\n--x--'
    connection.ask("/signin", FORM, f"Content-Length: {len(body)}")
    connection.send(body)
    (given,), (request,) = connection.server.bodies, connection.server.protocols
    assert given.get_nowait() == {"type": "http.request", "body": body, "more_body": False}
    assert request.args == {}


def test_headers_that_drip_end(connection: Connection) -> None:
    for second in range(20):
        assert connection.refused() is None, second
        connection.send("G" if second == 0 else "E")
        connection.clock.advance(1)
    assert connection.refused() == (408, "too_slow")
    assert not connection.wire.disconnected
    connection.clock.advance(2)
    assert connection.wire.disconnected


def test_a_body_that_drips_ends(connection: Connection) -> None:
    connection.ask("/api/chat", "Content-Length: 1000")
    for second in range(30):
        assert connection.refused() is None, second
        connection.send("x")
        connection.clock.advance(1)
    connection.clock.advance(1)
    assert connection.refused() == (408, "too_slow")
    assert connection.server.served == []


def test_a_body_that_flows_may_take_longer(connection: Connection) -> None:
    connection.ask("/api/chat", f"Content-Length: {SMALL}")
    for _ in range(200):
        connection.send(b"x" * 1000)
        connection.clock.advance(1)
    assert connection.refused() is None
    connection.clock.advance(40)  # as much as it has gained, and no more
    assert connection.refused() == (408, "too_slow")


def test_an_answer_may_take_as_long_as_it_likes(connection: Connection) -> None:
    connection.ask("/api/chat/x/events", method="GET")
    connection.clock.advance(3600)
    assert not connection.wire.disconnecting
    assert connection.refused() is None


def test_requests_that_come_together_are_answered_in_turn(connection: Connection) -> None:
    connection.ask("/api/a", method="GET")
    connection.ask("/api/b", "Content-Length: 2")
    connection.clock.advance(3600)  # what waits for its turn is not slow
    connection.server.protocols[0].finish()
    connection.send("xy")
    assert connection.server.served == ["/api/a", "/api/b"]
    connection.server.protocols[1].finish()
    connection.clock.advance(3600)
    assert connection.wire.disconnecting  # nothing more was asked for, so nothing is said
    assert connection.refused() is None


def test_a_client_that_asks_whether_to_go_on_is_told(connection: Connection) -> None:
    connection.ask("/api/chat", "Content-Length: 2", "Expect: 100-continue")
    assert connection.wire.value() == b"HTTP/1.1 100 Continue\r\n\r\n"


def test_a_body_in_chunks_of_a_byte_is_refused(connection: Connection) -> None:
    connection.ask("/api/chat", "Transfer-Encoding: chunked")
    connection.send(chunk(1) * 900)
    assert connection.refused() is None
    connection.send(chunk(300) * 500)
    assert connection.refused() is None, "those that are larger pay for more"
    connection.send(chunk(1) * 900)
    assert connection.refused() == (400, "invalid")

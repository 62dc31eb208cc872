"""A connection, and the request that comes over it.

Twisted takes headers and body whole and then gives the request on. Here it is looked at on the way:

1. `allHeadersReceived`: Host and the announced length, before the client hears that it may go on.
2. `handleContentChunk`: what has come is counted, whether a length was announced or not.
3. After `rules.SMALL` bytes nothing more is read until its sender is known.
4. A clock runs from the first byte to the last.

Nothing here parses a body.
"""

import asyncio
import json
import logging
from functools import partial
from http import HTTPStatus
from typing import Any

from daphne.http_protocol import HTTPFactory, WebRequest
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web import http

from parachute_site.callers import Headers, caller_in, joined
from parachute_site.entrance import rules
from parachute_site.entrance.rules import Allowed, Patience, TooSlow, Unreadable
from sessions_app.access.caller import Caller
from sessions_app.errors import ParachuteError, Unauthenticated
from sessions_app.incidents import incident
from sessions_app.threads import in_thread

log = logging.getLogger(__name__)


class Request(WebRequest):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Of a form of 29 MB Twisted makes 400 MB, and serves nobody else for 12 s.
        super().__init__(*args, **kwargs, parsePOSTFormSubmission=False)
        self.allowed = Allowed(0, "")  # until its headers are there
        self.received = self.pieces = 0
        self.is_looked_up = False

    @property
    def headers(self) -> Headers:
        found = self.requestHeaders.getAllRawHeaders()
        return joined([(name.lower(), value) for name, values in found for value in values])

    def handleContentChunk(self, data: bytes) -> None:
        if self.content.closed:
            return  # it is refused, and this came with what was too much
        self.received += len(data)
        self.pieces += 1
        try:
            self.allowed.check(self.received)
            rules.check_pieces(self.pieces, self.received)
        except ParachuteError as error:
            self.channel.refuse(error)
        else:
            super().handleContentChunk(data)
            self.channel.look_up(self, size=self.received)


class Channel(http.HTTPChannel):
    patience = Patience()
    transport: Any
    factory: Any
    _path: Any
    _networkProducer: Any

    def __init__(self) -> None:
        super().__init__()
        self._clock: Any = None
        self._until = 0.0

    def dataReceived(self, data: bytes) -> None:
        if self._clock is None and not self._handlingRequest:
            self._start_clock(self.patience.headers)
        super().dataReceived(data)

    def allHeadersReceived(self) -> None:
        request, announced = self.requests[-1], self.length or 0  # nothing of a body in chunks
        request.requestHeaders.removeHeader(b"daphne-root-path")  # a path that anybody could put before ours
        try:
            request.allowed = rules.allowed(self._path.decode("latin-1"), request.headers)
            request.allowed.check(announced)
        except ParachuteError as error:
            self.refuse(error)
        else:
            super().allHeadersReceived()
            self._start_clock(self.patience.body)
            self.look_up(request, size=announced)

    def allContentReceived(self) -> None:
        self._stop_clock()
        super().allContentReceived()

    def look_up(self, request: Request, *, size: int) -> None:
        """Whether its sender is somebody. A thread asks the database: it is us who are slow then."""
        if size > rules.SMALL and not request.is_looked_up:
            request.is_looked_up = True
            self._stop_clock()
            self._networkProducer.pauseProducing()
            looking = asyncio.ensure_future(in_thread(caller_in)(request.headers))
            looking.add_done_callback(partial(self._looked_up, request))

    def _looked_up(self, request: Request, looking: "asyncio.Future[Caller | None]") -> None:
        self._networkProducer.resumeProducing()
        if not self._is_receiving(request):
            return  # it came whole in the same packet, and is answered as any other; or its sender has left
        if error := looking.exception():
            self.refuse(incident(log, "Looking up who sends a large body", error))
        elif looking.result() is None:
            self.refuse(Unauthenticated())
        else:
            self._start_clock(self.patience.body)

    def _is_receiving(self, request: Request) -> bool:
        return request in self.requests and not self._handlingRequest and not request.content.closed

    def refuse(self, error: ParachuteError) -> None:
        """Says why, and hears nothing more of this connection. What still comes is read for a moment: closed
        before its input is read, a connection takes the answer with it."""
        self._stop_clock()
        self.setTimeout(None)
        for request in self.requests:
            if request.content is not None:
                request.content.close()
        for hears in ("dataReceived", "lineReceived", "rawDataReceived", "allContentReceived"):
            setattr(self, hears, _nothing)
        self.transport.write(_answer(error))
        self.transport.loseWriteConnection()
        self._abortingCall = self.callLater(self.patience.refused, self.forceAbortClient)

    def timeoutConnection(self) -> None:
        """Twisted's own, for silence. Between two requests it needs no answer."""
        if self.requests:
            self.refuse(TooSlow())
        else:
            super().timeoutConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._stop_clock()
        super().connectionLost(reason)

    def _respondToBadRequestAndDisconnect(self) -> None:
        self.refuse(Unreadable())  # Twisted would go on with what it took for a request

    def _start_clock(self, seconds: float) -> None:
        self._stop_clock()
        self._until = self.factory.reactor.seconds() + seconds
        self._clock = self.callLater(seconds, self._look_at_clock)

    def _stop_clock(self) -> None:
        if self._clock is not None and self._clock.active():
            self._clock.cancel()
        self._clock = None

    def _look_at_clock(self) -> None:
        """A body that flows gains time, so it is looked at again when the time is up, not with each piece."""
        gained = sum(request.received for request in self.requests) / self.patience.slowest
        left = self._until + gained - self.factory.reactor.seconds()
        if left > 0:
            self._clock = self.callLater(left, self._look_at_clock)
        else:
            self.refuse(TooSlow())


class Factory(HTTPFactory):
    protocol = Channel

    def buildProtocol(self, addr: Any) -> Channel:
        channel: Channel = super().buildProtocol(addr)
        channel.requestFactory = Request
        return channel


def _nothing(*heard: object) -> None:
    pass


def _answer(error: ParachuteError) -> bytes:
    body = json.dumps(error.as_json()).encode()
    lines = (
        f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

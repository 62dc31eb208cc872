"""The one way from an agent to the model: a streaming proxy on a unix socket, in the worker's event loop.

An agent's process has a token that is good for this socket only, while its process lives, and opens only
while a turn runs. The real key is added here and is nowhere else: no agent's environment, no log, no error.
"""

import logging
import math
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy

from agents_app.egress.listening import listener_at
from agents_app.model.connections import ModelConnections
from agents_app.model.endpoint import ModelEndpoint

logger = logging.getLogger(__name__)

PATHS = frozenset({"/v1/messages", "/v1/messages/count_tokens"})
LARGEST_BODY = 64 << 20
SILENCE = 120.0  # seconds without a byte; the Messages API pings while its model thinks
PATIENCE = 180.0  # seconds in which a process was told nothing but failures: then no more is tried for it
COMES_BACK_WITHIN = 90.0  # the CLI waits a minute at most before it tries again
HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te"}
    | {"trailer", "transfer-encoding", "upgrade", "expect", "host"}
)
CREDENTIALS = frozenset({"x-api-key", "authorization", "cookie", "set-cookie"})
NOT_AGAIN = {"x-should-retry": "false"}  # the CLI heeds it


@dataclass(frozen=True)
class Trouble:
    """How the model failed a process last, and since when nothing better came: the CLI tells less."""

    status: int
    turn: str | None
    since: float
    last: float
    retry_after: float | None = None  # seconds
    without_key: bool = False

    @property
    def will_last(self) -> float:
        """How long it will have been, in seconds, when the model may be asked again."""
        return self.last - self.since + (self.retry_after or 0)


@dataclass(eq=False)
class Pass:
    """What lets one process through the door: `turn` is the turn that it is in, None between turns.
    `trouble` is None as soon as an answer came whole."""

    token: str = field(repr=False)
    turn: str | None = None
    trouble: Trouble | None = None
    _issued: dict[str, "Pass"] = field(default_factory=dict, repr=False)

    def revoke(self) -> None:
        self._issued.pop(self.token, None)

    def fail(self, status: int, since: float, **more: Any) -> Trouble:
        self.trouble = Trouble(status, self.turn, since, time.monotonic(), **more)
        return self.trouble


class Refused(Exception):
    """An answer of the door itself, as the Messages API words its errors."""

    def __init__(self, status: int, kind: str, message: str, *, for_good: bool = False) -> None:
        super().__init__(message)
        self.status, self.kind, self.message, self.for_good = status, kind, message, for_good

    def response(self) -> web.Response:
        error = {"type": self.kind, "message": self.message}
        headers = NOT_AGAIN if self.for_good else None
        return web.json_response({"type": "error", "error": error}, status=self.status, headers=headers)


class Door:
    def __init__(
        self, socket: Path, upstream: ModelEndpoint, *, silence: float = SILENCE, patience: float = PATIENCE
    ) -> None:
        self.socket = socket
        self._upstream = upstream
        self._silence, self._patience = silence, patience
        self._issued: dict[str, Pass] = {}

    @property
    def upstream(self) -> ModelEndpoint:
        return self._upstream

    async def open(self) -> None:
        self._connections = ModelConnections(self._upstream, self._silence)
        # Without handler_cancellation an agent that was killed would go on being answered, and paid for.
        server = web.Server(self._answer, handler_cancellation=True, access_log=None, auto_decompress=False)
        self._runner = web.ServerRunner(server, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.SockSite(self._runner, listener_at(self.socket)).start()

    async def close(self) -> None:
        await self._runner.cleanup()
        await self._connections.leave()
        self.socket.unlink(missing_ok=True)

    async def lead_to(self, upstream: ModelEndpoint) -> None:
        """From the next request on. What is being answered is answered by whoever began."""
        if upstream != self._upstream:
            left, self._upstream = self._connections, upstream
            self._connections = ModelConnections(upstream, self._silence)
            await left.leave()

    def issue(self) -> Pass:
        """A pass for one process; revoke it when the process is gone."""
        issued = Pass(secrets.token_urlsafe(32), _issued=self._issued)
        self._issued[issued.token] = issued
        return issued

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            known = self._admit(request)
            return await self._pass_on(request, known, self._troubled_since(known))
        except Refused as refused:
            return refused.response()

    def _admit(self, request: web.BaseRequest) -> Pass:
        known = self._issued.get(_token(request))
        if known is None:
            raise Refused(401, "authentication_error", "This token is not, or no longer, good for the door.")
        if request.method != "POST" or request.path not in PATHS:
            raise Refused(
                404, "not_found_error", f"The door does not lead to {request.method} {request.path}."
            )
        if known.turn is None:
            raise Refused(403, "permission_error", "No turn is running: the model answers only within one.")
        if (request.content_length or 0) > LARGEST_BODY:
            raise _too_large()
        return known

    def _troubled_since(self, known: Pass) -> float:
        """Now, unless the last request failed too. Whatever the CLI would try, it does not try for ever."""
        now, before = time.monotonic(), known.trouble
        if before is None or before.turn != known.turn or now - before.last > COMES_BACK_WITHIN:
            return now
        if now - before.since > self._patience:
            problem = "The model has failed for too long, and is not asked again."
            raise Refused(before.status, "api_error", problem, for_good=True)
        return before.since

    async def _pass_on(self, request: web.BaseRequest, known: Pass, since: float) -> web.StreamResponse:
        connections = self._connections
        if problem := connections.upstream.problem:
            known.fail(401, since, without_key=True)
            raise Refused(401, "authentication_error", problem, for_good=True)
        # From the path that was admitted, never from the raw target: ".evil.com://x/v1/messages" is one too.
        address = connections.address(request.path, request.rel_url.raw_query_string)
        headers = _opened(_passed_on(request.headers), connections.upstream)
        try:
            async with (
                connections.taken() as client,
                client.post(
                    address, headers=headers, data=_bounded(request), allow_redirects=False
                ) as answer,
            ):
                return await self._hand_over(request, answer, known, since, connections)
        except (aiohttp.ClientError, OSError) as error:
            if isinstance(error.__cause__, Refused):
                raise error.__cause__ from None
            # The error's own text may hold the request's headers, and with them the key.
            logger.warning("The model could not be reached: %s", type(error).__name__)
            refused = self._unreachable(error)
            known.fail(refused.status, since)
            raise refused from None

    def _unreachable(self, error: Exception) -> Refused:
        if isinstance(error, aiohttp.SocketTimeoutError):
            return Refused(504, "timeout_error", f"No answer came within {self._silence:.0f} seconds.")
        return Refused(502, "api_error", f"Parachute could not reach the model ({type(error).__name__}).")

    async def _hand_over(
        self,
        request: web.BaseRequest,
        answer: aiohttp.ClientResponse,
        known: Pass,
        since: float,
        connections: ModelConnections,
    ) -> web.StreamResponse:
        if 300 <= answer.status < 400:
            known.fail(502, since)
            problem = f"The model's address redirects ({answer.status}). Set it to where that leads."
            raise Refused(502, "api_error", problem, for_good=True)
        headers = _passed_on(answer.headers)
        if answer.status >= 400:
            after, without_key = _retry_after(answer.headers), connections.upstream.header is None
            trouble = known.fail(answer.status, since, retry_after=after, without_key=without_key)
            if answer.status == 401 or trouble.will_last > self._patience:  # a wrong key stays wrong
                headers.update(NOT_AGAIN)
        response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=headers)
        try:
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                await response.write(piece if answer.status < 400 else connections.without_key(piece))
            await response.write_eof()
        except (aiohttp.ClientError, OSError) as error:
            # An end would make half an answer look whole: the connection breaks here as it broke there.
            logger.warning("An answer of the model broke off: %s", type(error).__name__)
            known.fail(502, since)
            if request.transport:
                request.transport.abort()
        else:
            known.trouble = known.trouble if answer.status >= 400 else None
        return response


async def _bounded(request: web.BaseRequest) -> AsyncIterator[bytes]:
    size = 0
    async for piece in request.content.iter_any():
        size += len(piece)
        if size > LARGEST_BODY:
            raise _too_large()
        yield piece


def _too_large() -> Refused:
    return Refused(413, "request_too_large", f"A request may have {LARGEST_BODY >> 20} MB.")


def _retry_after(headers: CIMultiDictProxy[str]) -> float | None:
    """In seconds, whichever way it is said."""
    said, seconds = headers.get("Retry-After", ""), math.nan
    with suppress(ValueError, TypeError):
        seconds = (parsedate_to_datetime(said) - datetime.now(UTC)).total_seconds()
    with suppress(ValueError):
        seconds = float(said)
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _token(request: web.BaseRequest) -> str:
    scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
    return request.headers.get("x-api-key") or (bearer.strip() if scheme.lower() == "bearer" else "")


def _passed_on(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    named = {name.strip().lower() for name in headers.get("Connection", "").split(",")}
    left_out = HOP_BY_HOP | CREDENTIALS | named
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in left_out)


def _opened(headers: CIMultiDict[str], upstream: ModelEndpoint) -> CIMultiDict[str]:
    if upstream.header:
        headers.add(*upstream.header)
    if upstream.beta:
        headers["anthropic-beta"] = ",".join([*headers.popall("anthropic-beta", []), upstream.beta])
    return headers

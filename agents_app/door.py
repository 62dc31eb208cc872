"""The one way from an agent to the model: a streaming proxy on a unix socket, in the worker's event loop.

An agent's process has a token that is good for this socket only, while its process lives, and opens only
while a turn runs. The real key is added here and is nowhere else: no agent's environment, no log, no error.
"""

import logging
import secrets
import socket as sockets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

logger = logging.getLogger(__name__)

PATHS = frozenset({"/v1/messages", "/v1/messages/count_tokens"})
LARGEST_BODY = 64 << 20
HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te"}
    | {"trailer", "transfer-encoding", "upgrade", "expect", "host"}
)
CREDENTIALS = frozenset({"x-api-key", "authorization", "cookie", "set-cookie"})
# aiohttp would add these where the agent's request has none, and the answer would be another one.
NOT_OURS_TO_ADD = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


@dataclass(frozen=True)
class Upstream:
    """Where the model answers, and the header that opens it. With `socket`, the host of `url` is a name."""

    url: str
    header: tuple[str, str] | None = field(default=None, repr=False)
    socket: Path | None = None


@dataclass(eq=False)
class Pass:
    """What lets one process through the door: `turn` is the turn that it is in, None between turns."""

    token: str = field(repr=False)
    turn: str | None = None
    _issued: dict[str, "Pass"] = field(default_factory=dict, repr=False)

    def revoke(self) -> None:
        self._issued.pop(self.token, None)


class Refused(Exception):
    """An answer of the door itself, as the Messages API words its errors."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message

    def response(self) -> web.Response:
        error = {"type": self.kind, "message": self.message}
        return web.json_response({"type": "error", "error": error}, status=self.status)


class Door:
    def __init__(self, socket: Path, upstream: Upstream) -> None:
        self.socket = socket
        self._upstream = upstream
        self._issued: dict[str, Pass] = {}

    async def open(self) -> None:
        self._client = aiohttp.ClientSession(
            connector=_connector(self._upstream),
            cookie_jar=aiohttp.DummyCookieJar(),  # one session's cookies are none of another's
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=20),  # the CLI knows how long it waits
            auto_decompress=False,
            skip_auto_headers=NOT_OURS_TO_ADD,
        )
        # Without handler_cancellation an agent that was killed would go on being answered, and paid for.
        server = web.Server(self._answer, handler_cancellation=True, access_log=None, auto_decompress=False)
        self._runner = web.ServerRunner(server, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.SockSite(self._runner, _listener(self.socket)).start()

    async def close(self) -> None:
        await self._runner.cleanup()
        await self._client.close()
        self.socket.unlink(missing_ok=True)

    def issue(self) -> Pass:
        """A pass for one process; revoke it when the process is gone."""
        issued = Pass(secrets.token_urlsafe(32), _issued=self._issued)
        self._issued[issued.token] = issued
        return issued

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            self._admit(request)
            return await self._pass_on(request)
        except Refused as refused:
            return refused.response()

    def _admit(self, request: web.BaseRequest) -> None:
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

    async def _pass_on(self, request: web.BaseRequest) -> web.StreamResponse:
        headers = _passed_on(request.headers)
        if self._upstream.header:
            headers.add(*self._upstream.header)
        try:
            async with self._client.post(
                self._address(request), headers=headers, data=_bounded(request), allow_redirects=False
            ) as answer:
                return await _stream(request, answer)
        except (aiohttp.ClientError, OSError) as error:
            if isinstance(error.__cause__, Refused):
                raise error.__cause__ from None
            # The error's own text may hold the request's headers, and with them the key.
            logger.warning("The model could not be reached: %s", type(error).__name__)
            problem = f"Parachute could not reach the model ({type(error).__name__})."
            raise Refused(502, "api_error", problem) from None

    def _address(self, request: web.BaseRequest) -> URL:
        # From the path that was admitted, never from the raw target: ".evil.com://x/v1/messages" is one too.
        query = f"?{request.rel_url.raw_query_string}" if request.rel_url.raw_query_string else ""
        return URL(f"{self._upstream.url.rstrip('/')}{request.path}{query}", encoded=True)


async def _stream(request: web.BaseRequest, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    if 300 <= answer.status < 400:
        problem = (
            f"The model's address redirects ({answer.status}). Set ANTHROPIC_BASE_URL to where it leads."
        )
        raise Refused(502, "api_error", problem)
    headers = _passed_on(answer.headers)
    if answer.status == 401:
        headers["x-should-retry"] = "false"  # a wrong key stays wrong; the CLI would try it for minutes
    response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=headers)
    try:
        await response.prepare(request)
        async for piece in answer.content.iter_any():
            await response.write(piece)
        await response.write_eof()
    except (aiohttp.ClientError, OSError) as error:
        # An end would make half an answer look whole: the connection breaks here as it broke there.
        logger.warning("An answer of the model broke off: %s", type(error).__name__)
        if request.transport:
            request.transport.abort()
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


def _token(request: web.BaseRequest) -> str:
    scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
    return request.headers.get("x-api-key") or (bearer.strip() if scheme.lower() == "bearer" else "")


def _passed_on(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    named = {name.strip().lower() for name in headers.get("Connection", "").split(",")}
    left_out = HOP_BY_HOP | CREDENTIALS | named
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in left_out)


def _connector(upstream: Upstream) -> aiohttp.BaseConnector:
    # limit=0: the default of 100 connections would make later sessions wait without a word.
    if upstream.socket:
        return aiohttp.UnixConnector(path=str(upstream.socket), limit=0)
    return aiohttp.TCPConnector(limit=0, keepalive_timeout=30, ttl_dns_cache=300)


def _listener(path: Path) -> sockets.socket:
    """A socket that no other user can connect to, not even before its mode is set: it does not listen yet."""
    path.unlink(missing_ok=True)
    listener = sockets.socket(sockets.AF_UNIX)
    try:
        listener.bind(str(path))
        path.chmod(0o600)
    except OSError:
        listener.close()
        raise
    return listener

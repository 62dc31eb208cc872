"""Asking a server at an address for its tools: over streamable HTTP, or over the older two connections.

No redirect is followed: what stands in the headers would go along.
"""

import asyncio
import errno
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from django.utils.translation import gettext as _

from agents_app.egress import requests
from agents_app.egress.names import MOST_OF_ONE, resolved
from agents_app.egress.requests import Destination
from agents_app.egress.web import PublicWeb
from agents_app.tools.mcp.speaking import LONGEST, VERSION, Refused, tools_of

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

JSON, STREAM = "application/json", "text/event-stream"


async def tools_at(config: dict[str, Any], *, is_local: bool) -> list[Any]:
    import aiohttp  # 10 MB that a web process needs only here

    connector = aiohttp.TCPConnector() if is_local else aiohttp.TCPConnector(resolver=_checked())
    try:
        async with aiohttp.ClientSession(connector=connector, headers=config["headers"]) as client:
            kind = _Stream if config["type"] == "sse" else _Posts
            server = kind(client, config["url"])
            try:
                return await tools_of(server)
            finally:
                await server.close()
    except requests.Refused as refused:
        raise Refused(refused.message) from refused
    except aiohttp.ClientConnectorError as error:
        raise _unreached(f"{error.host}:{error.port}: {_reason(error.os_error)}") from error
    except (aiohttp.ClientError, OSError) as error:
        raise _unreached(str(error)) from error
    except (EOFError, ValueError) as error:
        raise Refused(_("What it answers is no message of this protocol.")) from error


def _unreached(why: str) -> Refused:
    return Refused(_("It could not be reached (%(why)s).") % {"why": why[:200]})


def _reason(error: OSError) -> str:
    """In the system's words: asyncio's are those of a program."""
    known = error.errno in errno.errorcode
    return os.strerror(error.errno) if known and error.errno else error.strerror or str(error)


class _Posts:
    """Each message is a request; its answer, or a stream with it, is that of the request."""

    def __init__(self, client: "ClientSession", url: str) -> None:
        self._client, self._url = client, url
        self._session: dict[str, str] = {}
        self._answers: list[bytes] = []

    async def send(self, message: bytes) -> None:
        headers = {"Content-Type": JSON, "Accept": f"{JSON}, {STREAM}", **self._session}
        async with self._client.post(
            self._url, data=message, headers=headers, allow_redirects=False
        ) as answer:
            check(answer)
            if given := answer.headers.get("Mcp-Session-Id"):
                self._session = {"Mcp-Session-Id": given, "MCP-Protocol-Version": VERSION}
            if answer.status == 202:
                return
            if answer.content_type == STREAM:
                async with aclosing(_events(answer)) as events:
                    async for _kind, data in events:
                        self._answers.append(data)
                        if b'"result"' in data or b'"error"' in data:
                            return
            else:
                self._answers.append(await _body(answer))

    async def next(self) -> bytes:
        if not self._answers:
            raise EOFError
        return self._answers.pop(0)

    async def close(self) -> None: ...


class _Stream:
    """One connection brings all answers, and says first where messages are sent to."""

    def __init__(self, client: "ClientSession", url: str) -> None:
        self._client, self._url = client, url
        self._place: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._answers: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._hearing = asyncio.create_task(self._hear())

    async def send(self, message: bytes) -> None:
        both: set[asyncio.Future[Any]] = {self._place, self._hearing}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not self._place.done():
            self._hearing.result()
            raise EOFError
        headers = {"Content-Type": JSON}
        async with self._client.post(
            self._place.result(), data=message, headers=headers, allow_redirects=False
        ) as answer:
            check(answer)

    async def next(self) -> bytes:
        if (found := await self._answers.get()) is None:
            raise EOFError
        return found

    async def close(self) -> None:
        self._hearing.cancel()
        await asyncio.wait({self._hearing})

    async def _hear(self) -> None:
        try:
            async with self._client.get(
                self._url, headers={"Accept": STREAM}, allow_redirects=False
            ) as answer:
                check(answer)
                async with aclosing(_events(answer)) as events:
                    async for kind, data in events:
                        self._take(kind, data)
        finally:
            self._answers.put_nowait(None)

    def _take(self, kind: str, data: bytes) -> None:
        if kind != "endpoint":
            self._answers.put_nowait(data)
        elif not self._place.done():
            place = urljoin(self._url, data.decode(errors="replace"))
            if urlsplit(place)[:2] != urlsplit(self._url)[:2]:
                raise ValueError("it sends elsewhere")
            self._place.set_result(place)


def check(answer: "ClientResponse") -> None:
    if answer.status in (401, 403):
        raise Refused(_("It wants other headers than these (%(status)s).") % {"status": answer.status})
    if 300 <= answer.status < 400:
        raise Refused(_("This address leads elsewhere. Give the one where it ends."))
    if answer.status >= 400:
        raise Refused(_("It answered with the status %(status)s.") % {"status": answer.status})


async def _body(answer: "ClientResponse") -> bytes:
    """Whole: what arrives comes in pieces."""
    found = bytearray()
    while piece := await answer.content.read(LONGEST):
        found += piece
        if len(found) > LONGEST:
            raise ValueError("too much")
    return bytes(found)


async def _lines(answer: "ClientResponse") -> AsyncGenerator[bytes]:
    """Of any length that is taken: aiohttp's own end at 128 KB, and the tools of a server are one."""
    rest = b""
    async for piece in answer.content.iter_any():
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line
        if len(rest) > LONGEST:
            raise ValueError("too much")


async def _events(answer: "ClientResponse") -> AsyncGenerator[tuple[str, bytes]]:
    """Of a stream of them: what each is called, and its data."""
    kind, data, size = "message", list[bytes](), 0
    async with aclosing(_lines(answer)) as lines:
        async for line in lines:
            size += len(line)
            if size > LONGEST:
                raise ValueError("too much")
            text = line.rstrip(b"\r")
            if not text and data:
                yield kind, b"\n".join(data)
                kind, data, size = "message", [], 0
            elif text.startswith(b"event:"):
                kind = text[6:].strip().decode(errors="replace")
            elif text.startswith(b"data:"):
                data.append(text[5:].strip())


def _checked() -> Any:
    """Names lead to addresses of the public web, or nowhere; and it connects to one that was looked at."""
    from aiohttp.abc import AbstractResolver, ResolveResult

    web, own = PublicWeb(resolved, frozenset(), patience=10.0), asyncio.Semaphore(MOST_OF_ONE)

    class Checked(AbstractResolver):
        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
        ) -> list[ResolveResult]:
            try:
                addresses = await web.addresses(Destination(host, port), own)
            except requests.Refused as refused:
                raise OSError(refused.message) from refused
            return [
                ResolveResult(
                    hostname=host,
                    host=each,
                    port=port,
                    family=socket.AF_INET6 if ":" in each else socket.AF_INET,
                    proto=0,
                    flags=socket.AI_NUMERICHOST,
                )
                for each in addresses
            ]

        async def close(self) -> None: ...

    return Checked()

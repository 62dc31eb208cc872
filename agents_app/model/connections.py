"""From the door to one model: its address and the connections that are kept open to it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from yarl import URL

from agents_app.model.endpoint import ModelEndpoint

# aiohttp would add these where the agent's request has none, and the answer would be another one.
NOT_OURS_TO_ADD = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


class ModelConnections:
    """Once they are left nobody takes one any more; they close when whoever has one is done."""

    def __init__(self, upstream: ModelEndpoint, silence: float) -> None:
        self.upstream = upstream
        self._taken, self._is_left = 0, False
        self._client = aiohttp.ClientSession(
            connector=_connector(upstream),
            cookie_jar=aiohttp.DummyCookieJar(),  # one session's cookies are none of another's
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=20, sock_read=silence),
            auto_decompress=False,
            skip_auto_headers=NOT_OURS_TO_ADD,
        )

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[aiohttp.ClientSession]:
        self._taken += 1
        try:
            yield self._client
        finally:
            self._taken -= 1
            await self._close_if_done()

    async def leave(self) -> None:
        self._is_left = True
        await self._close_if_done()

    def address(self, path: str, query: str) -> URL:
        asked = f"?{query}" if query else ""
        return URL(f"{self.upstream.url.rstrip('/')}{path}{asked}", encoded=True)

    def without_key(self, piece: bytes) -> bytes:
        """Some gateways repeat the key that they refuse. As long as before: the length has been told."""
        key = self.upstream.header[1].rpartition(" ")[2].encode() if self.upstream.header else b""
        return piece.replace(key, b"*" * len(key)) if key else piece

    async def _close_if_done(self) -> None:
        if self._is_left and not self._taken:
            await self._client.close()


def _connector(upstream: ModelEndpoint) -> aiohttp.BaseConnector:
    # limit=0: the default of 100 connections would make later sessions wait without a word.
    if upstream.socket:
        return aiohttp.UnixConnector(path=str(upstream.socket), limit=0)
    return aiohttp.TCPConnector(limit=0, keepalive_timeout=30, ttl_dns_cache=300)

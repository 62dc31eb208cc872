"""Django's middleware is made for pages: each of its methods costs an async request a hop to a thread, and
WhiteNoise, which knows no async, would hold a thread for as long as an answer takes.

The API needs none of it: it finds its callers by itself (`callers.py`). So its requests go around.
"""

from collections.abc import Awaitable
from contextlib import closing
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.db import connections
from django.http import FileResponse, HttpRequest, HttpResponse
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.security import SecurityMiddleware
from django.utils.deprecation import MiddlewareMixin
from whitenoise.middleware import WhiteNoiseMiddleware  # type: ignore[import-untyped]


def is_for_api(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")


class WithoutHop(MiddlewareMixin):
    """For middleware of ours that only looks at headers: its methods run where the request is."""

    async def __acall__(self, request: HttpRequest) -> Any:
        response = self.process_request(request)
        if response is None:
            response = await self.get_response(request)  # type: ignore[misc]
        return self.process_response(request, response)

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        return None

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        return response


class _OnPages(MiddlewareMixin):
    async def __acall__(self, request: HttpRequest) -> Any:
        if is_for_api(request):
            return await self.get_response(request)  # type: ignore[misc]
        return await super().__acall__(request)


class Connections(_OnPages):
    """A page runs in a thread that lives as long as its request. Its connection would be left to the garbage
    collector: it is closed, in that thread."""

    async def __acall__(self, request: HttpRequest) -> Any:
        try:
            return await super().__acall__(request)
        finally:
            if not is_for_api(request):
                await sync_to_async(_close_connections)()


class Security(_OnPages, SecurityMiddleware):
    pass


class Sessions(_OnPages, SessionMiddleware):
    pass


class Common(_OnPages, CommonMiddleware):
    pass


class Csrf(_OnPages, CsrfViewMiddleware):
    pass


class Authentication(_OnPages, AuthenticationMiddleware):
    pass


class Messages(_OnPages, MessageMiddleware):
    pass


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]
    """WhiteNoise beside async views: a file is read whole, in a thread, and nothing else needs one."""

    async_capable = True

    def __init__(self, get_response: Any) -> None:
        super().__init__(get_response)
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        found = super().__call__(request)  # a file, or what comes next: its response, or a coroutine of it
        return _awaited(found) if iscoroutinefunction(self) else found


def _close_connections() -> None:
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:  # that of a test
            connection.close()


async def _awaited(found: FileResponse | Awaitable[HttpResponse]) -> HttpResponse:
    return await sync_to_async(_whole)(found) if isinstance(found, FileResponse) else await found


def _whole(file: FileResponse) -> HttpResponse:
    with closing(file):
        return HttpResponse(b"".join(file), status=file.status_code, headers=dict(file.headers))

"""What comes in: streams go to consumers, everything else to Django."""

import os
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "parachute_site.settings")  # noqa: TID251
django = get_asgi_application()

from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.conf import settings  # noqa: E402
from django.urls import path, re_path  # noqa: E402

from agents_app.consumers import ChatSocket  # noqa: E402
from parachute_site.callers import CallerMiddleware  # noqa: E402
from parachute_site.json_errors import answer  # noqa: E402
from parachute_site.outside import outside  # noqa: E402
from parachute_site.pages.socket import PageSocket  # noqa: E402
from permissions_app.consumers import InboxStream  # noqa: E402
from sessions_app.consumers import EventStream  # noqa: E402
from sessions_app.streaming.flow import patient  # noqa: E402


class TooLong(Exception):
    pass


async def http(scope: Any, receive: Any, send: Any) -> None:
    """Django, but for a body that is too large, whether it says so itself or not."""
    read = 0

    async def measured() -> Any:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            raise TooLong
        return message

    try:
        if _length(scope) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            raise TooLong
        await django(scope, measured, patient(send))
    except TooLong:
        await answer(send, 413)


def _length(scope: Any) -> int:
    said = [value for name, value in scope["headers"] if name == b"content-length" and value.isdigit()]
    return max(map(int, said), default=0)


async def no_route(scope: Any, receive: Any, send: Any) -> None:
    """A WebSocket to nowhere is told so by its code, which only an open socket can be told."""
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": 4404})


# Django types its routes as views; what Channels routes to are ASGI applications.
_events: Any = CallerMiddleware(EventStream.as_asgi())
_inbox: Any = CallerMiddleware(InboxStream.as_asgi())
_socket: Any = CallerMiddleware(ChatSocket.as_asgi())
_page: Any = CallerMiddleware(PageSocket.as_asgi())
_outside: Any = CallerMiddleware(outside)
_rest: Any = http
_nowhere: Any = no_route

application = ProtocolTypeRouter(
    {
        "http": URLRouter(
            [
                path("api/chat/<uuid:session_id>/events", _events),
                path("api/permissions/stream", _inbox),
                path("mcp", _outside),
                re_path("", _rest),
            ]
        ),
        "websocket": URLRouter(
            [
                path("ws", _socket),
                path("ws/chat/<uuid:session_id>", _socket),
                path("ws/page", _page),
                re_path("", _nowhere),
            ]
        ),
    }
)

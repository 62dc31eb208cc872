"""What comes in: streams go to consumers, everything else to Django."""

import os
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "parachute_site.settings")  # noqa: TID251
django = get_asgi_application()

from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.urls import path, re_path  # noqa: E402

from agents_app.consumers import ChatSocket  # noqa: E402
from parachute_site.callers import CallerMiddleware  # noqa: E402
from sessions_app.consumers import EventStream  # noqa: E402

LARGEST_BODY = 30 * 1024 * 1024


async def http(scope: Any, receive: Any, send: Any) -> None:
    """Django, but for a body that says itself that it is too large: that one is not read at all."""
    length = dict(scope["headers"]).get(b"content-length", b"0")
    if length.isdigit() and int(length) > LARGEST_BODY:
        headers = [(b"content-type", b"application/json")]
        body = b'{"error": {"code": "too_large", "message": "The body is larger than 30 MB."}}'
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        return
    await django(scope, receive, send)


async def no_route(scope: Any, receive: Any, send: Any) -> None:
    """A WebSocket to nowhere is closed, not an error in the log."""
    await send({"type": "websocket.close", "code": 4404})


# Django types its routes as views; what Channels routes to are ASGI applications.
_events: Any = CallerMiddleware(EventStream.as_asgi())
_socket: Any = CallerMiddleware(ChatSocket.as_asgi())
_rest: Any = http
_nowhere: Any = no_route

application = ProtocolTypeRouter(
    {
        "http": URLRouter([path("api/chat/<uuid:session_id>/events", _events), re_path("", _rest)]),
        "websocket": URLRouter(
            [path("ws", _socket), path("ws/chat/<uuid:session_id>", _socket), re_path("", _nowhere)]
        ),
    }
)

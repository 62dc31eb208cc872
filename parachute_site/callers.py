"""Who is calling: found out here, once, for ninja and for everything that streams."""

from collections.abc import Awaitable, Callable, Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest
from django.http.request import split_domain_port, validate_host
from ninja.security.base import AuthBase
from ninja.utils import check_csrf

from sessions_app.access.caller import Caller
from sessions_app.access.models import Scope
from sessions_app.access.services import caller_of_key, caller_of_user
from sessions_app.errors import Forbidden, Unauthenticated
from sessions_app.threads import in_thread

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def key_in(headers: Mapping[str, str]) -> str | None:
    """The key of a program, from either of its two headers. Names are lower case here."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    return headers.get("x-api-key") or None


def caller_of_cookie(session_key: str | None) -> Caller | None:
    """The person behind a login session; nobody, where it ended or the password changed."""
    if not session_key:
        return None
    request = HttpRequest()
    request.session = SessionStore(session_key)
    user = get_user(request)
    return caller_of_user(user) if user.is_authenticated and user.is_active else None


class CallerAuth(AuthBase):
    """For ninja: gives the Caller. A key that is sent and not good is refused, whatever cookie is there."""

    openapi_type = "http"
    openapi_scheme = "bearer"

    def __init__(self, scope: Scope | None = None) -> None:
        self._scope = scope
        super().__init__()

    async def __call__(self, request: HttpRequest) -> Caller:
        headers = {name.lower(): value for name, value in request.headers.items()}
        key = key_in(headers)
        if key is not None:
            caller = await in_thread(caller_of_key)(key)
        else:
            caller = await in_thread(caller_of_cookie)(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
        if caller is None:
            raise Unauthenticated
        if key is None and request.method not in SAFE and check_csrf(request) is not None:
            raise Forbidden("The CSRF token is missing or old. Reload the page.")
        self._check_scope(caller, request)
        return caller

    def _check_scope(self, caller: Caller, request: HttpRequest) -> None:
        scope = self._scope or (Scope.READ if request.method in SAFE else Scope.CHAT)
        if not caller.may(scope):
            raise Forbidden(f"This key has no scope `{scope}`. Make one that has it.")


class CallerMiddleware:
    """For what does not pass through Django: checks Host, and Origin where a cookie speaks, and puts the
    caller into the scope, with a way to look again."""

    def __init__(self, inner: Callable[..., Awaitable[None]]) -> None:
        self._inner = inner

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if not _host_is_ours(headers):
            await _refuse(scope, send)
            return

        async def find_caller() -> Caller | None:
            return await in_thread(_caller_of)(headers, scope)

        scope = {**scope, "find_caller": find_caller, "caller": await find_caller()}
        await self._inner(scope, receive, send)


def _caller_of(headers: Mapping[str, str], scope: Mapping[str, Any]) -> Caller | None:
    key = key_in(headers)
    if key is not None:
        return caller_of_key(key)
    if scope["type"] == "websocket" and not _origin_is_ours(headers):
        return None  # another page in the same browser would speak with this person's cookie
    return caller_of_cookie(_cookie(headers))


def _cookie(headers: Mapping[str, str]) -> str | None:
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(settings.SESSION_COOKIE_NAME)
    except CookieError:
        return None
    return morsel.value if morsel else None


def _host_is_ours(headers: Mapping[str, str]) -> bool:
    domain, _ = split_domain_port(headers.get("host", ""))
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def _origin_is_ours(headers: Mapping[str, str]) -> bool:
    origin = headers.get("origin", "")
    return origin in settings.CSRF_TRUSTED_ORIGINS or urlsplit(origin).netloc == headers.get("host")


async def _refuse(scope: Mapping[str, Any], send: Any) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 4403})
        return
    await send({"type": "http.response.start", "status": 400, "headers": [(b"content-type", b"text/plain")]})
    await send(
        {"type": "http.response.body", "body": b"This host name is not served here. See ALLOWED_HOSTS."}
    )

"""Who is calling: found out here, once, for ninja and for everything that streams."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest, QueryDict, parse_cookie
from django.http.request import split_domain_port, validate_host
from django.utils.http import is_same_domain
from django.utils.translation import gettext as _
from ninja.security.base import AuthBase
from ninja.utils import check_csrf

from parachute_site.json_errors import answer
from sessions_app.access import tokens
from sessions_app.access.caller import Caller
from sessions_app.access.models import KeyScope
from sessions_app.access.services import caller_of_key, caller_of_user
from sessions_app.access.tokens import Audience, SessionToken
from sessions_app.errors import Forbidden, Unauthenticated
from sessions_app.threads import in_thread

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

Headers = Mapping[str, str]  # names in lower case


def key_in(headers: Headers) -> str | None:
    """The key of a program, from either of its two headers."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    return headers.get("x-api-key") or None


def caller_in(headers: Headers) -> Caller | None:
    """Whoever these headers speak for. A key that is not good is nobody, whatever cookie is there."""
    key = key_in(headers)
    if key is not None:
        return caller_of_key(key)
    return caller_of_login(parse_cookie(headers.get("cookie", "")).get(settings.SESSION_COOKIE_NAME))


def caller_of_login(session_key: str | None) -> Caller | None:
    """The person behind a login session; nobody, where it ended or the password changed."""
    if not session_key:
        return None
    request = HttpRequest()
    request.session = SessionStore(session_key)
    user = get_user(request)
    return caller_of_user(user) if user.is_authenticated and user.is_active else None


class CallerAuth(AuthBase):
    """For ninja: gives the Caller, and leaves `find_caller` on the request for answers that last."""

    openapi_type = "http"
    openapi_scheme = "bearer"

    def __init__(self, *, writes: KeyScope = KeyScope.CHAT) -> None:
        self._writes = writes
        super().__init__()

    async def __call__(self, request: HttpRequest) -> Caller:
        headers = {name.lower(): value for name, value in request.headers.items()}
        find_caller = partial(in_thread(caller_in), headers)
        caller = await find_caller()
        if caller is None:
            raise Unauthenticated(_unknown_key() if key_in(headers) else "")
        if key_in(headers) is None and request.method not in SAFE and not _has_csrf_token(request):
            raise Forbidden(_("The CSRF token is missing or old. Reload the page."))
        scope = KeyScope.READ if request.method in SAFE else self._writes
        if not caller.may(scope):
            raise Forbidden(_("This key has no scope `%(scope)s`. Make one that has it.") % {"scope": scope})
        request.find_caller = find_caller  # type: ignore[attr-defined]
        return caller


class HelperAuth(AuthBase):
    """For ninja: gives the token of an agent's own helper process, which is good for the session of the path
    while what it was made for lives."""

    openapi_type = "http"
    openapi_scheme = "bearer"

    def __init__(self, audience: Audience, *, names_another: bool = False) -> None:
        """`names_another`: the path, or the body, is about a relative of the token's session."""
        self._audience = audience
        self._names_another = names_another
        super().__init__()

    async def __call__(self, request: HttpRequest) -> SessionToken:
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or request.resolver_match is None:
            raise Unauthenticated
        if self._names_another:
            return await in_thread(tokens.read_any)(text.strip(), self._audience)
        session_id = UUID(str(request.resolver_match.kwargs["session_id"]))
        return await in_thread(tokens.read)(text.strip(), self._audience, session_id)


def _unknown_key() -> str:
    return _("This key is not good here: it is mistyped, revoked or expired. Make one on the settings page.")


class CallerMiddleware:
    """For what does not pass through Django: checks Host, and Origin where a cookie speaks, and puts the
    caller into the scope, with a way to look again."""

    def __init__(self, inner: Callable[..., Awaitable[None]]) -> None:
        self._inner = inner

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers = joined(scope["headers"])
        if not host_is_ours(headers):
            await _refuse(scope, send)
            return

        async def find_caller() -> Caller | None:
            return await in_thread(_caller_of)(headers, scope)

        scope = {**scope, "find_caller": find_caller, "caller": await find_caller()}
        await self._inner(scope, receive, send)


def joined(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """What is sent twice is joined as Django joins it: a header means the same thing here and there."""
    found: dict[str, str] = {}
    for raw, value in headers:
        name = raw.decode("latin-1")
        between = "; " if name == "cookie" else ","
        found[name] = (
            f"{found[name]}{between}{value.decode('latin-1')}" if name in found else value.decode("latin-1")
        )
    return found


def _caller_of(headers: Headers, scope: Mapping[str, Any]) -> Caller | None:
    speaks_by_cookie = key_in(headers) is None
    if speaks_by_cookie and scope["type"] == "websocket" and not _origin_is_ours(headers):
        return None  # another page in the same browser would speak with this person's cookie
    return caller_in(headers)


def host_is_ours(headers: Headers) -> bool:
    domain, _ = split_domain_port(headers.get("host", ""))
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def _origin_is_ours(headers: Headers) -> bool:
    try:
        origin = urlsplit(headers.get("origin", "").lower())
    except ValueError:
        return False
    if not origin.netloc:
        return False
    trusted = map(urlsplit, settings.CSRF_TRUSTED_ORIGINS)
    return origin.netloc == headers["host"].lower() or any(
        origin.scheme == ours.scheme and is_same_domain(origin.netloc, ours.netloc.lstrip("*"))
        for ours in trusted
    )


def _has_csrf_token(request: HttpRequest) -> bool:
    """In its header. Django looks into a form first: it would parse whatever is called one, in our loop."""
    request.POST = QueryDict()
    return check_csrf(request) is None


async def _refuse(scope: Mapping[str, Any], send: Any) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 4403})
    else:
        await answer(send, 400)

"""The API's root: who may call, and how every error looks."""

import logging
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError
from ninja.openapi.docs import DocsBase
from ninja.operation import Operation
from ninja.parser import Parser

from agents_app.api import router as chat  # with the operations of `sessions_app` in it
from agents_app.definitions.api import router as agents
from agents_app.older_paths import router as older_paths
from agents_app.orchestration.api import internal as orchestration_internal
from agents_app.orchestration.api import router as orchestration
from agents_app.schedules.api import router as schedules
from agents_app.tools.mcp.api import of_chats as servers_of_chats
from agents_app.tools.mcp.api import router as mcp
from agents_app.tools.skills.api import router as skills
from bots_app.api import links as bot_links
from bots_app.api import router as bots
from curator_app.api import internal as curator_internal
from curator_app.api import router as curator
from parachute_site import readiness
from parachute_site.callers import CallerAuth, HelperAuth
from permissions_app.api import router as permissions
from permissions_app.grants.api import router as grants
from sessions_app import bounded_json
from sessions_app.access.api import router as access
from sessions_app.access.models import KeyScope
from sessions_app.access.tokens import Audience
from sessions_app.errors import Invalid, NotFound, ParachuteError, TooLarge
from sessions_app.files.api import router as files
from sessions_app.incidents import incident
from sessions_app.search.api import router as search

log = logging.getLogger(__name__)


MOST_TOLD = 20  # of the fields that are wrong

DESCRIPTION = """Chat with agents over your vault. Send a key as `Authorization: Bearer para_…` or as
`X-API-Key`; `manage.py apikey NAME` makes one.

What happens in a session is streamed by `GET /api/chat/{id}/events?after=N` (server-sent events) and by the
WebSockets `/ws` and `/ws/chat/{id}`. Every error is `{"error": {"code", "message", "details"?}}`."""


class Docs(DocsBase):
    """Ninja's own page asks a CDN, which our policy forbids."""

    def render_page(self, request: HttpRequest, api: NinjaAPI, **kwargs: Any) -> HttpResponse:
        settings = {"url": self.get_openapi_url(api, kwargs)}
        return render(request, "docs.html", {"api": api, "settings": settings})


class Api(NinjaAPI):
    def get_openapi_operation_id(self, operation: Operation) -> str:
        return operation.view_func.__name__  # what a generated client calls it


class BoundedParser(Parser):
    def parse_body(self, request: HttpRequest) -> Any:
        return bounded_json.read(request.body)


api = Api(
    parser=BoundedParser(),
    title="Parachute",
    version=settings.VERSION,
    description=DESCRIPTION,
    auth=CallerAuth(),
    docs=Docs(),
    docs_url="/docs",
    openapi_url="/openapi.json",
)
api.add_router("", chat)
api.add_router("", permissions)
api.add_router("", older_paths)
api.add_router("", curator)
api.add_router("/internal", curator_internal, auth=HelperAuth(Audience.CURATOR))
helper_of_relatives = HelperAuth(Audience.ORCHESTRATION, names_another=True)
api.add_router("/internal", orchestration_internal, auth=helper_of_relatives)
api.add_router("", orchestration)
api.add_router("", search)
api.add_router("", files)
api.add_router("", access, auth=CallerAuth(writes=KeyScope.ADMIN))
api.add_router("", agents, auth=CallerAuth(writes=KeyScope.ADMIN))
api.add_router("", schedules, auth=CallerAuth(writes=KeyScope.ADMIN))
api.add_router("", servers_of_chats)
api.add_router("", mcp, auth=CallerAuth(writes=KeyScope.ADMIN))
api.add_router("", skills, auth=CallerAuth(writes=KeyScope.ADMIN))
api.add_router("", grants, auth=CallerAuth(writes=KeyScope.ADMIN))
api.add_router("", bot_links)
api.add_router("", bots, auth=CallerAuth(writes=KeyScope.ADMIN))


@api.get("/health", auth=None, tags=["health"], summary="Whether the server answers")
async def health(request: HttpRequest) -> dict[str, str]:
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"status": "ok", "timestamp": now, "version": settings.VERSION}


@api.get("/health/ready", auth=None, tags=["health"], summary="Whether all of it works")
async def ready(request: HttpRequest) -> HttpResponse:
    checks = await readiness.checks()
    good = all(answer == "ok" for answer in checks.values())
    body = {"status": "ok" if good else "not_ready", "checks": checks}
    return api.create_response(request, body, status=200 if good else 503)


@api.exception_handler(ParachuteError)
def _ours(request: HttpRequest, error: ParachuteError) -> HttpResponse:
    return api.create_response(request, error.as_json(), status=error.status)


@api.exception_handler(ValidationError)
def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    fields = [(_name(each["loc"]), str(each["msg"])) for each in error.errors[:MOST_TOLD]]
    return _ours(request, Invalid.of_fields(fields))


@api.exception_handler(HttpError)
def _unreadable(request: HttpRequest, error: HttpError) -> HttpResponse:
    if isinstance(error.__cause__, ParachuteError):  # of our parser
        return _ours(request, error.__cause__)
    if error.status_code == 400:  # ninja's word for a body that is no JSON
        return _ours(request, Invalid.field("body", _("It cannot be read as JSON.")))
    return _unforeseen(request, error)


@api.exception_handler(Http404)
def _missing(request: HttpRequest, error: Http404) -> HttpResponse:
    return _ours(request, NotFound())


@api.exception_handler(RequestDataTooBig)
def _too_big(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    return _ours(request, TooLarge(_("The body is larger than 30 MB.")))


@api.exception_handler(Exception)
def _unforeseen(request: HttpRequest, error: Exception) -> HttpResponse:
    return _ours(request, incident(log, f"{request.method} {request.path}", error))


def _name(location: tuple[Any, ...]) -> str:
    """Where a field stands for who sent it. Ninja puts its source and the name of our argument before it."""
    return ".".join(map(str, location[2:] if location[0] == "body" else location[1:])) or "body"

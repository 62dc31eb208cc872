"""The API's root: who may call, and how every error looks."""

import logging
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from agents_app.api import router as chat
from parachute_site import readiness
from parachute_site.callers import CallerAuth
from sessions_app.api import router as sessions
from sessions_app.errors import Invalid, NotFound, ParachuteError, TooLarge

log = logging.getLogger(__name__)

api = NinjaAPI(
    title="Parachute",
    version=settings.VERSION,
    description="Chat with agents over your vault. Send a key as `Authorization: Bearer para_…`.",
    auth=CallerAuth(),
    docs_url="/docs",
    openapi_url="/openapi.json",
)
api.add_router("", chat)
api.add_router("", sessions)


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
    fields = [{"field": _name(each["loc"]), "message": str(each["msg"])} for each in error.errors]
    return _ours(request, Invalid("Some fields cannot be taken as they are.", fields=fields))


@api.exception_handler(HttpError)
def _unreadable(request: HttpRequest, error: HttpError) -> HttpResponse:
    if error.status_code == 400:  # ninja's word for a body that is no JSON
        return _ours(request, Invalid("The body cannot be read as JSON.", fields=[{"field": "body"}]))
    return _ours(request, ParachuteError(str(error)))


@api.exception_handler(Http404)
def _missing(request: HttpRequest, error: Http404) -> HttpResponse:
    return _ours(request, NotFound())


@api.exception_handler(RequestDataTooBig)
def _too_big(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    return _ours(request, TooLarge("The body is larger than 30 MB."))


@api.exception_handler(Exception)
def _unforeseen(request: HttpRequest, error: Exception) -> HttpResponse:
    incident = uuid4().hex[:12]
    log.error("%s %s failed, incident %s", request.method, request.path, incident, exc_info=error)
    message = "Something failed that was not foreseen. The log has it under this incident."
    return _ours(request, ParachuteError(message, incidentId=incident))


def _name(location: tuple[Any, ...]) -> str:
    """Where a field stands for who sent it: ninja puts `body` and the parameter's name before it."""
    return ".".join(str(part) for part in location if part not in ("body", "order", "query")) or "body"

from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_safe

from agents_app import model_access
from sessions_app import reading
from sessions_app.access.services import caller_of_user
from sessions_app.errors import NotFound

LISTED = 100


@never_cache
@login_required
@ensure_csrf_cookie
@require_safe
def chats(request: HttpRequest) -> HttpResponse:
    return render(request, "chat.html", _page(request))


@never_cache
@login_required
@ensure_csrf_cookie
@require_safe
def chat(request: HttpRequest, session_id: UUID) -> HttpResponse:
    assert isinstance(request.user, User)
    try:
        session = reading.visible(caller_of_user(request.user), session_id)
    except NotFound as error:
        raise Http404 from error
    return render(request, "chat.html", {**_page(request), "session": session})


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    return render(request, "403_csrf.html", status=403)


def _page(request: HttpRequest) -> dict[str, Any]:
    assert isinstance(request.user, User)
    page = reading.page(caller_of_user(request.user), reading.Wanted(exact={}, limit=LISTED))
    return {"sessions": page.sessions, "is_demo": model_access.current().is_demo}

from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth import authenticate, login, logout
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from sessions_app import reading
from sessions_app.access.services import caller_of_user, link_is_good, use_sign_in_link
from sessions_app.errors import NotFound

BACKEND = "django.contrib.auth.backends.ModelBackend"
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


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    after = _safe_next(request)
    if request.method == "POST":
        name, password = request.POST.get("username", ""), request.POST.get("password", "")
        user = None if "\0" in name else authenticate(request, username=name, password=password)
        if user is not None:
            login(request, user)
            return redirect(after or "chats")
        error = _("This name and password do not fit. Try again, or make a link with `make signin`.")
        return render(request, "signin.html", {"error": error, "next": after}, status=403)
    return render(request, "signin.html", {"next": after})


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_by_link(request: HttpRequest, token: str) -> HttpResponse:
    """A GET shows a button and a POST uses the link: what fetches links ahead cannot use one up."""
    if request.method == "POST" and (user := use_sign_in_link(token)) is not None:
        login(request, user, backend=BACKEND)
        return redirect("chats")
    if request.method == "POST" or not link_is_good(token):
        if request.user.is_authenticated:  # the link that brought them here, opened once more
            return redirect("chats")
        error = _(
            "This link is not good: it was used already, is older than ten minutes, or was cut when it was "
            "copied. Make another with `make signin`."
        )
        return render(request, "signin.html", {"error": error}, status=403)
    return render(request, "signin_link.html")


def _safe_next(request: HttpRequest) -> str:
    """Where a person wanted to go before they were asked to sign in: a page of ours, or nowhere."""
    wanted = request.POST.get("next") or request.GET.get("next", "")
    ours = url_has_allowed_host_and_scheme(wanted, allowed_hosts=None, require_https=request.is_secure())
    return wanted if ours else ""


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    logout(request)
    return redirect("signin")


def admin_sign_in(request: HttpRequest) -> HttpResponse:
    """The admin has no door of its own: whoever is in and comes here is no operator."""
    if request.user.is_authenticated:
        raise Http404
    return redirect_to_login(_safe_next(request) or reverse("admin:index"))


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    return render(request, "403_csrf.html", status=403)


def _page(request: HttpRequest) -> dict[str, Any]:
    assert isinstance(request.user, User)
    page = reading.page(caller_of_user(request.user), reading.Wanted(exact={}, limit=LISTED))
    return {"sessions": page.sessions, "is_demo": settings.PARACHUTE_MODEL.is_demo}

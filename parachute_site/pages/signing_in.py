"""The doors: by password, by a one-time link, and out."""

from django.contrib import messages
from django.contrib.auth import login, logout
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from agents_app.model import first_run
from parachute_site.pages.limits import is_over, take_tries, too_many
from parachute_site.pages.posting import posted_from
from sessions_app.access.services import Limit, link_is_good, take_try, use_sign_in_link
from sessions_app.errors import RateLimited

BACKEND = "django.contrib.auth.backends.ModelBackend"


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    after = _safe_next(request)
    if request.method != "POST":
        return render(request, "signin.html", {"next": after})
    try:
        tries = take_tries(request, Limit.NAME, request.POST.get("username", ""))
    except RateLimited as error:
        return too_many(request, "signin.html", error, {"next": after})
    form = AuthenticationForm(request, data=request.POST)
    if form.is_valid():
        tries.were_right()
        login(request, form.get_user())
        return redirect(after or "chats")
    wrong = _("This name and password do not fit. Try again, or make a link with “make signin”.")
    return render(request, "signin.html", {"error": wrong, "next": after}, status=403)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_by_link(request: HttpRequest, token: str) -> HttpResponse:
    """A GET shows a button and a POST uses the link: what fetches links ahead cannot use one up."""
    if request.method == "POST" and (user := use_sign_in_link(token)) is not None:
        login(request, user, backend=BACKEND)
        if first_run.is_due(user):
            return redirect("welcome")
        if not user.is_staff and not user.has_usable_password():
            said = _("You are in, and the link is used up. Set a password under Settings to come back.")
            messages.success(request, said)
        return redirect("chats")
    if request.method != "POST" and link_is_good(token):
        return render(request, "signin_link.html")
    if request.user.is_authenticated:  # the link that brought them here, opened once more
        return redirect("chats")
    return _bad_link(request)


def _bad_link(request: HttpRequest) -> HttpResponse:
    """Only bad links are counted: a good one opens the door however many bad ones came from its address."""
    until = take_try(Limit.ADDRESS, request.META.get("REMOTE_ADDR") or "")
    if until is not None:
        return too_many(request, "signin.html", is_over(until))
    error = _(
        "This link is not good: it was used already, is too old, or was cut when it was copied. Ask whoever "
        "sent it for another; on the server itself “make signin” makes one."
    )
    return render(request, "signin.html", {"error": error}, status=403)


def _safe_next(request: HttpRequest) -> str:
    """Where a person wanted to go before they were asked to sign in: a page of ours, or nowhere."""
    wanted = request.POST.get("next") or request.GET.get("next", "")
    ours = url_has_allowed_host_and_scheme(wanted, allowed_hosts=None, require_https=request.is_secure())
    return wanted if ours else ""


@posted_from("chats")
def sign_out(request: HttpRequest) -> HttpResponse:
    logout(request)
    return redirect("signin")


def admin_sign_in(request: HttpRequest) -> HttpResponse:
    """The admin has no door of its own: whoever is in and comes here is no operator."""
    if request.user.is_authenticated:
        raise Http404
    return redirect_to_login(_safe_next(request) or reverse("admin:index"))

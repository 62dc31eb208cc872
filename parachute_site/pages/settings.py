"""What a person sets for themselves and for the workspaces that they own."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_safe

from agents_app.model import chosen
from parachute_site.pages import reach
from parachute_site.pages.forms import KeyForm, password_form
from parachute_site.pages.frame import caller_in, framed
from parachute_site.pages.limits import take_tries, until_then
from parachute_site.pages.model import keep, shown
from parachute_site.pages.posting import posted_from
from sessions_app.access import reading
from sessions_app.access.services import (
    Limit,
    create_key,
    revoke_key,
    set_password,
)
from sessions_app.errors import NotFound, ParachuteError, RateLimited


@never_cache
@login_required
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    return _page(request)


@never_cache
@login_required
@posted_from("settings")
def password(request: HttpRequest) -> HttpResponse:
    """Other logins end, and this one goes on. Guesses at the current password run out, as at the door."""
    user = _user(request)
    try:
        tries = take_tries(request, Limit.PASSWORD, str(user.pk))
    except RateLimited as error:
        return until_then(_page(request, status=error.status, error=error.message), error)
    form = password_form(user, request.POST)
    is_good = form.is_valid()
    if "old_password" not in form.errors:
        tries.were_right()
    if not is_good:
        return _page(request, status=422, password_form=form)

    def change() -> None:
        set_password(user, form.cleaned_data["new_password1"])
        update_session_auth_hash(request, user)

    return _done(request, change, _("Your password is set. You were signed out everywhere else."))


@never_cache
@login_required
@posted_from("settings")
def make_key(request: HttpRequest) -> HttpResponse:
    """Answers with the page itself and redirects nowhere: the key would have to be kept on the way."""
    caller = caller_in(request)
    form = KeyForm(request.POST, workspaces=reading.workspaces(caller))
    if not form.is_valid():
        return _page(request, status=422, key_form=form)
    try:
        key, token = create_key(caller, form.wanted())
    except ParachuteError as error:
        return _page(request, status=error.status, key_form=form, error=error.message)
    return _page(request, status=201, made=key, token=token)


@never_cache
@login_required
@posted_from("settings")
def revoke(request: HttpRequest, key_id: int) -> HttpResponse:
    return _done(request, lambda: revoke_key(caller_in(request), key_id), _("The key is revoked."))


@sensitive_post_parameters("key")
@never_cache
@login_required
@posted_from("settings")
def save_model(request: HttpRequest) -> HttpResponse:
    return keep(request, caller_in(request), _page, after="settings")


@never_cache
@login_required
@posted_from("settings")
def remove_model(request: HttpRequest) -> HttpResponse:
    said = _("The key is removed. The demo answers from now on.")
    return _done(request, lambda: chosen.remove(caller_in(request)), said)


def _done(request: HttpRequest, act: Callable[[], object], said: str) -> HttpResponse:
    """Does it and says so on the page; or says there why it was not done."""
    try:
        act()
    except NotFound as error:
        raise Http404 from error
    except ParachuteError as error:
        return _page(request, status=error.status, error=error.message)
    messages.success(request, said)
    return redirect("settings")


def _page(request: HttpRequest, *, status: int = 200, **more: Any) -> HttpResponse:
    return framed(request, "settings.html", {**_context(request), **more}, place="settings", status=status)


def _context(request: HttpRequest) -> dict[str, Any]:
    user, caller = _user(request), caller_in(request)
    return {
        "heading": _("Settings"),
        "password_form": password_form(user),
        "key_form": KeyForm(workspaces=reading.workspaces(caller)),
        "keys": reading.keys(caller),
        "own_workspaces": reading.workspaces_with_roles(caller),
        "now": timezone.now(),
        "levels": reach.levels(),
        "is_operator": caller.is_operator,
        **(_model() if caller.is_operator else {}),
    }


def _model() -> dict[str, Any]:
    model = shown()
    return {"model": model, "model_form": model.form()}


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user

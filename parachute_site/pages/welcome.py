"""The first steps of the first operator: a folder, a key, and off. Each is good as it is and can be left."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_safe

from parachute_site.pages.forms import VaultForm
from parachute_site.pages.model import keep, shown
from parachute_site.pages.posting import posted_from
from sessions_app.access.caller import Caller
from sessions_app.access.services import caller_of_user, choose_vault, first_vault
from sessions_app.errors import Invalid, ParachuteError
from sessions_app.files import vaults


@never_cache
@login_required
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    return _page(request) if _caller(request).is_operator else redirect("chats")


@never_cache
@login_required
@posted_from("welcome")
def vault(request: HttpRequest) -> HttpResponse:
    form, caller = VaultForm(request.POST), _caller(request)
    try:
        if form.is_valid():
            choose_vault(caller, form.cleaned_data["path"])
    except Invalid as error:
        form.add_error("path", error.message)
    except ParachuteError as error:
        return _page(request, status=error.status, error=error.message)
    if form.errors:
        return _page(request, status=422, vault_form=form)
    messages.success(request, _("This is your folder now."))
    return redirect("welcome")


@sensitive_post_parameters("key")
@never_cache
@login_required
@posted_from("welcome")
def model(request: HttpRequest) -> HttpResponse:
    return keep(request, _caller(request), _page, after="welcome")


def _page(request: HttpRequest, *, status: int = 200, **more: Any) -> HttpResponse:
    """To whoever is no operator it tells nothing but what went wrong."""
    context = _context() if _caller(request).is_operator else {}
    return render(request, "welcome.html", {**context, **more}, status=status)


def _context() -> dict[str, Any]:
    path, model = first_vault(), shown()
    notes, is_all = vaults.notes_in(Path(path))
    return {
        "vault": path,
        "vault_is_fixed": settings.PARACHUTE_VAULT_IS_CHOSEN,
        "is_sample": not settings.PARACHUTE_VAULT_IS_CHOSEN and path == str(settings.PARACHUTE_VAULT),
        "notes": notes,
        "is_all": is_all,
        "vault_form": VaultForm(),
        "model": model,
        "model_form": model.form(),
    }


def _caller(request: HttpRequest) -> Caller:
    assert isinstance(request.user, User)
    return caller_of_user(request.user)

"""Which model answers, as operators see and set it: on the settings page, and as a step of the first run."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from agents_app.model import chosen
from agents_app.model.endpoint import ANTHROPIC
from parachute_site.pages.forms import ModelForm
from sessions_app.access.caller import Caller
from sessions_app.errors import Invalid, ParachuteError


@dataclass(frozen=True)
class Shown:
    """What a page tells of the model. Nothing in it is secret."""

    is_demo: bool
    set_by: tuple[str, ...]
    address: str
    problem: str
    ending: str = ""
    kind: str = ""
    kind_label: str = ""
    saved_at: datetime | None = None
    saved_by: str = ""

    @property
    def is_elsewhere(self) -> bool:
        return self.address != ANTHROPIC

    def form(self) -> ModelForm:
        """Without the key; but with its server, or another key for that would go to Anthropic."""
        is_kept = bool(self.kind) and self.is_elsewhere
        return ModelForm(initial={"kind": self.kind, "address": self.address} if is_kept else None)


def shown() -> Shown:
    now = chosen.current()
    general = Shown(now.is_demo, settings.PARACHUTE_MODEL_IS_SET_BY, now.url, now.problem)
    stored = None if general.is_demo or general.set_by else chosen.find()
    if stored is None:
        return general
    return Shown(
        is_demo=False,
        set_by=(),
        address=now.url,
        problem=now.problem,
        ending=stored.ending,
        kind=stored.kind,
        kind_label=stored.get_kind_display(),
        saved_at=stored.saved_at,
        saved_by=stored.saved_by.username if stored.saved_by else "",
    )


def keep(
    request: HttpRequest, caller: Caller, show: Callable[..., HttpResponse], *, after: str
) -> HttpResponse:
    """Who leaves the demo begins a new chat; who changes a key goes on where they were."""
    was_demo, doubt = chosen.current().is_demo, ""
    form = ModelForm(request.POST)
    try:
        chosen.may_change(caller)
        if form.is_valid():
            doubt = chosen.save(caller, form.wanted())
    except Invalid as error:
        for wrong in error.details["fields"]:
            form.add_error(wrong["field"], wrong["message"])
    except ParachuteError as error:
        return show(request, status=error.status, error=error.message)
    if form.errors:
        return show(request, status=422, model_form=form)
    if doubt:
        messages.warning(request, _("The key is kept. %(doubt)s") % {"doubt": doubt})
    else:
        messages.success(request, _left_the_demo() if was_demo else _("The key is kept."))
    return redirect("chats" if was_demo else after)


def _left_the_demo() -> str:
    now = shown()
    if now.is_elsewhere:
        return _("%(address)s answers from now on.") % {"address": now.address}
    return _("Claude answers from now on.")

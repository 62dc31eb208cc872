"""What agents hand to people, and that somebody has seen to it."""

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_POST, require_safe

from agents_app.definitions import editing
from agents_app.orchestration import shares
from agents_app.orchestration.models import NEEDS
from parachute_site.pages.frame import caller_in, framed
from parachute_site.pages.markup import markdown
from sessions_app.access.caller import MAY_WRITE, Caller
from sessions_app.access.models import Workspace
from sessions_app.errors import NotFound, ParachuteError


@never_cache
@login_required
@ensure_csrf_cookie
@require_safe
def show(request: HttpRequest, share_id: UUID | None = None) -> HttpResponse:
    """What needs somebody first, then the newest."""
    caller = caller_in(request)
    workspace = _workspace(request)
    context = _about(caller, workspace, share_id)
    if share_id is not None and context["share"] is None:
        raise Http404
    return framed(request, "shares.html", context, place="shares")


@never_cache
@login_required
@require_POST
def resolve(request: HttpRequest, share_id: UUID) -> HttpResponse:
    workspace = _workspace(request)
    try:
        shares.resolve(caller_in(request), workspace.slug, share_id)
    except NotFound as error:
        raise Http404 from error
    except ParachuteError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, _("It is done with."))
    return redirect(f"{reverse('share', args=[share_id])}?{urlencode({'workspace': workspace.slug})}")


def _about(caller: Caller, workspace: Workspace, share_id: UUID | None) -> dict[str, Any]:
    found = shares.shares(caller, workspace.slug)
    ordered = sorted(found, key=lambda each: not (each.kind in NEEDS and each.resolved_at is None))
    first = ordered[0] if ordered else None
    chosen = next((each for each in ordered if each.pk == share_id), None) if share_id else first
    own = Workspace.objects.filter(pk=workspace.pk)
    return {
        "heading": _("Shares"),
        "workspace": workspace,
        "all_workspaces": list(Workspace.objects.visible_to(caller)),
        "query": f"?{urlencode({'workspace': workspace.slug})}",
        "shares": ordered,
        "needs": [str(kind) for kind in NEEDS],
        "share": chosen,
        "markup": markdown(chosen.body) if chosen else "",
        "is_chosen": share_id is not None,
        "may_write": own.filter(caller.within("", MAY_WRITE)).exists(),
    }


def _workspace(request: HttpRequest) -> Workspace:
    try:
        return editing.workspace_of(caller_in(request), request.GET.get("workspace") or None)
    except NotFound as error:
        raise Http404 from error

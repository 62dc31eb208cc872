"""Workspaces: their folders, what holds in them, and who is in."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse
from django.http.request import split_domain_port
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from agents_app.definitions.agents import agents_of
from parachute_site.pages.forms import MemberForm, NewWorkspaceForm, RoleForm, WorkspaceForm
from parachute_site.pages.frame import caller_in, framed
from parachute_site.pages.reach import NAMES
from sessions_app.access import reading
from sessions_app.access.caller import MAY_WRITE, Caller
from sessions_app.access.models import Role, TrustLevel, Workspace
from sessions_app.access.services import (
    add_member,
    archive_workspace,
    change_role,
    change_workspace,
    create_workspace,
    invite,
    remove_member,
    remove_workspace,
)
from sessions_app.errors import Invalid, NotFound, ParachuteError

COLUMNS = [
    *("name", "vault_path", "default_agent", "default_model", "default_trust", "trust_floor"),
    *("time_zone", "agents", "writes_copies", "curates"),
]
HERE = ("localhost", "127.0.0.1", "[::1]")


@never_cache
@login_required
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    return framed(request, "workspaces/list.html", _listed(caller_in(request)), place="workspaces")


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    caller = caller_in(request)
    if not caller.is_operator:
        raise Http404
    form = NewWorkspaceForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        given = dict(form.cleaned_data)
        made = _taken(form, lambda: create_workspace(caller, given.pop("slug"), given))
        if made is not None:
            messages.success(request, _("The workspace is made, and you own it."))
            return redirect("workspace", made.slug)
    context = {**_listed(caller), "form": form, "is_new": True}
    return framed(request, "workspaces/new.html", context, place="workspaces", status=_status(form))


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def one(request: HttpRequest, slug: str) -> HttpResponse:
    if request.method != "POST":
        return _page(request, slug)
    caller = caller_in(request)
    workspace, _role = _found(caller, slug)
    form = _form(caller, workspace, request.POST)
    if form.is_valid():
        wanted = form.wanted()
        if _taken(form, lambda: change_workspace(caller, slug, wanted)) is not None:
            messages.success(request, _("Saved."))
            return redirect("workspace", slug)
    return _page(request, slug, status=_status(form), form=form)


@never_cache
@login_required
@require_POST
def archive(request: HttpRequest, slug: str) -> HttpResponse:
    """Into the archive, or out of it."""
    puts_in = "back" not in request.POST
    said = _("It is in the archive: nothing is said in it any more.") if puts_in else _("It is in use again.")
    return _done(request, slug, lambda: archive_workspace(caller_in(request), slug, archived=puts_in), said)


@never_cache
@login_required
@require_POST
def take_away(request: HttpRequest, slug: str) -> HttpResponse:
    said = _("The workspace is removed. Its folder is as it was.")
    return _done(request, slug, lambda: remove_workspace(caller_in(request), slug), said, after="workspaces")


@never_cache
@login_required
@require_POST
def add(request: HttpRequest, slug: str) -> HttpResponse:
    form = MemberForm(request.POST)
    if not form.is_valid():
        return _page(request, slug, status=422, error=_("Give the name of a person here, and choose a role."))
    name, role = form.cleaned_data["user"], form.cleaned_data["role"]
    said = _("%(name)s is a member now.") % {"name": name}
    return _done(request, slug, lambda: add_member(caller_in(request), slug, name, role), said)


@never_cache
@login_required
@require_POST
def invitation(request: HttpRequest, slug: str) -> HttpResponse:
    """Answers with the page itself and redirects nowhere: the link would have to be kept on the way."""
    form = MemberForm(request.POST)
    if not form.is_valid():
        return _page(request, slug, status=422, error=_("Give a name for them, and choose a role."))
    try:
        user, token = invite(caller_in(request), slug, form.cleaned_data["user"], form.cleaned_data["role"])
    except NotFound as error:
        raise Http404 from error
    except ParachuteError as error:
        return _page(request, slug, status=error.status, error=error.message)
    link = request.build_absolute_uri(reverse("signin-link", args=[token]))
    is_here_only = split_domain_port(request.get_host())[0] in HERE
    invited = {"invited": user.get_username(), "link": link, "is_here_only": is_here_only}
    return _page(request, slug, status=201, **invited)


@never_cache
@login_required
@require_POST
def change(request: HttpRequest, slug: str, user_id: int) -> HttpResponse:
    form = RoleForm(request.POST)
    if not form.is_valid():
        return _page(request, slug, status=422, error=_("Choose one of the roles in the list."))
    role = form.cleaned_data["role"]
    return _done(
        request, slug, lambda: change_role(caller_in(request), slug, user_id, role), _("The role is changed.")
    )


@never_cache
@login_required
@require_POST
def remove(request: HttpRequest, slug: str, user_id: int) -> HttpResponse:
    said = _("They are no member any more.")
    after = "workspaces" if user_id == request.user.pk else ""
    return _done(request, slug, lambda: remove_member(caller_in(request), slug, user_id), said, after=after)


def _done(
    request: HttpRequest, slug: str, act: Callable[[], object], said: str, *, after: str = ""
) -> HttpResponse:
    """Does it and says so on the page; or says there why it was not done."""
    try:
        act()
    except NotFound as error:
        raise Http404 from error
    except ParachuteError as error:
        return _page(request, slug, status=error.status, error=error.message)
    messages.success(request, said)
    return redirect(after) if after else redirect("workspace", slug)


def _taken(form: Form, act: Callable[[], Workspace]) -> Workspace | None:
    """What is refused stands beside the field that it is about."""
    try:
        return act()
    except ParachuteError as error:
        named = error.details.get("fields", [{}])[0].get("field", "") if isinstance(error, Invalid) else ""
        known = {"vaultPath": "vault_path", "timeZone": "time_zone"}.get(named, named)
        form.add_error(known if known in form.fields else None, error.message)
        return None


def _status(form: Form) -> int:
    return 422 if form.errors else 200


def _page(request: HttpRequest, slug: str, *, status: int = 200, **more: Any) -> HttpResponse:
    caller = caller_in(request)
    workspace, role = _found(caller, slug)
    is_owner = role == Role.OWNER
    context = {
        **_listed(caller),
        "workspace": workspace,
        "is_owner": is_owner,
        "may_chat": role in MAY_WRITE and workspace.archived_at is None,
        "roles": Role.choices,
        "members": reading.members_of(caller, slug),
        "trust": (NAMES[TrustLevel(workspace.default_trust)], NAMES[TrustLevel(workspace.trust_floor)]),
        "form": _form(caller, workspace) if is_owner else None,
        **more,
    }
    return framed(request, "workspaces/one.html", context, place="workspaces", status=status)


def _listed(caller: Caller) -> dict[str, Any]:
    return {
        "heading": _("Workspaces"),
        "own": reading.workspaces_with_roles(caller),
        "archived_ones": reading.workspaces_with_roles(caller, archived=True),
        "is_operator": caller.is_operator,
    }


def _form(caller: Caller, workspace: Workspace, data: Any = None) -> WorkspaceForm:
    agents = [(each.slug, each.definition.name) for each in agents_of(workspace) if each.slug]
    initial = {name: getattr(workspace, name) for name in COLUMNS}
    return WorkspaceForm(data, initial=initial, agents=agents, is_operator=caller.is_operator)


def _found(caller: Caller, slug: str) -> tuple[Workspace, str]:
    try:
        return reading.workspace(caller, slug)
    except NotFound as error:
        raise Http404 from error

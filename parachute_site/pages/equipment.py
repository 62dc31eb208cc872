"""What agents of a workspace work with: MCP servers, skills, and the secrets that servers are given."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from agents_app.definitions.editing import workspace_of
from agents_app.rights.owners import owns
from agents_app.tools.mcp import secrets, services, trying
from agents_app.tools.mcp.pasted import pasted
from agents_app.tools.mcp.services import Server
from agents_app.tools.skills import services as skills
from agents_app.tools.skills.services import Listed
from parachute_site.pages.frame import caller_in, framed
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.errors import NotFound, ParachuteError

PLACE = "tools"


@never_cache
@login_required
@ensure_csrf_cookie
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    return framed(request, "tools/list.html", _listed(request), place=PLACE)


@never_cache
@login_required
@ensure_csrf_cookie
@require_safe
def server(request: HttpRequest, name: str) -> HttpResponse:
    listed = _listed(request, f"server {name}")
    if listed["server"] is None:
        raise Http404(name)
    return framed(request, "tools/server.html", listed, place=PLACE)


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, name: str = "") -> HttpResponse:
    """A new one, or one that is there. What cannot be taken stays in the form."""
    listed = {**_listed(request, f"server {name}" if name else ""), "is_form": True, "name": name}
    if name and listed["server"] is None:
        raise Http404(name)
    if request.method != "POST":
        text = json.dumps(listed["server"].entry.masked(), indent=2, ensure_ascii=False) if name else ""
        return framed(request, "tools/edit.html", {**listed, "text": text}, place=PLACE)
    typed = {"name": name or request.POST.get("name", "").strip(), "text": request.POST.get("config", "")}
    workspace = listed["workspace"]
    try:
        wanted, config = pasted(typed["name"], typed["text"])
        services.save(caller_in(request), workspace, wanted, config)
    except ParachuteError as error:
        told = {**listed, **typed, "error": error.message}
        return framed(request, "tools/edit.html", told, place=PLACE, status=error.status)
    messages.success(request, _("Saved, and accepted as it is. Try it to see its tools."))
    return redirect(where("tools-server", workspace, wanted))


@never_cache
@login_required
@require_POST
def accept(request: HttpRequest, name: str) -> HttpResponse:
    def do(caller: Caller, workspace: Workspace) -> str:
        services.accept(caller, workspace, name, request.POST.get("hash", ""))
        return _("Accepted. It may be started from the next message on.")

    return _done(request, do, "tools-server", name)


@never_cache
@login_required
@require_POST
def switch(request: HttpRequest, name: str) -> HttpResponse:
    on = "on" in request.POST

    def do(caller: Caller, workspace: Workspace) -> str:
        services.switch(caller, workspace, name, on=on)
        return _("On from the next message on.") if on else _("Off from the next message on.")

    return _done(request, do, "tools-server", name)


@never_cache
@login_required
@require_POST
def try_it(request: HttpRequest, name: str) -> HttpResponse:
    def do(caller: Caller, workspace: Workspace) -> str:
        tried = trying.try_one(caller, workspace, name)
        return "" if tried.problem else _("It works.")

    return _done(request, do, "tools-server", name)


@never_cache
@login_required
@require_POST
def delete(request: HttpRequest, name: str) -> HttpResponse:
    def do(caller: Caller, workspace: Workspace) -> str:
        services.remove(caller, workspace, name)
        return _("Removed from .mcp.json.")

    return _done(request, do, "tools-server", name, then="tools")


@never_cache
@login_required
@ensure_csrf_cookie
@require_safe
def skill(request: HttpRequest, name: str) -> HttpResponse:
    listed = _listed(request, f"skill {name}")
    if listed["skill"] is None:
        raise Http404(name)
    return framed(request, "tools/skill.html", listed, place=PLACE)


@never_cache
@login_required
@ensure_csrf_cookie
@require_safe
def new_skill(request: HttpRequest) -> HttpResponse:
    return framed(request, "tools/upload.html", {**_listed(request), "is_form": True}, place=PLACE)


@never_cache
@login_required
@require_POST
def switch_skill(request: HttpRequest, name: str) -> HttpResponse:
    on = "on" in request.POST

    def do(caller: Caller, workspace: Workspace) -> str:
        skills.switch(caller, workspace, name, on=on)
        return _("On from the next message on.") if on else _("Off from the next message on.")

    return _done(request, do, "tools-skill", name)


@never_cache
@login_required
@require_POST
def delete_skill(request: HttpRequest, name: str) -> HttpResponse:
    def do(caller: Caller, workspace: Workspace) -> str:
        skills.remove(caller, workspace, name)
        return _("The skill is removed from the folder.")

    return _done(request, do, "tools-skill", name, then="tools")


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def keep(request: HttpRequest) -> HttpResponse:
    """The secrets: their names, and a form for one more. No value is ever shown."""
    listed = {**_listed(request), "is_secrets": True, "is_form": True}
    if request.method != "POST":
        name = request.GET.get("name", "")
        return framed(request, "tools/secrets.html", {**listed, "name": name}, place=PLACE)
    workspace, name = listed["workspace"], request.POST.get("name", "").strip()
    try:
        if "remove" in request.POST:
            secrets.remove(caller_in(request), workspace, name)
        else:
            secrets.save(caller_in(request), workspace, name, request.POST.get("value", ""))
    except ParachuteError as error:
        told = {**listed, "name": name, "error": error.message}
        return framed(request, "tools/secrets.html", told, place=PLACE, status=error.status)
    messages.success(
        request, _("Removed.") if "remove" in request.POST else _("Kept, and never shown again.")
    )
    return redirect(where("tools-secrets", workspace))


def parts(caller: Caller, part: str, workspace_slug: str, chosen: str) -> tuple[str, dict[str, Any]]:
    """For the socket: what a part of this page is made of now, and its template."""
    context = _about(caller, workspace_of(caller, workspace_slug or None), chosen)
    if part == "tool" and context["server"] is None:
        return "tools/gone.html", context
    return {"tools": "tools/rows.html", "tool": "tools/sheets.html"}[part], context


def where(page: str, workspace: Workspace, name: str = "") -> str:
    path = reverse(page, args=[name] if name else [])
    return f"{path}?{urlencode({'workspace': workspace.slug})}"


def _done(
    request: HttpRequest, do: Callable[[Caller, Workspace], str], page: str, name: str, *, then: str = ""
) -> HttpResponse:
    workspace = _workspace(request)
    try:
        said = do(caller_in(request), workspace)
    except NotFound as error:
        raise Http404 from error
    except ParachuteError as error:
        messages.error(request, error.message)
        return redirect(where(page, workspace, name))
    if said:
        messages.success(request, said)
    return redirect(where(then, workspace) if then else where(page, workspace, name))


def _listed(request: HttpRequest, chosen: str = "") -> dict[str, Any]:
    return _about(caller_in(request), _workspace(request), chosen)


def _about(caller: Caller, workspace: Workspace, chosen: str) -> dict[str, Any]:
    """`chosen` is a kind and a name, as in `server garden`."""
    kind, _blank, name = chosen.partition(" ")
    servers, problem = services.servers_of(workspace)
    found = skills.listed(workspace)
    server = next((each for each in servers if kind == "server" and each.name == name), None)
    names = secrets.names(workspace)
    return {
        "heading": _("Tools"),
        "servers": [(each, _state(each, names)) for each in servers],
        "file_problem": problem,
        "skills": [(each, _state_of_skill(each)) for each in found],
        "secret_names": names,
        "server": server,
        "missing": [each for each in server.entry.variables if each not in names] if server else [],
        "config": json.dumps(server.entry.masked(), indent=2, ensure_ascii=False) if server else "",
        "skill": next((each for each in found if kind == "skill" and each.skill.name == name), None),
        "chosen": chosen,
        "workspace": workspace,
        "query": f"?{urlencode({'workspace': workspace.slug})}",
        "all_workspaces": list(Workspace.objects.visible_to(caller)),
        "is_owner": owns(caller, workspace),
    }


def _state(server: Server, names: list[str]) -> dict[str, str]:
    """A dot and a word for the list."""
    entry, known = server.entry, server.known
    if entry.problem:
        return {"dot": "bad", "word": _("wrong"), "about": entry.problem}
    if not server.is_accepted:
        return {"dot": "need", "word": _("changed") if known else _("waits"), "about": entry.what}
    if any(each not in names for each in entry.variables):
        return {"dot": "need", "word": _("wants a secret"), "about": entry.what}
    if known and known.problem:
        return {"dot": "bad", "word": _("does not work"), "about": known.problem}
    dot = "good" if known and known.tried_at else ""
    return {"dot": dot, "word": _("on") if server.is_on else _("by name"), "about": entry.what}


def _state_of_skill(each: Listed) -> dict[str, str]:
    if each.skill.error:
        return {"dot": "bad", "word": _("wrong"), "about": each.skill.error}
    return {"dot": "", "word": _("on") if each.is_on else _("by name"), "about": each.skill.description}


def _workspace(request: HttpRequest) -> Workspace:
    try:
        return workspace_of(caller_in(request), request.GET.get("workspace") or None)
    except NotFound as error:
        raise Http404 from error

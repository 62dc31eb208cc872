"""The agents of a workspace: a list, one of them with what its file means, what it is told, and the file."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from agents_app.definitions import accepting, editing
from agents_app.definitions.agents import Agent, agents_of, is_offered
from agents_app.definitions.rights import Rights
from agents_app.prompts.telling import prompt_of
from agents_app.schedules import services as schedules
from agents_app.schedules.models import AgentSchedule
from parachute_site.pages.frame import caller_in, framed
from parachute_site.pages.reach import NAMES
from permissions_app.grants import NewGrant, make_grant, revoke_grant
from permissions_app.models import PermissionGrant
from permissions_app.models.grants import GrantScope
from sessions_app.access.caller import MAY_WRITE, Caller
from sessions_app.access.models import Role, TrustLevel, Workspace
from sessions_app.errors import NotFound, ParachuteError
from sessions_app.models import SessionKind

TICKS_SHOWN = 5

RIGHTS: dict[str, Promise] = {
    "kind": gettext_lazy("Kind"),
    "trust": gettext_lazy("At most reaches"),
    "tools": gettext_lazy("Tools"),
    "write": gettext_lazy("May write"),
    "read": gettext_lazy("May read beyond the folder"),
    "bash": gettext_lazy("Commands without asking"),
    "servers": gettext_lazy("Servers"),
    "spawn": gettext_lazy("Starts"),
    "schedule": gettext_lazy("Runs by itself"),
    "budget": gettext_lazy("Dollars a day"),
}


@never_cache
@login_required
@ensure_csrf_cookie
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    return framed(request, "agents/list.html", _listed(request), place="agents")


@never_cache
@login_required
@ensure_csrf_cookie
@require_safe
def one(request: HttpRequest, slug: str) -> HttpResponse:
    return _page(request, slug, "agents/one.html")


@never_cache
@login_required
@ensure_csrf_cookie
@require_safe
def told(request: HttpRequest, slug: str) -> HttpResponse:
    listed = _listed(request, slug)
    prompt = prompt_of(caller_in(request), listed["workspace"], _chosen(listed, slug), None)
    return framed(request, "agents/told.html", {**listed, "prompt": prompt}, place="agents")


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, slug: str) -> HttpResponse:
    """What cannot be saved stays in the form, with what is wrong in it."""
    listed = _listed(request, slug)
    agent = _chosen(listed, slug)
    is_file = bool(agent.definition.path)
    text = agent.definition.text if is_file else editing.first_text(slug)
    typed = {"text": text, "digest": agent.definition.digest if is_file else ""}
    if request.method != "POST":
        return framed(request, "agents/edit.html", {**listed, **typed}, place="agents")
    return _save(request, listed, slug, "agents/edit.html")


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    listed = {**_listed(request), "is_new": True, "digest": ""}
    if request.method != "POST":
        text = editing.first_text("gardener").replace("Gardener", "Helper")
        return framed(request, "agents/edit.html", {**listed, "text": text, "name": ""}, place="agents")
    name = request.POST.get("name", "").strip()
    return _save(request, {**listed, "name": name}, name.lower().replace(" ", "-"), "agents/edit.html")


@never_cache
@login_required
@require_POST
def accept(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = _workspace(request)
    try:
        agent = editing.known(workspace, slug)
        accepting.accept(caller_in(request), workspace, agent.definition, request.POST.get("hash", ""))
    except NotFound as error:
        raise Http404 from error
    except ParachuteError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, _("What the file asks for counts from the next message on."))
    return redirect(where("agent", workspace, slug))


@never_cache
@login_required
@require_POST
def starts(request: HttpRequest, slug: str) -> HttpResponse:
    """Lets it start another one, for good, or not any more."""
    workspace, caller = _workspace(request), caller_in(request)
    child, grant_id = request.POST.get("child", ""), request.POST.get("grant", "")
    try:
        if grant_id:
            revoke_grant(caller, workspace.slug, _uuid(grant_id))
        else:
            editing.known(workspace, child)
            make_grant(caller, workspace.slug, NewGrant(slug, child, GrantScope.PERSISTENT))
    except NotFound as error:
        raise Http404 from error
    except ParachuteError as error:
        messages.error(request, error.message)
    return redirect(where("agent", workspace, slug))


@never_cache
@login_required
@require_POST
def switch(request: HttpRequest, slug: str) -> HttpResponse:
    is_on = "on" in request.POST

    def do(row: AgentSchedule) -> str:
        schedules.switch(caller_in(request), row.pk, is_on=is_on)
        return _("It runs by itself again.") if is_on else _("It does not run by itself any more.")

    return _with_times(request, slug, do)


@never_cache
@login_required
@require_POST
def run_now(request: HttpRequest, slug: str) -> HttpResponse:
    def do(row: AgentSchedule) -> str:
        made = schedules.run_now(caller_in(request), row.pk)
        return f"{made.get_outcome_display()}. {made.reason}".strip()

    return _with_times(request, slug, do)


def _with_times(request: HttpRequest, slug: str, act: Callable[[AgentSchedule], str]) -> HttpResponse:
    workspace = _workspace(request)
    try:
        said = act(schedules.known(workspace, editing.known(workspace, slug)))
    except NotFound as error:
        raise Http404 from error
    except ParachuteError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, said)
    return redirect(where("agent", workspace, slug))


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise NotFound from error


@never_cache
@login_required
@require_POST
def delete(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = _workspace(request)
    try:
        editing.remove(caller_in(request), workspace, slug)
    except NotFound as error:
        raise Http404 from error
    except ParachuteError as error:
        messages.error(request, error.message)
        return redirect(where("agent", workspace, slug))
    messages.success(request, _("The file is deleted. Chats with this agent go on with the default one."))
    return redirect(where("agents", workspace))


def where(page: str, workspace: Workspace, slug: str = "") -> str:
    path = reverse(page, args=[slug] if slug else [])
    return f"{path}?{urlencode({'workspace': workspace.slug})}"


def parts(caller: Caller, part: str, workspace_slug: str, slug: str) -> tuple[str, dict[str, Any]]:
    """For the socket: what a part of this page is made of now, and its template."""
    workspace = editing.workspace_of(caller, workspace_slug or None)
    context = _about(caller, workspace, slug)
    if part == "agent" and context["agent"] is None:
        return "agents/gone.html", context
    return {"agents": "agents/rows.html", "agent": "agents/sheets.html"}[part], context


def _page(request: HttpRequest, slug: str, template: str, status: int = 200, **more: Any) -> HttpResponse:
    listed = _listed(request, slug)
    _chosen(listed, slug)
    return framed(request, template, {**listed, **more}, place="agents", status=status)


def _save(request: HttpRequest, listed: dict[str, Any], slug: str, template: str) -> HttpResponse:
    workspace, text = listed["workspace"], request.POST.get("content", "").replace("\r\n", "\n")
    digest = request.POST.get("digest", "")
    try:
        saved, _is_new = editing.save(caller_in(request), workspace, slug, text, read=digest)
    except ParachuteError as error:
        typed = {"text": text, "digest": digest, "error": error.message}
        return framed(request, template, {**listed, **typed}, place="agents", status=error.status)
    messages.success(request, _("Saved. It counts from the next message on."))
    return redirect(where("agent", workspace, saved.slug))


def _listed(request: HttpRequest, slug: str = "") -> dict[str, Any]:
    return _about(caller_in(request), _workspace(request), slug)


def _about(caller: Caller, workspace: Workspace, slug: str) -> dict[str, Any]:
    agents = agents_of(workspace)
    agent = next((each for each in agents if slug and each.slug == slug), None)
    mine = Workspace.objects.visible_to(caller)
    own = Workspace.objects.filter(pk=workspace.pk)
    may_write = own.filter(caller.within("", MAY_WRITE)).exists()
    is_chosen = bool(agent and agent.definition.is_usable and is_offered(workspace, agent.slug))
    return {
        "heading": _("Agents"),
        "agents": [(each, _state(workspace, each)) for each in agents],
        "agent": agent,
        "facts": facts(agent) if agent else [],
        "changes": changes(agent) if agent else [],
        "others": _others(workspace, agent, agents) if agent else [],
        **_times(caller, workspace, agent),
        "workspace": workspace,
        "query": f"?{urlencode({'workspace': workspace.slug})}",
        "all_workspaces": list(mine),
        "may_write_agents": may_write,
        "is_owner": own.filter(caller.within(roles=(Role.OWNER,))).exists(),
        "may_chat": is_chosen and may_write,
    }


def _others(workspace: Workspace, agent: Agent, agents: list[Agent]) -> list[dict[str, Any]]:
    """Whom it may start, and whom it could. An orchestrator is nobody's child."""
    grants = PermissionGrant.objects.active().filter(
        workspace=workspace, agent=agent.slug, scope=GrantScope.PERSISTENT
    )
    held = dict(grants.values_list("child_agent", "pk"))
    return [
        {"agent": each, "grant": held.get(each.slug), "is_of_file": each.slug in agent.rights.spawn}
        for each in agents
        if each.slug
        and each.slug != agent.slug
        and each.definition.is_usable
        and each.rights.kind != SessionKind.ORCHESTRATOR
    ]


def _times(caller: Caller, workspace: Workspace, agent: Agent | None) -> dict[str, Any]:
    row = schedules.of(workspace, agent) if agent else None
    if row is None:
        return {}
    return {
        "schedule": row,
        "next_at": schedules.next_of(row),
        "ticks": schedules.last_ticks(workspace.pk, row.agent, TICKS_SHOWN),
        "may_decide_times": schedules.may_decide(caller, workspace),
    }


def _state(workspace: Workspace, agent: Agent) -> dict[str, str]:
    """A dot and a word for the list."""
    problem = next(iter(agent.definition.problems), None)
    if problem is not None:
        line = _("line %(n)d") % {"n": problem.line} if problem.line else _("wrong")
        return {"dot": "bad", "word": line, "about": problem.message}
    about = agent.definition.fields.description or agent.definition.path
    if agent.pending:
        return {"dot": "need", "word": _("asks for more"), "about": about}
    for each in agent.definition.all_problems:
        return {"dot": "need", "word": _("line %(n)d") % {"n": each.line or 1}, "about": each.message}
    kind = SessionKind(agent.rights.kind).label if agent.rights.kind != SessionKind.WORKER else ""
    word = str(kind) if is_offered(workspace, agent.slug) else _("not offered")
    return {"dot": "", "word": word, "about": about}


def facts(agent: Agent) -> list[tuple[Promise, str, bool]]:
    """What counts of its rights: a label, words, and whether they are names as a file has them."""
    rights = agent.rights
    said = [(name, words_for(name, getattr(rights, name))) for name in RIGHTS]
    shown = [(RIGHTS[name], words, name in ("write", "schedule", "read", "bash")) for name, words in said]
    default = Rights()
    kept = ("kind", "trust", "tools", "write")
    return [
        row
        for row, (name, _words) in zip(shown, said, strict=True)
        if name in kept or getattr(rights, name) != getattr(default, name)
    ]


def changes(agent: Agent) -> list[tuple[str, str]]:
    """What a person would accept, as the lines of a diff: a mark, and what is put in or taken out."""
    found: list[tuple[str, str]] = []
    for name in agent.pending:
        now, asked = getattr(agent.rights, name), getattr(agent.definition.wanted, name)
        found.append((" ", f"{RIGHTS[name]}:"))
        if isinstance(now, tuple) and isinstance(asked, tuple):
            found += [("-", each) for each in now if each not in asked]
            found += [("+" if each not in now else " ", each) for each in asked]
        else:
            found += [("-", words_for(name, now)), ("+", words_for(name, asked))]
    return found


def words_for(name: str, value: Any) -> str:
    if value is None or value == "":
        nothing = {"trust": _("what its chat may"), "tools": _("all that are offered")}
        nothing |= {"write": _("where its chat may"), "budget": _("no limit of its own")}
        return nothing.get(name, _("nothing"))
    if name == "budget":
        return _("%(dollars)s, which nothing counts against yet") % {"dollars": value}
    if name == "trust":
        return str(NAMES[TrustLevel(value)])
    if name == "kind":
        return str(SessionKind(value).label)
    if isinstance(value, tuple):
        return ", ".join(each.partition("=")[0] for each in value) or _("nothing")
    return str(value)


def _workspace(request: HttpRequest) -> Workspace:
    try:
        return editing.workspace_of(caller_in(request), request.GET.get("workspace") or None)
    except NotFound as error:
        raise Http404 from error


def _chosen(listed: dict[str, Any], slug: str) -> Agent:
    agent: Agent | None = listed["agent"]
    if agent is None:
        raise Http404(slug)
    return agent

"""Orchestrators and what they started: who lives, who is silent, what woke them, and what all of it costs."""

from collections.abc import Callable
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
from agents_app.definitions.agents import agents_of
from agents_app.orchestration import cancelling, family, ledger, running, supervision, waking
from agents_app.schedules import services as schedules
from agents_app.schedules.models import AgentSchedule
from parachute_site.pages.frame import caller_in, framed
from sessions_app import reading
from sessions_app.access.caller import MAY_WRITE, Caller
from sessions_app.access.models import Workspace
from sessions_app.errors import NotFound, ParachuteError
from sessions_app.models import Session, SessionKind
from sessions_app.models.session import LIVE

WAKES_SHOWN = 50


@never_cache
@login_required
@ensure_csrf_cookie
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    workspace = _workspace(request)
    return framed(request, "runs/list.html", _about(caller_in(request), workspace), place="runs")


@never_cache
@login_required
@ensure_csrf_cookie
@require_safe
def one(request: HttpRequest, session_id: UUID) -> HttpResponse:
    caller = caller_in(request)
    session = _session(caller, session_id)
    return framed(request, "runs/one.html", _whole(caller, session), place="runs")


@never_cache
@login_required
@require_POST
def run(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = _workspace(request)
    try:
        session, _is_new = running.run(caller_in(request), workspace.slug, slug)
    except NotFound as error:
        raise Http404 from error
    except ParachuteError as error:
        messages.error(request, error.message)
        return redirect(f"{reverse('agent', args=[slug])}?{urlencode({'workspace': workspace.slug})}")
    return redirect("chat", session.pk)


@never_cache
@login_required
@require_POST
def pause(request: HttpRequest, session_id: UUID) -> HttpResponse:
    said = _("Nothing wakes it now. What comes waits.")
    return _done(request, session_id, lambda caller: supervision.pause(caller, session_id), said)


@never_cache
@login_required
@require_POST
def resume(request: HttpRequest, session_id: UUID) -> HttpResponse:
    said = _("It is woken again, with what has waited.")
    return _done(request, session_id, lambda caller: supervision.resume(caller, session_id), said)


@never_cache
@login_required
@require_POST
def cancel(request: HttpRequest, session_id: UUID) -> HttpResponse:
    reason = request.POST.get("reason", "")[: cancelling.LONGEST_REASON]
    said = _("It is ended.")
    return _done(request, session_id, lambda caller: cancelling.cancel(caller, session_id, reason), said)


def parts(caller: Caller, part: str, workspace_slug: str, chosen: str) -> tuple[str, dict[str, Any]]:
    """For the socket."""
    if part == "runs":
        workspace = editing.workspace_of(caller, workspace_slug or None)
        return "runs/rows.html", {**_about(caller, workspace), "chosen_id": chosen}
    try:
        session = reading.visible(caller, UUID(chosen))
    except ValueError as error:
        raise NotFound from error
    return "runs/sheets.html", _whole(caller, session)


def _done(request: HttpRequest, session_id: UUID, act: Callable[[Caller], object], said: str) -> HttpResponse:
    caller = caller_in(request)
    session = _session(caller, session_id)
    try:
        act(caller)
    except ParachuteError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, said)
    where = "chat" if request.POST.get("from") == "chat" else "run"
    return redirect(where, session.parent_id or session.pk)


def _about(caller: Caller, workspace: Workspace) -> dict[str, Any]:
    found = family.parents(caller, workspace.pk)
    living = {each.session.agent_slug for each in found if each.is_live}
    usable = [agent for agent in agents_of(workspace) if agent.definition.is_usable]
    orchestrators = [agent for agent in usable if agent.rights.kind == SessionKind.ORCHESTRATOR]
    wanted = [agent for agent in usable if agent.definition.wanted.kind == SessionKind.ORCHESTRATOR]
    names = {agent.slug: agent.definition.name for agent in usable}
    own = Workspace.objects.filter(pk=workspace.pk)
    return {
        "heading": _("Orchestrators"),
        "workspace": workspace,
        "all_workspaces": list(Workspace.objects.visible_to(caller)),
        "query": f"?{urlencode({'workspace': workspace.slug})}",
        "names": names,
        "runs": [(each, names.get(each.session.agent_slug, each.session.agent_slug)) for each in found],
        "resting": [agent for agent in orchestrators if agent.slug not in living],
        "asking": [agent for agent in wanted if agent not in orchestrators],
        "may_write": own.filter(caller.within("", MAY_WRITE)).exists(),
    }


def _whole(caller: Caller, session: Session) -> dict[str, Any]:
    about = _about(caller, session.workspace)
    name = about["names"].get(session.agent_slug, session.agent_slug)
    return {**about, **_of_one(caller, session), "name": name}


def _of_one(caller: Caller, session: Session) -> dict[str, Any]:
    wakes, costs = ledger.wakes(caller, session.workspace.slug, session.pk)
    own_cost, whole_cost = family.cost_of(session.pk)
    (member,) = family.members(Session.objects.filter(pk=session.pk))
    row = AgentSchedule.objects.filter(workspace=session.workspace_id, agent=session.agent_slug).first()
    members, is_live = family.children_of(session.pk, caller), session.status in LIVE
    waits = member.state == "paused" or family.count_live(members) > 0
    return {
        "session": session,
        "chosen_id": str(session.pk),
        "member": member,
        "is_live": is_live,
        "may_be_paused": is_live or (waits and waking.can_be_woken(session)),
        "members": members,
        "wakes": wakes[:WAKES_SHOWN],
        "costs": costs,
        "own_cost": own_cost,
        "whole_cost": whole_cost,
        "schedule": row,
        "next_at": schedules.next_of(row) if row else None,
        "ticks": schedules.last_ticks(session.workspace_id, session.agent_slug) if row else [],
    }


def _workspace(request: HttpRequest) -> Workspace:
    try:
        return editing.workspace_of(caller_in(request), request.GET.get("workspace") or None)
    except NotFound as error:
        raise Http404 from error


def _session(caller: Caller, session_id: UUID) -> Session:
    try:
        return reading.visible(caller, session_id)
    except NotFound as error:
        raise Http404 from error

"""What the pages show of the curator: its chip, its last runs, and the days that it logged."""

import json
from datetime import date
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_safe

from curator_app import reading, services
from curator_app.models import CuratorRun
from parachute_site.pages.frame import caller_in, framed
from sessions_app import reading as sessions
from sessions_app.access.caller import Caller
from sessions_app.errors import Forbidden, NotFound
from sessions_app.models import Session
from sessions_app.services import check_writable

SHOWN = 8  # runs in the dialog


def chip(session: Session | None) -> dict[str, Any]:
    """For the page of a chat: its last run as its metadata have it, which the page tells in words."""
    run = session.metadata.get(services.LAST_RUN) if session else None
    return {"curator_run": json.dumps(run) if run else ""}


@never_cache
@login_required
@require_safe
def runs(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """The last runs of a chat, as markup for the dialog."""
    caller = caller_in(request)
    try:
        session = sessions.visible(caller, session_id)
    except NotFound as error:
        raise Http404 from error
    may_write = _may_write(caller, session_id)
    shown = [_shown(run, session, may_write=may_write) for run in reading.runs(caller, session_id, SHOWN)]
    is_on = services.is_on(session)
    context = {
        "runs": shown,
        "may_trigger": may_write and is_on,
        "is_off_here": not is_on and not session.workspace.curates,
        "is_off": not is_on,
        "workspace": session.workspace,
    }
    return render(request, "curator_runs.html", context)


def _may_write(caller: Caller, session_id: UUID) -> bool:
    try:
        check_writable(caller, session_id)
    except Forbidden:
        return False
    return True


def _shown(run: CuratorRun, session: Session, *, may_write: bool) -> dict[str, Any]:
    return {"run": run, "undo": services.undoable(session, run) if may_write else {}}


@never_cache
@login_required
@ensure_csrf_cookie
@require_safe
def days(request: HttpRequest, day: date | None = None) -> HttpResponse:
    """A day at a glance: what was logged, each line with the way to its chat."""
    caller = caller_in(request)
    listed = reading.days(caller)
    shown = day or (listed[0].day if listed else None)
    context = {
        "heading": _("A day at a glance"),
        "days": listed,
        "day": shown,
        "entries": reading.entries(caller, shown) if shown else [],
        "is_chosen": day is not None,
    }
    return framed(request, "days.html", context, place="days")


class DayConverter:
    """A date in a path, as the files of the log are named."""

    regex = r"\d{4}-\d{2}-\d{2}"

    def to_python(self, value: str) -> date:
        return date.fromisoformat(value)

    def to_url(self, value: date) -> str:
        return value.isoformat()

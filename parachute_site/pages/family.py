"""Whom a chat started, and who started it, on its page."""

from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from agents_app.orchestration import family
from agents_app.orchestration.models import Supervision
from sessions_app.access.caller import Caller
from sessions_app.errors import NotFound
from sessions_app.models import Session, SessionKind, SessionStatus
from sessions_app.models.session import LIVE


def about(caller: Caller, session: Session | None) -> dict[str, Any]:
    if session is None:
        return {}
    members = family.children_of(session.pk, caller) if session.parent_id is None else []
    parent = _parent(caller, session)
    is_live = bool(members) or session.kind == SessionKind.ORCHESTRATOR
    return {
        "parent": parent,
        "is_live": is_live,
        "members": members,
        "live": family.count_live(members),
        "end": _end(session),
    }


def _parent(caller: Caller, session: Session) -> Session | None:
    if session.parent_id is None:
        return None
    found: Session | None = Session.objects.visible_to(caller).filter(pk=session.parent_id).first()
    return found


def _end(session: Session) -> dict[str, str] | None:
    """Of an orchestrator any end is a real one, and of a child a failure: said loudly."""
    is_orchestrator = session.kind == SessionKind.ORCHESTRATOR and session.status not in LIVE
    is_failed_child = session.parent_id is not None and session.status == SessionStatus.FAILED
    if not is_orchestrator and not is_failed_child:
        return None
    why = Supervision.objects.filter(session=session.pk).values_list("end_message", flat=True).first() or ""
    if session.status == SessionStatus.FAILED:
        return {"title": _("This session has failed."), "why": why}
    said = _("It was idle for seven days. Run the agent, and another session begins.")
    return {"title": _("This orchestrator has come to its end."), "why": why or said}


def part(caller: Caller, name: str, workspace: str, chosen: str) -> tuple[str, dict[str, Any]]:
    """For the socket."""
    try:
        session = Session.objects.visible_to(caller).filter(pk=UUID(chosen)).first()
    except ValueError as error:
        raise NotFound from error
    if session is None:
        raise NotFound
    members = family.children_of(session.pk, caller)
    return "family.html", {"members": members, "live": family.count_live(members)}

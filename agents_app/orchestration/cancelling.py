"""Ending a session before it ends by itself: by whoever started it, or by a person.

It is `failed` at once, with who and why; its worker hears of it and ends the agent within seconds.
"""

from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from agents_app.orchestration import ending
from agents_app.orchestration.errors import NotYourChild
from agents_app.turns.said.abort import stop
from sessions_app import services
from sessions_app.access.caller import Caller
from sessions_app.errors import Conflict, SessionNotRunning
from sessions_app.models import Session, SessionStatus, Turn
from sessions_app.reading import listed
from sessions_app.storable import storable

LONGEST_REASON = 500
TRIES = 5


def cancel(caller: Caller, session_id: UUID, reason: str = "") -> Session:
    services.check_writable(caller, session_id)
    _cancel(session_id, caller.name, _said(caller.username or caller.name, reason), by_parent=False)
    return listed(session_id)


def cancel_child(parent_id: UUID, child_id: UUID, reason: str = "") -> dict[str, str]:
    parent = Session.objects.filter(pk=parent_id).first()
    if parent is None or not Session.objects.filter(pk=child_id, parent=parent).exists():
        raise NotYourChild(_("You have started no such session."))
    _cancel(child_id, f"agent:{parent.agent_slug}", _said(parent.agent_slug, reason), by_parent=True)
    return {"status": str(SessionStatus.FAILED)}


def _said(who: str, reason: str) -> str:
    why = storable(reason).strip()[:LONGEST_REASON]
    said = _("Cancelled by %(who)s: %(why)s") if why else _("Cancelled by %(who)s.")
    return said % {"who": who, "why": why}


def _cancel(session_id: UUID, by: str, error: str, *, by_parent: bool) -> None:
    if not any(_try(session_id, by, error, by_parent=by_parent) for _again in range(TRIES)):
        raise Conflict(_("Somebody speaks to it at this very moment. Try again."))


@transaction.atomic
def _try(session_id: UUID, by: str, error: str, *, by_parent: bool) -> bool:
    """The turns first, then the parent, then the session: as all who end one lock them. False where a turn
    was opened meanwhile, which would run in a session that has ended."""
    is_open = Turn.objects.open().filter(session=session_id)
    turns = list(is_open.order_by("opened_seq").select_for_update())
    ending.lock_parent_of(session_id)
    session = Session.objects.select_for_update().filter(pk=session_id).first()
    if is_open.exclude(pk__in=[turn.pk for turn in turns]).exists():
        return False
    if session is None or not ending.end(session_id, SessionStatus.FAILED, error=error, by_parent=by_parent):
        raise SessionNotRunning(_("This session has ended already."))
    for turn in turns:
        turn.session = session
        stop(turn, by[:100])
    return True

"""A late approval wakes the session: its agent was told "not now, ticket N", and is told now that it may."""

from functools import partial

from django.db import transaction
from django.utils import timezone

from agents_app.turns.opening import about, check_trust, user_message
from agents_app.turns.ringing import ring_workers
from permissions_app.models import ToolRequest
from permissions_app.rules.hosts import host_of
from permissions_app.rules.tools import REACH
from sessions_app.access.caller import Caller
from sessions_app.log import record_all
from sessions_app.models import EventType, Message, Session, SessionStatus, Speaker, Turn

ALLOWED = (
    "A person has now allowed what was not answered in time (ticket {ticket}): {tool}, with exactly the "
    "input that you gave. It may be done once, within a day. If it is still needed, make the same call "
    "again; otherwise say so and leave it."
)
REACHED = (
    "A person has now allowed what was not answered in time (ticket {ticket}): to reach {host}. It may be "
    "done in one turn, within a day. If it is still needed, run the same command again; otherwise say so and "
    "leave it."
)


def open_turn(request: ToolRequest, caller: Caller) -> None:
    """Called once a late approval, in its transaction and with the session locked: the approval is made by a
    conditional UPDATE, so it is the platform's word exactly once. One that has failed takes no more."""
    session: Session = Session.objects.select_related("workspace").get(pk=request.session_id)
    check_trust(caller, session.workspace, session.trust_level)
    if session.status == SessionStatus.FAILED and session.parent_id:
        return
    before = Turn.objects.open().filter(session=session).count()
    turn = Turn.objects.create(session=session, opened_seq=session.last_seq + 2)
    text = _text(request)
    # Its author is whoever allowed it: at full trust what is said is done only for an operator.
    Message.objects.create(
        session=session, turn=turn, source=Speaker.PLATFORM, author_id=caller.user_id, content=text
    )
    ticket = {"requestId": str(request.pk), "toolName": request.tool_name, "decision": request.status}
    rows = [
        (EventType.SESSION, about(session)),
        (EventType.USER_MESSAGE, user_message(text, Speaker.PLATFORM, ticket=ticket)),
        *([(EventType.TURN_WAITING, {"reason": "queued", "position": before})] if before else []),
    ]
    record_all(session.pk, rows, turn_id=turn.pk)
    Session.objects.filter(pk=session.pk).update(last_accessed=timezone.now())
    transaction.on_commit(partial(ring_workers, session.pk), robust=True)


def _text(request: ToolRequest) -> str:
    if request.tool_name == REACH:
        return REACHED.format(ticket=request.ticket, host=host_of(request.input["url"]))
    return ALLOWED.format(ticket=request.ticket, tool=request.tool_name)

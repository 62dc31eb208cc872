"""A late approval wakes the session: its agent was told "not now, ticket N", and is told now that it may."""

from agents_app.rights.allowed import check_trust
from agents_app.rights.trust import most_for
from agents_app.turns.said import saying
from permissions_app.models import GrantRequest, GrantRequestStatus, ToolRequest
from permissions_app.rules.hosts import host_of
from permissions_app.rules.tools import REACH
from sessions_app.access.caller import Caller
from sessions_app.models import Message, Session, SessionStatus, Speaker
from sessions_app.models.session import LIVE

ALLOWED = (
    "A person has now allowed what was not answered in time (ticket {ticket}): {tool}, with exactly the "
    "input that you gave. It may be done once, within a day. If it is still needed, make the same call "
    "again; otherwise say so and leave it."
)
GRANTED = "A person has decided on what you asked for: you may start {agent}."
REFUSED = "A person has decided on what you asked for: you may not start {agent}. Go on without it."
REACHED = (
    "A person has now allowed what was not answered in time (ticket {ticket}): to reach {host}. It may be "
    "done in one turn, within a day. If it is still needed, run the same command again; otherwise say so and "
    "leave it."
)


def open_turn(request: ToolRequest, caller: Caller) -> None:
    """Called once a late approval, in its transaction: the approval is made by a conditional UPDATE, so it is
    the platform's word exactly once. A child, or an orchestrator, that has failed takes no more."""
    session = saying.locked(Session.objects.filter(pk=request.session_id))
    assert session is not None
    check_trust(caller, session.trust_level, most_for(session))
    if session.status == SessionStatus.FAILED and session.is_driven:
        return
    # Its author is whoever allowed it: at full trust what is said is done only for an operator.
    message = Message(source=Speaker.PLATFORM, author_id=caller.user_id, content=_text(request))
    ticket = {"requestId": str(request.pk), "toolName": request.tool_name, "decision": request.status}
    saying.say(session, message, more={"ticket": ticket})


def tell_grant(request: GrantRequest) -> None:
    """Whoever asked for a grant ended its turn: it hears what was decided. One that has ended does not."""
    session = saying.locked(Session.objects.filter(pk=request.session_id))
    if session is None or (session.is_driven and session.status not in LIVE):
        return
    words = GRANTED if request.status == GrantRequestStatus.APPROVED else REFUSED
    message = Message(source=Speaker.PLATFORM, content=words.format(agent=request.child_agent))
    ticket = {"requestId": str(request.pk), "toolName": "request_grant", "decision": request.status}
    saying.say(session, message, more={"ticket": ticket})


def _text(request: ToolRequest) -> str:
    if request.tool_name == REACH:
        return REACHED.format(ticket=request.ticket, host=host_of(request.input["url"]))
    return ALLOWED.format(ticket=request.ticket, tool=request.tool_name)

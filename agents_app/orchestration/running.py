""" "Run": a session of an agent. Of an orchestrator, the one that lives."""

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from agents_app.definitions.agents import Agent, agent_of
from agents_app.definitions.choosing import agent_for
from agents_app.orchestration import supervision
from agents_app.orchestration.models import Trigger
from agents_app.turns.said.opening import (
    Opening,
    as_message,
    check_text,
    live_session,
    new_session,
    open_turn,
    workspace_for,
)
from agents_app.turns.said.saying import say
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.errors import Conflict, NotFound
from sessions_app.models import Session, SessionKind
from sessions_app.reading import listed

START = "Begin."  # where neither whoever runs it nor its file has words for it


def run(caller: Caller, slug: str, agent_slug: str, prompt: str = "") -> tuple[Session, bool]:
    """The session, and whether it is new. To one that lives only a prompt is said."""
    workspace = workspace_for(caller, slug)
    if agent_of(workspace, agent_slug) is None:
        raise NotFound(_("There is no such agent here."))
    agent = agent_for(workspace, slug=agent_slug, path=None)
    words = prompt or agent.definition.fields.heartbeat.strip() or START
    opening = Opening(words, workspace=slug, agent=agent.slug)
    if agent.rights.kind != SessionKind.ORCHESTRATOR:
        return listed(open_turn(caller, opening).session_id), True
    check_text(opening, "")
    session = _begun(caller, opening, workspace, agent)
    if session is not None:
        return listed(session.pk), True
    live = live_session(workspace, agent.slug)
    if live is None:
        raise Conflict(_("Two requests met. Send it again."))
    if prompt:
        open_turn(caller, Opening(prompt, session_id=live))
    return listed(live), False


def _begun(caller: Caller, opening: Opening, workspace: Workspace, agent: Agent) -> Session | None:
    """None where one lives. Of many who begin one at once, the database lets one."""
    if live_session(workspace, agent.slug) is not None:
        return None
    try:
        with transaction.atomic():
            session = new_session(caller, opening, workspace, agent)
            supervision.begin(session, agent.definition, Trigger.USER)
            say(session, as_message(caller, opening), author=caller.username)
    except IntegrityError:
        return None
    return session

"""What comes of a time at which an agent is due: a session of its own, or a wake of the one that lives."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from agents_app.definitions.agents import Agent
from agents_app.orchestration import supervision, waking
from agents_app.orchestration.models import Trigger, Wake, WakeKind
from agents_app.orchestration.wakes import heartbeat
from agents_app.rights.allowed import allowed_model
from agents_app.rights.trust import narrowest
from agents_app.schedules.models import TickOutcome
from agents_app.turns.said.opening import live_session
from agents_app.turns.said.saying import say
from sessions_app.access.models import TrustLevel, Workspace
from sessions_app.models import Message, Session, SessionKind, Speaker, Turn
from sessions_app.models.session import Visibility

START = "It is time. Do what you are told to do when you run by yourself."
LONGEST_TITLE = 60


@dataclass(frozen=True)
class Came:
    outcome: TickOutcome
    reason: str = ""
    session_id: UUID | None = None


def come(workspace: Workspace, agent: Agent, due: datetime) -> Came:
    """In the transaction of its tick."""
    if agent.rights.kind == SessionKind.ORCHESTRATOR:
        return _beat(workspace, agent, due)
    before = Session.objects.filter(
        workspace=workspace, agent_slug=agent.slug, kind=SessionKind.SCHEDULED, parent=None
    )
    still = Turn.objects.open().filter(session__in=before).values_list("session_id", flat=True).first()
    if still is not None:
        return Came(TickOutcome.SKIPPED, _("The one before it still runs."), still)
    session = _begun(workspace, agent, SessionKind.SCHEDULED)
    words = agent.definition.fields.heartbeat.strip() or START
    say(session, Message(source=Speaker.PLATFORM, content=words), more={"driverless": True})
    return Came(TickOutcome.STARTED, "", session.pk)


def _beat(workspace: Workspace, agent: Agent, due: datetime) -> Came:
    """Without words there is nothing to be told, and no model is asked."""
    text = agent.definition.fields.heartbeat.strip()
    live = live_session(workspace, agent.slug)
    if not text:
        if live is not None:
            waking.note(live, heartbeat.of(due, ""), skipped=heartbeat.NO_TEXT)
        return Came(TickOutcome.SKIPPED, heartbeat.NO_TEXT, live)
    if live is None:
        live = _begun_or_found(workspace, agent)
        waking.note(live, heartbeat.of(due, text))
        return Came(TickOutcome.STARTED, "", live)
    if Wake.objects.waiting().filter(session=live, kind=WakeKind.HEARTBEAT).exists():
        waking.note(live, heartbeat.of(due, ""), skipped=heartbeat.WAITS)
        return Came(TickOutcome.SKIPPED, heartbeat.WAITS, live)
    waking.note(live, heartbeat.of(due, text))
    return Came(TickOutcome.WOKEN, "", live)


def _begun_or_found(workspace: Workspace, agent: Agent) -> UUID:
    """Somebody may run it at this very moment: the database lets one."""
    try:
        with transaction.atomic():
            return _begun(workspace, agent, SessionKind.ORCHESTRATOR).pk
    except IntegrityError:
        live = live_session(workspace, agent.slug)
        if live is None:
            raise
        return live


def _begun(workspace: Workspace, agent: Agent, kind: SessionKind) -> Session:
    session = Session(
        workspace=workspace,
        visibility=Visibility.WORKSPACE,
        title=agent.definition.name[:LONGEST_TITLE],
        agent_slug=agent.slug,
        agent_type=kind,
        kind=kind,
        model=allowed_model(agent.definition.model, workspace.default_model),
        trust_level=narrowest(
            workspace.default_trust, workspace.trust_floor, agent.rights.trust, TrustLevel.VAULT
        ),
        vault_root=workspace.vault_path,
    )
    session.save(force_insert=True)
    supervision.begin(session, agent.definition, Trigger.SCHEDULE)
    return session

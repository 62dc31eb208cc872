"""Starting a child, once for each use of the tool."""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from agents_app.definitions.agents import Agent, agent_of
from agents_app.orchestration import paying, supervision
from agents_app.orchestration.errors import (
    AgentNotPermitted,
    BudgetExceeded,
    Cycle,
    DepthExceeded,
    KindNotSpawnable,
    TooManyChildren,
    WorkspaceMismatch,
)
from agents_app.orchestration.models import Trigger
from agents_app.orchestration.permitted import may_start
from agents_app.rights.allowed import allowed_model
from agents_app.rights.trust import narrowest
from agents_app.turns.said.saying import locked, say
from sessions_app.access.models import TrustLevel
from sessions_app.errors import Invalid, RateLimited, SessionNotRunning
from sessions_app.metadata import PERMISSIONS
from sessions_app.models import EventType, Message, Session, SessionKind, Speaker, Turn
from sessions_app.models.session import LIVE
from sessions_app.storable import is_storable, seen
from sessions_app.streaming.log import record

LONGEST_PROMPT = 50_000
LONGEST_USE = 100
LONGEST_TITLE = 60
MOST_CHILDREN = 10  # that live at once
ONE_EVERY = timedelta(seconds=1)


@dataclass(frozen=True)
class Order:
    """What an agent wants started. `use` is the id of its use of the tool: the same one is the same child."""

    child_agent: str
    prompt: str
    use: str
    model: str = ""
    workspace: str = ""  # where somebody names it, it must be the parent's


@transaction.atomic
def spawn(parent_id: UUID, order: Order) -> Session:
    _check_words(order)
    # The turn before its session, as everywhere: what is told of the child belongs to a turn that is not
    # over.
    turn = Turn.objects.active().filter(session=parent_id).select_for_update().first()
    parent = locked(Session.objects.filter(pk=parent_id))
    if parent is None:
        raise SessionNotRunning(_("This session is not there any more."))
    there: Session | None = Session.objects.filter(parent=parent, parent_tool_use_id=order.use).first()
    if there is not None:
        return there
    agent = _permitted(parent, order)
    _check_room(parent)
    child = _made(parent, agent, order)
    told = {"childSessionId": str(child.pk), "agentSlug": agent.slug, "toolUseId": order.use}
    record(parent.pk, EventType.CHILD_SPAWNED, told, turn_id=turn.pk if turn else None)
    return child


def _check_words(order: Order) -> None:
    if not seen(order.prompt):
        raise Invalid.field("prompt", _("Say what the child is to do: the prompt is empty."))
    if len(order.prompt) > LONGEST_PROMPT:
        most = {"length": f"{len(order.prompt):,}", "most": f"{LONGEST_PROMPT:,}"}
        raise Invalid.field("prompt", _("It has %(length)s characters; at most %(most)s are taken.") % most)
    if not is_storable(order.prompt):
        raise Invalid.field("prompt", _("It holds a character that is no text (NUL or half of a pair)."))
    if not 0 < len(order.use) <= LONGEST_USE:
        raise Invalid.field("parent_tool_use_id", _("A spawn is known by the id of its tool use."))


def _permitted(parent: Session, order: Order) -> Agent:
    """The rights, the most telling refusal first."""
    if order.workspace and order.workspace != parent.workspace.slug:
        raise WorkspaceMismatch(_("A child runs in the workspace of its parent."))
    if parent.parent_id is not None:
        raise DepthExceeded(_("A session that was started by another one starts none itself."))
    if parent.status not in LIVE:
        raise SessionNotRunning(_("This session has ended, and starts nothing any more."))
    slug = order.child_agent
    if slug == parent.agent_slug:
        raise Cycle(_("An agent cannot start itself. Choose another one."))
    if not may_start(parent, slug):
        raise AgentNotPermitted(
            _("You may not start %(slug)s. Call request_grant, and a person decides.") % {"slug": repr(slug)}
        )
    agent = agent_of(parent.workspace, slug)
    if agent is None or not agent.definition.is_usable:
        gone = _("There is no file of the agent %(slug)s, or it cannot be used as it is.")
        raise AgentNotPermitted(gone % {"slug": repr(slug)})
    if agent.rights.kind == SessionKind.ORCHESTRATOR:
        raise KindNotSpawnable(_("An orchestrator is nobody's child. Start a worker."))
    return agent


def check_living(parent_id: UUID) -> None:
    """Before one more lives: a new one, or one that was through and goes on. The parent is locked by then."""
    if Session.objects.filter(parent=parent_id, status__in=LIVE).count() >= MOST_CHILDREN:
        raise TooManyChildren(
            _("%(most)d of your children live. Wait for one to end, or end one.") % {"most": MOST_CHILDREN}
        )


def _check_room(parent: Session) -> None:
    check_living(parent.pk)
    now = timezone.now()
    just_now = Session.objects.filter(parent=parent, created_at__gt=now - ONE_EVERY)
    if just_now.filter(created_at__lte=now).exists():  # none from before the clock was set back
        raise RateLimited(_("One spawn a second. Call it again in a moment."))
    if refusal := paying.may_pay_for(parent):
        raise BudgetExceeded(refusal)


def _made(parent: Session, agent: Agent, order: Order) -> Session:
    """Its parent's author and visibility, with the parent's row locked: a change of these meets all
    children."""
    workspace = parent.workspace
    title = seen(order.prompt).splitlines()[0][:LONGEST_TITLE]
    child = Session(
        workspace=workspace,
        created_by_id=parent.created_by_id,
        visibility=parent.visibility,
        title=title,
        agent_slug=agent.slug,
        agent_type=agent.rights.kind,
        kind=SessionKind.WORKER,
        model=allowed_model(order.model or agent.definition.model, workspace.default_model),
        trust_level=narrowest(
            parent.trust_level,
            workspace.default_trust,
            workspace.trust_floor,
            agent.rights.trust,
            TrustLevel.VAULT,
        ),
        working_directory=parent.working_directory,
        vault_root=workspace.vault_path,
        parent=parent,
        parent_tool_use_id=order.use,
        has_read_strangers=parent.has_read_strangers,  # so has whoever wrote its prompt
        **_held_where(parent),
    )
    # Should its parent be deleted it looks like anybody's chat, and still nobody sits beside it.
    child.metadata[PERMISSIONS]["trustMode"] = False
    child.save(force_insert=True)
    supervision.begin(child, agent.definition, Trigger.ORCHESTRATOR)
    message = Message(source=Speaker.PARENT, content=order.prompt)
    say(child, message, more=of_parent(parent))
    return child


def _held_where(parent: Session) -> dict[str, str]:
    """What is started from a bot's chat finds what that chat may find."""
    if not parent.bot_chat:
        return {}
    return {"source": parent.source, "bot_chat": parent.bot_chat, "bot_chat_type": parent.bot_chat_type}


def of_parent(parent: Session) -> dict[str, str | bool]:
    return {
        "fromSessionId": str(parent.pk),
        "fromAgentSlug": parent.agent_slug,
        "driverless": True,
    }

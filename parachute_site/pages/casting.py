"""Who may answer in a chat, as its page offers it beside the model."""

from dataclasses import dataclass

from agents_app.definitions.agents import agent_of, offered
from agents_app.definitions.definition import builtin
from agents_app.rights.trust import narrowest
from sessions_app.access.models import TrustLevel, Workspace
from sessions_app.models import Session, SessionKind


@dataclass(frozen=True)
class AgentChoice:
    slug: str
    name: str
    workspace: str
    model: str = ""  # empty: its workspace's
    trust: str = ""  # the most that it may reach; empty: whatever its chat may
    is_usual: bool = False
    is_chosen: bool = False


def choices(
    writable: list[Workspace], workspace: Workspace | None, session: Session | None, wanted: str
) -> list[AgentChoice]:
    """Of a chat that is there its own alone, and nothing where that is the usual one."""
    if session is not None:
        return _of_session(session)
    return [choice for each in writable for choice in _of(each, workspace, wanted)]


def _of(each: Workspace, chosen_in: Workspace | None, wanted: str) -> list[AgentChoice]:
    agents = offered(each)
    slugs = {agent.slug for agent in agents}
    usual = each.default_agent if each.default_agent in slugs else builtin().slug
    is_here = chosen_in is not None and each.pk == chosen_in.pk
    chosen = (wanted if wanted in slugs else usual) if is_here else ""
    return [
        AgentChoice(
            slug=agent.slug,
            name=agent.definition.name,
            workspace=each.slug,
            model=agent.definition.model,
            trust=_most(agent.rights.trust, agent.rights.kind),
            is_usual=agent.slug == usual,
            is_chosen=agent.slug == chosen,
        )
        for agent in agents
    ]


def _most(trust: str | None, kind: str) -> str:
    driven = TrustLevel.VAULT if kind == SessionKind.ORCHESTRATOR else None
    return str(narrowest(trust, driven)) if trust or driven else ""


def _of_session(session: Session) -> list[AgentChoice]:
    if session.agent_slug == builtin().slug:
        return []
    agent = agent_of(session.workspace, session.agent_slug)
    name = agent.definition.name if agent else session.agent_slug
    own = AgentChoice(session.agent_slug, name, session.workspace.slug, is_chosen=True)
    return [own]

"""Which agents a session may start: what people granted, and what its agent's file says as far as it was
accepted. Read at each spawn, so what is taken back counts at once."""

from pathlib import Path
from uuid import UUID

from agents_app.definitions.accepting import held
from agents_app.definitions.agents import Agent, agent_of, agents_of
from permissions_app.grants import holds_spawn_grant, services, spawnable
from sessions_app.access.models import Workspace
from sessions_app.models import Session, SessionKind


def startable(session: Session) -> list[Agent]:
    """Those that are there, by slug."""
    return startable_by(session.workspace, session.agent_slug, session.pk)


def startable_by(workspace: Workspace, slug: str, session_id: UUID | None = None) -> list[Agent]:
    """Without a session: in each of its sessions. Who would be refused all the same is not among them."""
    agents = {each.slug: each for each in agents_of(workspace)}
    own = agents.get(slug)
    named = {*spawnable(workspace, slug, session_id), *(own.rights.spawn if own else ())} - {slug}
    found = [agents[each] for each in sorted(named) if each in agents]
    return [
        each for each in found if each.definition.is_usable and each.rights.kind != SessionKind.ORCHESTRATOR
    ]


def holds_any(session: Session) -> bool:
    """Whether it has a use for the tools of orchestration. Asked in each turn of each chat, so it reads no
    file: what of its agent's counts has been read just now."""
    if session.parent_id is not None:
        return False
    if session.kind == SessionKind.ORCHESTRATOR or spawnable(
        session.workspace, session.agent_slug, session.pk
    ):
        return True
    return bool(held(session.workspace, session.agent_slug).spawn)


def may_start(session: Session, slug: str) -> bool:
    if holds_spawn_grant(session.workspace, session.agent_slug, slug, session.pk):
        return True
    own = agent_of(session.workspace, session.agent_slug)
    return own is not None and slug in own.rights.spawn


def revoke_dangling() -> int:
    """Grants that name an agent whose file is gone. A vault that cannot be seen at the moment has lost
    none."""
    changed = 0
    for workspace in Workspace.objects.filter(archived_at=None):
        if Path(workspace.vault_path).is_dir():
            there = {each.slug for each in agents_of(workspace)}
            changed += services.revoke_of_the_gone(workspace, there)
    return changed

"""The agents of a workspace: what their files say, and what of it counts there."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from agents_app.definitions import accepting, files
from agents_app.definitions.definition import DEFAULT, Definition, builtin
from agents_app.definitions.rights import Rights
from sessions_app.access.models import Workspace


@dataclass(frozen=True)
class Agent:
    definition: Definition
    rights: Rights  # those that count
    accepted_at: datetime | None = None

    @property
    def slug(self) -> str:
        return self.definition.slug

    @property
    def pending(self) -> list[str]:
        """The rights of which its file asks for more than counts: they wait for a person."""
        return self.rights.beyond(self.definition.wanted) if self.definition.is_usable else []


def agents_of(workspace: Workspace) -> list[Agent]:
    """By name; the default agent first, then files that are wrong last."""
    found = files.read_all(Path(workspace.vault_path))
    if not any(each.slug == DEFAULT for each in found):
        found = [builtin(), *found]
    rights = accepting.counting(workspace, found)
    agents = [Agent(each, *rights.get(each.slug, (Rights(), None))) for each in found]
    return sorted(agents, key=_order)


def agent_of(workspace: Workspace, slug: str) -> Agent | None:
    return next((each for each in agents_of(workspace) if each.slug == slug), None) if slug else None


def offered(workspace: Workspace) -> list[Agent]:
    """Those with which a chat may be started."""
    return [
        each
        for each in agents_of(workspace)
        if each.definition.is_usable and is_offered(workspace, each.slug)
    ]


def is_offered(workspace: Workspace, slug: str) -> bool:
    chosen = workspace.agents
    return chosen is None or slug in chosen or slug == workspace.default_agent


def _order(agent: Agent) -> tuple[bool, bool, str]:
    definition = agent.definition
    return not definition.is_usable, definition.slug != DEFAULT, definition.name.casefold()

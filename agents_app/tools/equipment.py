"""What of a vault a turn works with: servers and skills that its agent, its chat and its workspace name."""

from dataclasses import dataclass

from agents_app.definitions.choosing import Cast, Warned
from agents_app.sandboxes.base import Sandbox
from agents_app.tools.mcp.chosen import chosen_for
from agents_app.tools.mcp.given import GivenServer
from agents_app.tools.skills.chosen import skills_for
from agents_app.tools.skills.given import GivenSkill
from sessions_app.models import Session


@dataclass(frozen=True)
class Equipment:
    servers: tuple[GivenServer, ...]
    hosts: frozenset[str]
    skills: tuple[GivenSkill, ...]
    warned: tuple[Warned, ...]


def equipment_of(session: Session, cast: Cast, sandbox: Sandbox) -> Equipment:
    chosen = chosen_for(session, cast, sandbox)
    skills, warned = skills_for(session, cast)
    return Equipment(chosen.servers, chosen.hosts, skills, (*chosen.warned, *warned))

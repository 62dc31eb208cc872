"""Which agent answers: the one that a person names, and at each turn what there is of it by then."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from agents_app.definitions import accepting
from agents_app.definitions.agents import Agent, agent_of, agents_of, is_offered
from agents_app.definitions.definition import DEFAULT, Definition, builtin
from agents_app.definitions.rights import Rights
from sessions_app.access.models import Workspace
from sessions_app.errors import Invalid
from sessions_app.models import Session

SHOWN = 100  # characters of a name that nobody knows


@dataclass(frozen=True)
class Warned:
    """What a person is told at the beginning of a turn: its agent is not all that its file says."""

    code: str
    title: str
    message: str


@dataclass(frozen=True)
class Cast:
    """Who answers in one turn."""

    definition: Definition
    rights: Rights
    warned: tuple[Warned, ...] = ()


def agent_for(workspace: Workspace, *, slug: str | None, path: str | None) -> Agent:
    """For a new session. Without a name it is the workspace's, and where that is not to be had, the one that
    is always there."""
    if slug or path:
        return _named(workspace, slug, path)
    for usual in (workspace.default_agent, DEFAULT):
        agent = agent_of(workspace, usual)
        if agent is not None and agent.definition.is_usable:
            return agent
    return Agent(builtin(), accepting.held(workspace, DEFAULT))


def cast_of(session: Session) -> Cast:
    """At a turn. One that is gone or cannot be read has no prompt, and no more rights than it had."""
    agent = agent_of(session.workspace, session.agent_slug)
    if agent is None:
        return _without(session, _gone(session.agent_slug))
    if not agent.definition.is_usable:
        return _without(session, _broken(agent.definition))
    about_model = agent.definition.model_problem
    warned = (
        (Warned("model_not_allowed", _("This model is not allowed"), about_model.message),)
        if about_model
        else ()
    )
    return Cast(agent.definition, agent.rights, warned)


def _without(session: Session, warned: Warned) -> Cast:
    return Cast(builtin(), accepting.held(session.workspace, session.agent_slug), (warned,))


def _gone(slug: str) -> Warned:
    said = _(
        "There is no file of the agent “%(slug)s” any more. The default agent answers, with no more rights."
    )
    return Warned("agent_gone", _("This agent is gone"), said % {"slug": slug})


def _broken(definition: Definition) -> Warned:
    said = _("%(trouble)s. Until that is mended the default agent answers, with no more rights.")
    trouble = definition.trouble.removesuffix(".")
    return Warned("agent_broken", _("This agent's file is wrong"), said % {"trouble": trouble})


def _named(workspace: Workspace, slug: str | None, path: str | None) -> Agent:
    field, named = ("agent", slug) if slug else ("agentPath", path)
    agents = agents_of(workspace)
    found = next((each for each in agents if named == (each.slug if slug else each.definition.path)), None)
    if found is None:
        known = ", ".join(each.slug for each in agents if each.definition.is_usable)
        said = _("There is no agent %(named)s here. Choose one of: %(known)s.")
        raise Invalid.field(field, said % {"named": repr(str(named)[:SHOWN]), "known": known})
    if not found.definition.is_usable:
        raise Invalid.field(field, found.definition.trouble)
    if not is_offered(workspace, found.slug):
        said = _("This workspace does not offer the agent %(slug)s.")
        raise Invalid.field(field, said % {"slug": found.slug})
    return found

"""What an agent would be told, for whoever asks before they say something."""

from pathlib import Path
from uuid import UUID

from agents_app.definitions.agents import Agent
from agents_app.orchestration import block
from agents_app.orchestration.permitted import startable_by
from agents_app.orchestration.supervision import block_of
from agents_app.prompts.assembled import Prompt, assembled
from sessions_app import reading
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.errors import NotFound


def prompt_of(caller: Caller, workspace: Workspace, agent: Agent, session_id: UUID | None) -> Prompt:
    """In a new session, or in one that is there: with its folder, its contexts and its own system prompt."""
    vault = Path(workspace.vault_path).resolve()
    if session_id is None:
        others = block.told(startable_by(workspace, agent.slug))
        return assembled(agent.definition, own="", vault=vault, directory=vault, chosen=(), block=others)
    session = reading.visible(caller, session_id)
    if (session.workspace_id, session.agent_slug) != (workspace.pk, agent.slug):
        raise NotFound
    directory = Path(session.working_directory).resolve() if session.working_directory else vault
    chosen = list(session.contexts.values_list("path", flat=True))
    return assembled(
        agent.definition,
        own=session.system_prompt,
        vault=vault,
        directory=directory,
        chosen=chosen,
        block=block_of(session),
    )

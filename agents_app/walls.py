"""Which wall a trust level gets on this machine, or why it gets none."""

from dataclasses import dataclass

from agents_app.errors import AgentError
from agents_app.sandboxes import named
from agents_app.sandboxes.base import Sandbox
from sessions_app.access.models import TrustLevel, Workspace

NO_CONTAINER = (
    "The trust level `sandboxed` needs a container, and this version runs none. Choose `vault`, which runs "
    "behind bubblewrap."
)


@dataclass(frozen=True)
class Wall:
    sandbox: Sandbox
    warning: str = ""  # said to the person where the session is less walled than its level promises


def never_available(trust: str) -> str | None:
    return NO_CONTAINER if trust == TrustLevel.SANDBOXED else None


def wall_for(trust: str, workspace: Workspace) -> Wall:
    """Fails closed: without bubblewrap only a workspace of operators alone may do without."""
    if trust == TrustLevel.FULL:
        return Wall(named("none"))
    if refusal := never_available(trust):
        raise AgentError("sandbox_unavailable", refusal)
    bubblewrap = named("bubblewrap")
    why_not = bubblewrap.unavailable()
    if why_not is None:
        return Wall(bubblewrap)
    if _is_shared(workspace):
        raise AgentError("sandbox_unavailable", f"{why_not} Not everybody in this workspace is an operator.")
    return Wall(named("none"), f"{why_not} Until then a person decides about each command and change.")


def _is_shared(workspace: Workspace) -> bool:
    """Whether somebody is in it who may not have a command run on the host."""
    return bool(Workspace.objects.open_to_non_operators().filter(pk=workspace.pk).exists())

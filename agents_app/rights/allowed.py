"""What a session may be: which trust level, model and working directory. Asked when it is made, and of its
trust with each message, because people and workspaces lose rights."""

from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext as _

from agents_app.rights.models import is_allowed_model
from agents_app.rights.trust import is_above
from agents_app.sandboxes import walls
from sessions_app.access.caller import Caller
from sessions_app.access.models import TrustLevel, Workspace
from sessions_app.errors import (
    Forbidden,
    Invalid,
    ModelNotAllowed,
    OutsideVault,
    SandboxUnavailable,
    TrustTooHigh,
)


def check_trust(caller: Caller, trust: str, most: TrustLevel) -> None:
    """A session with the whole computer does what whoever writes to it says. `most`: see `trust.most_for`."""
    if is_above(trust, most):
        raise TrustTooHigh(too_high(most))
    if trust == TrustLevel.FULL and not caller.is_operator:
        raise Forbidden(_("Only an operator may use a session with the whole computer."))
    # What is known to run nowhere is refused now; the rest is known to the worker alone.
    if refusal := walls.never_available(trust):
        raise SandboxUnavailable(refusal)


def too_high(most: TrustLevel) -> str:
    return f"At most “{most.label}” is allowed here. Give the chat that trust level, or start a new one."


def allowed_model(wanted: str | None, default: str = "") -> str:
    """`default` is the workspace's: one that is not allowed any more does not count."""
    allowed = settings.PARACHUTE_MODELS
    if wanted and not is_allowed_model(wanted):
        raise ModelNotAllowed(
            _("The model %(wanted)s is not allowed here. Choose one of: %(allowed)s.")
            % {"wanted": repr(wanted), "allowed": ", ".join(allowed)}
        )
    return wanted or (default if default and is_allowed_model(default) else str(allowed[0]))


def allowed_directory(workspace: Workspace, trust: str, wanted: str) -> str:
    """Absolute; empty where none is wanted."""
    if not wanted:
        return ""
    vault = Path(workspace.vault_path).resolve()
    try:
        resolved = (vault / wanted).resolve()
        resolved.is_dir()
    except OSError as error:
        problem = f"The working directory cannot be looked at ({error.strerror})."
        raise Invalid.field("workingDirectory", problem) from error
    if trust != TrustLevel.FULL and not resolved.is_relative_to(vault):
        raise OutsideVault.field("workingDirectory", _("The working directory lies outside the vault."))
    return str(resolved)

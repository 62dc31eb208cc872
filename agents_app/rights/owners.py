"""Who owns a workspace decides what its agents work with and when they run; each time it is in the audit."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from permissions_app import audit
from permissions_app.audit import AuditKind, Entry, Outcome
from sessions_app.access.caller import Caller
from sessions_app.access.models import Role, Workspace
from sessions_app.errors import Forbidden


def owns(caller: Caller, workspace: Workspace) -> bool:
    return Workspace.objects.filter(caller.within(roles=(Role.OWNER,)), pk=workspace.pk).exists()


def check_owns(caller: Caller, workspace: Workspace) -> None:
    if not owns(caller, workspace):
        raise Forbidden(_("Only an owner of this workspace decides what its agents work with."))


def record(
    caller: Caller, workspace: Workspace, tool: str, outcome: Outcome, arguments: Mapping[str, Any]
) -> None:
    entry = Entry(
        kind=AuditKind.GRANT,
        outcome=outcome,
        who=caller.name,
        workspace_id=workspace.pk,
        tool=tool,
        arguments=arguments,
    )
    audit.record_on_commit(entry)

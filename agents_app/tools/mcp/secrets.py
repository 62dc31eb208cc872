"""What `${NAME}` stands for in a workspace. The only writer of its secrets; nobody reads one back."""

import re

from django.utils import timezone
from django.utils.translation import gettext as _

from agents_app.rights.owners import check_owns, record
from agents_app.tools.mcp.entries import VAULT
from agents_app.tools.mcp.models import WorkspaceSecret
from permissions_app.audit import Outcome
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.errors import Conflict, Invalid, NotFound
from sessions_app.sealing import CannotUnseal, seal, unseal
from sessions_app.storable import is_storable

PURPOSE = "parachute: secrets of a workspace"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
LONGEST = 8_000
MOST = 100
TOOL = "workspace-secret"


def names(workspace: Workspace) -> list[str]:
    rows = WorkspaceSecret.objects.filter(workspace=workspace)
    return list(rows.order_by("name").values_list("name", flat=True))


def opened(workspace: Workspace, wanted: set[str]) -> dict[str, str]:
    """Those of the wanted that are there and can be read: for whoever starts a server."""
    found = {}
    for row in WorkspaceSecret.objects.filter(workspace=workspace, name__in=wanted):
        try:
            found[row.name] = unseal(row.sealed, PURPOSE)
        except CannotUnseal:  # sealed with another SECRET_KEY: as good as not there
            continue
    return found


def save(caller: Caller, workspace: Workspace, name: str, value: str) -> None:
    check_owns(caller, workspace)
    if not NAME.fullmatch(name) or name == VAULT:
        raise Invalid.field("name", _("Name it by letters, digits and underscores, such as API_TOKEN."))
    if not value or len(value) > LONGEST or not is_storable(value) or "${" in value:
        raise Invalid.field("value", _("Give text of at most 8,000 characters, without “${” in it."))
    others = WorkspaceSecret.objects.filter(workspace=workspace).exclude(name=name)
    if others.count() >= MOST:
        raise Conflict(_("A workspace keeps at most 100 secrets. Remove one that is not used."))
    kept = {"sealed": seal(value, PURPOSE), "saved_at": timezone.now(), "saved_by_id": caller.user_id}
    WorkspaceSecret.objects.update_or_create(workspace=workspace, name=name, defaults=kept)
    record(caller, workspace, TOOL, Outcome.GRANTED, {"name": name})


def remove(caller: Caller, workspace: Workspace, name: str) -> None:
    check_owns(caller, workspace)
    if not WorkspaceSecret.objects.filter(workspace=workspace, name=name).delete()[0]:
        raise NotFound
    record(caller, workspace, TOOL, Outcome.REVOKED, {"name": name})

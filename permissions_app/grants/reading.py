from permissions_app.grants import rights
from permissions_app.models.grants import GrantRequest, PermissionGrant
from sessions_app.access.caller import Caller

MOST = 500


def grants(caller: Caller, slug: str) -> list[PermissionGrant]:
    workspace = rights.workspace_of(caller, slug)
    held = PermissionGrant.objects.visible_to(caller).active().filter(workspace=workspace)
    return list(held.select_related("granted_by")[:MOST])


def requests(caller: Caller, slug: str, status: str) -> list[GrantRequest]:
    workspace = rights.workspace_of(caller, slug)
    asked = GrantRequest.objects.visible_to(caller).filter(workspace=workspace, status=status)
    return list(asked.select_related("decided_by")[:MOST])

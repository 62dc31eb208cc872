from sessions_app.access.caller import Caller
from sessions_app.access.models import ApiKey, Membership, Role, Workspace


def keys(caller: Caller) -> list[ApiKey]:
    return list(ApiKey.objects.visible_to(caller).prefetch_related("workspaces").order_by("-created_at"))


def workspaces(caller: Caller) -> list[Workspace]:
    return list(Workspace.objects.visible_to(caller))


def members(caller: Caller) -> list[tuple[Workspace, list[Membership]]]:
    """Each workspace that the caller owns, with who is in it."""
    owned = Workspace.objects.filter(caller.within(roles=(Role.OWNER,))).distinct()
    found: dict[int, list[Membership]] = {workspace.pk: [] for workspace in owned}
    rows = Membership.objects.filter(workspace__in=owned).select_related("user").order_by("user__username")
    for membership in rows:
        found[membership.workspace_id].append(membership)
    return [(workspace, found[workspace.pk]) for workspace in owned]

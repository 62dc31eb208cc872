from sessions_app.access.caller import Caller
from sessions_app.access.models import ApiKey, Membership, Role, Workspace
from sessions_app.errors import NotFound


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


def workspaces_with_roles(caller: Caller, *, archived: bool = False) -> list[tuple[Workspace, str]]:
    """Those of the caller, each with what they are there."""
    own = Workspace.objects.visible_to(caller).filter(archived_at__isnull=not archived)
    roles = Membership.objects.filter(user=caller.user_id, workspace__in=own)
    role_of = dict(roles.values_list("workspace", "role"))
    return [(workspace, role_of[workspace.pk]) for workspace in own]


def workspace(caller: Caller, slug: str) -> tuple[Workspace, str]:
    found = Workspace.objects.visible_to(caller).filter(slug=slug).first()
    if found is None:
        raise NotFound
    return found, Membership.objects.get(user=caller.user_id, workspace=found).role


def members_of(caller: Caller, slug: str) -> list[Membership]:
    found, _role = workspace(caller, slug)
    rows = Membership.objects.filter(workspace=found).select_related("user")
    return list(rows.order_by("user__username"))


def member(caller: Caller, slug: str, name: str) -> int:
    """The id of somebody in it."""
    found, _role = workspace(caller, slug)
    user = (
        Membership.objects.filter(workspace=found, user__username=name).values_list("user", flat=True).first()
    )
    if user is None:
        raise NotFound
    return user

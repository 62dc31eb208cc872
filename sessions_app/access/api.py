from typing import Any, Literal

from django.http import HttpRequest
from ninja import Router, Status

from sessions_app.access import reading
from sessions_app.access.caller import Caller
from sessions_app.access.models import Membership, Role
from sessions_app.access.schemas import (
    KeyList,
    KeyMade,
    KeyOrder,
    KeyOut,
    MemberList,
    MemberOrder,
    MemberOut,
    RoleOrder,
    WorkspaceChange,
    WorkspaceList,
    WorkspaceOrder,
    WorkspaceOut,
)
from sessions_app.access.services import (
    add_member,
    archive_workspace,
    change_role,
    change_workspace,
    create_key,
    create_workspace,
    remove_member,
    remove_workspace,
    revoke_key,
)
from sessions_app.api import caller_of
from sessions_app.schemas import refusals
from sessions_app.threads import in_thread

router = Router(tags=["auth"], by_alias=True)


@router.get(
    "/auth/keys",
    response={200: KeyList, **refusals(401, 403)},
    summary="Your keys",
    description="Those that were not revoked, without their secrets. A key that is limited to workspaces "
    "sees those alone that reach no further.",
)
async def list_keys(request: HttpRequest) -> Any:
    return await in_thread(_keys)(caller_of(request))


def _keys(caller: Caller) -> KeyList:
    return KeyList(keys=[KeyOut.of(key) for key in reading.keys(caller)])


@router.post(
    "/auth/keys",
    response={201: KeyMade, **refusals(401, 403, 404, 422)},
    summary="Make a key",
    description="It is shown this once. It may do no more than whoever makes it: no other scope, no other "
    "workspace, and no later end. Needs the scope `admin`.",
)
async def make_key(request: HttpRequest, order: KeyOrder) -> Any:
    key, token = await in_thread(create_key)(caller_of(request), order.as_wanted())
    return Status(201, KeyMade(id=key.pk, key=token))


@router.delete(
    "/auth/keys/{int:key_id}",
    response={204: None, **refusals(401, 403, 404)},
    summary="Revoke a key",
    description="At once for calls; a stream that it has open ends within a minute. Needs the scope `admin`.",
)
async def delete_key(request: HttpRequest, key_id: int) -> Any:
    await in_thread(revoke_key)(caller_of(request), key_id)
    return Status(204, None)


@router.get(
    "/workspaces",
    response={200: WorkspaceList, **refusals(401, 403)},
    summary="Your workspaces",
)
async def list_workspaces(request: HttpRequest, archived: Literal["true", "false", "any"] = "false") -> Any:
    return await in_thread(_workspaces)(caller_of(request), archived)


def _workspaces(caller: Caller, archived: str) -> WorkspaceList:
    wanted = {"true": (True,), "false": (False,), "any": (False, True)}[archived]
    found = [row for each in wanted for row in reading.workspaces_with_roles(caller, archived=each)]
    return WorkspaceList(workspaces=[WorkspaceOut.of(each, role) for each, role in found])


@router.post(
    "/workspaces",
    response={201: WorkspaceOut, **refusals(401, 403, 409, 422)},
    summary="Make a workspace",
    description="For operators, because each opens a folder of the computer. Whoever makes it owns it. Needs "
    "the scope `admin`.",
)
async def make_workspace(request: HttpRequest, order: WorkspaceOrder) -> Any:
    made = await in_thread(create_workspace)(caller_of(request), order.slug, order.columns())
    return Status(201, WorkspaceOut.of(made, Role.OWNER))


@router.get(
    "/workspaces/{slug:slug}",
    response={200: WorkspaceOut, **refusals(401, 403, 404)},
    summary="One workspace",
)
async def get_workspace(request: HttpRequest, slug: str) -> Any:
    return WorkspaceOut.of(*await in_thread(reading.workspace)(caller_of(request), slug))


@router.patch(
    "/workspaces/{slug:slug}",
    response={200: WorkspaceOut, **refusals(401, 403, 404, 409, 422)},
    summary="Change a workspace",
    description="For its owners. Only what is given changes. `archived` takes it out of the archive, or puts "
    "it there. Needs the scope `admin`.",
)
async def patch_workspace(request: HttpRequest, slug: str, order: WorkspaceChange) -> Any:
    return await in_thread(_changed)(caller_of(request), slug, order)


def _changed(caller: Caller, slug: str, order: WorkspaceChange) -> WorkspaceOut:
    changed = change_workspace(caller, slug, order.columns())
    if order.archived is not None:
        changed = archive_workspace(caller, slug, archived=order.archived)
    return WorkspaceOut.of(changed, Role.OWNER)


@router.delete(
    "/workspaces/{slug:slug}",
    response={204: None, **refusals(401, 403, 404, 409)},
    summary="Put a workspace into the archive, or remove one that is there",
    description="Nothing is said in an archived one any more. With `remove=true` one that is archived and "
    "has no chats any more is removed; its folder stays. For its owners. Needs the scope `admin`.",
)
async def delete_workspace(request: HttpRequest, slug: str, remove: bool = False) -> Any:
    await in_thread(remove_workspace if remove else archive_workspace)(caller_of(request), slug)
    return Status(204, None)


@router.get(
    "/workspaces/{slug:slug}/members",
    response={200: MemberList, **refusals(401, 403, 404)},
    summary="Who is in a workspace",
)
async def list_members(request: HttpRequest, slug: str) -> Any:
    return await in_thread(_members)(caller_of(request), slug)


def _members(caller: Caller, slug: str) -> MemberList:
    return MemberList(members=[_member(each) for each in reading.members_of(caller, slug)])


def _member(membership: Membership) -> MemberOut:
    user = membership.user
    return MemberOut(user=user.get_username(), role=Role(membership.role), is_active=user.is_active)


@router.post(
    "/workspaces/{slug:slug}/members",
    response={201: MemberOut, **refusals(401, 403, 404, 409, 422)},
    summary="Add somebody who is here already",
    description="For its owners. Who has no account yet is invited in the page. Needs the scope `admin`.",
)
async def post_member(request: HttpRequest, slug: str, order: MemberOrder) -> Any:
    return Status(201, await in_thread(_added)(caller_of(request), slug, order))


def _added(caller: Caller, slug: str, order: MemberOrder) -> MemberOut:
    return _member(add_member(caller, slug, order.user, order.role))


@router.patch(
    "/workspaces/{slug:slug}/members/{user}",
    response={200: MemberList, **refusals(401, 403, 404, 409, 422)},
    summary="Change what somebody is in it",
    description="For its owners; the last of them stays one. Needs the scope `admin`.",
)
async def patch_member(request: HttpRequest, slug: str, user: str, order: RoleOrder) -> Any:
    return await in_thread(_with_role)(caller_of(request), slug, user, order.role)


def _with_role(caller: Caller, slug: str, user: str, role: Role) -> MemberList:
    change_role(caller, slug, reading.member(caller, slug, user), role)
    return _members(caller, slug)


@router.delete(
    "/workspaces/{slug:slug}/members/{user}",
    response={204: None, **refusals(401, 403, 404, 409)},
    summary="Put somebody out of it",
    description="For its owners. At once for calls; a stream that they have open ends within a minute. Needs "
    "the scope `admin`.",
)
async def delete_member(request: HttpRequest, slug: str, user: str) -> Any:
    await in_thread(_removed)(caller_of(request), slug, user)
    return Status(204, None)


def _removed(caller: Caller, slug: str, user: str) -> None:
    remove_member(caller, slug, reading.member(caller, slug, user))

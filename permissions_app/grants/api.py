"""Grants are made, taken back and decided on by people. A Caller is always a person, or a program of theirs
with the scope `admin`: an agent's process has no key."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Status

from permissions_app.grants import reading
from permissions_app.grants.requests import decide_request
from permissions_app.grants.schemas import (
    Approval,
    GrantList,
    GrantOut,
    RequestList,
    RequestOut,
    SpawnGrantOrder,
)
from permissions_app.grants.services import NewGrant, make_grant, revoke_grant
from permissions_app.models.grants import GrantRequestStatus, GrantScope
from sessions_app.access.caller import Caller
from sessions_app.api import caller_of
from sessions_app.schemas import refusals
from sessions_app.threads import in_thread

router = Router(tags=["grants"], by_alias=True)


@router.get(
    "/workspaces/{slug:slug}/grants",
    response={200: GrantList, **refusals(401, 403, 404)},
    summary="Which agent may start which",
    description="Those that were not taken back.",
)
async def list_grants(request: HttpRequest, slug: str) -> Any:
    return await in_thread(_grants)(caller_of(request), slug)


def _grants(caller: Caller, slug: str) -> GrantList:
    return GrantList(grants=[GrantOut.of(grant) for grant in reading.grants(caller, slug)])


@router.post(
    "/workspaces/{slug:slug}/grants",
    response={200: GrantOut, 201: GrantOut, **refusals(401, 403, 404, 422)},
    summary="Let an agent start another one",
    description="Owners grant for always; who may write in the workspace grants for one session. What is "
    "granted already answers 200. Needs the scope `admin`.",
)
async def add_grant(request: HttpRequest, slug: str, order: SpawnGrantOrder) -> Any:
    made, is_new = await in_thread(_granted)(caller_of(request), slug, order.as_wanted())
    return Status(201 if is_new else 200, made)


def _granted(caller: Caller, slug: str, wanted: NewGrant) -> tuple[GrantOut, bool]:
    grant, is_new = make_grant(caller, slug, wanted)
    return GrantOut.of(grant), is_new


@router.delete(
    "/workspaces/{slug:slug}/grants/{uuid:grant_id}",
    response={204: None, **refusals(401, 403, 404)},
    summary="Take a grant back",
    description="From the next start on; what was started goes on. Needs the scope `admin`.",
)
async def delete_grant(request: HttpRequest, slug: str, grant_id: UUID) -> Any:
    await in_thread(revoke_grant)(caller_of(request), slug, grant_id)
    return Status(204, None)


@router.get(
    "/workspaces/{slug:slug}/grant-requests",
    response={200: RequestList, **refusals(401, 403, 404, 422)},
    summary="What agents ask for",
    description="Those that nobody has decided on; with `status` the others.",
)
async def list_grant_requests(
    request: HttpRequest, slug: str, status: GrantRequestStatus = GrantRequestStatus.PENDING
) -> Any:
    return await in_thread(_requests)(caller_of(request), slug, status)


def _requests(caller: Caller, slug: str, status: GrantRequestStatus) -> RequestList:
    return RequestList(requests=[RequestOut.of(asked) for asked in reading.requests(caller, slug, status)])


@router.post(
    "/workspaces/{slug:slug}/grant-requests/{uuid:grant_request_id}/approve",
    response={200: RequestOut, **refusals(401, 403, 404, 409, 422)},
    summary="Give an agent what it asks for",
    description="For its session, or for always, which owners alone may. Needs the scope `admin`.",
)
async def approve_grant_request(
    request: HttpRequest, slug: str, grant_request_id: UUID, approval: Approval
) -> Any:
    return await in_thread(_decided)(caller_of(request), slug, grant_request_id, approval.scope)


@router.post(
    "/workspaces/{slug:slug}/grant-requests/{uuid:grant_request_id}/deny",
    response={200: RequestOut, **refusals(401, 403, 404, 409)},
    summary="Refuse what an agent asks for",
    description="Needs the scope `admin`.",
)
async def deny_grant_request(request: HttpRequest, slug: str, grant_request_id: UUID) -> Any:
    return await in_thread(_decided)(caller_of(request), slug, grant_request_id, None)


def _decided(caller: Caller, slug: str, request_id: UUID, scope: GrantScope | None) -> RequestOut:
    return RequestOut.of(decide_request(caller, slug, request_id, scope))

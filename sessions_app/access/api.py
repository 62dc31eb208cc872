from typing import Any

from django.http import HttpRequest
from ninja import Router, Status

from sessions_app.access import reading
from sessions_app.access.caller import Caller
from sessions_app.access.schemas import KeyList, KeyMade, KeyOrder, KeyOut
from sessions_app.access.services import create_key, revoke_key
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

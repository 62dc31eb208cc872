"""Paths that older clients call: each is another name of an operation, and nothing more."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router

from agents_app.api import delete_session
from sessions_app import services
from sessions_app.access.caller import Caller
from sessions_app.api import (
    ListQuery,
    archive_session,
    caller_of,
    get_session,
    list_sessions,
    unarchive_session,
)
from sessions_app.schemas import SessionDetail, SessionList, SessionOut, refusals
from sessions_app.threads import in_thread

router = Router(tags=["older paths"], by_alias=True)

ONE = "/chat/session/{uuid:session_id}"


@router.get(
    "/chat/sessions",
    response={200: SessionList, **refusals(401, 403, 422)},
    deprecated=True,
    summary="GET /api/chat",
)
async def list_sessions_older(request: HttpRequest, query: Query[ListQuery]) -> Any:
    return await list_sessions(request, query)


@router.get(
    ONE,
    response={200: SessionDetail, **refusals(401, 403, 404)},
    deprecated=True,
    summary="GET /api/chat/{id}",
)
async def get_session_older(request: HttpRequest, session_id: UUID) -> Any:
    return await get_session(request, session_id)


@router.delete(
    ONE,
    response={204: None, **refusals(401, 403, 404, 409)},
    deprecated=True,
    summary="DELETE /api/chat/{id}",
)
async def delete_session_older(request: HttpRequest, session_id: UUID) -> Any:
    return await delete_session(request, session_id)


@router.post(
    f"{ONE}/archive",
    response={200: SessionOut, **refusals(401, 403, 404)},
    deprecated=True,
    summary="POST /api/chat/{id}/archive",
)
async def archive_session_older(request: HttpRequest, session_id: UUID) -> Any:
    return await archive_session(request, session_id)


@router.post(
    f"{ONE}/unarchive",
    response={200: SessionOut, **refusals(401, 403, 404)},
    deprecated=True,
    summary="POST /api/chat/{id}/unarchive",
)
async def unarchive_session_older(request: HttpRequest, session_id: UUID) -> Any:
    return await unarchive_session(request, session_id)


@router.delete(
    "/chat/session",
    response={200: SessionOut, **refusals(401, 403, 404)},
    deprecated=True,
    summary="Put the newest session that you began into the archive",
)
async def archive_newest_older(request: HttpRequest) -> Any:
    return await in_thread(_archived_newest)(caller_of(request))


def _archived_newest(caller: Caller) -> SessionOut:
    return SessionOut.of(services.archive_newest(caller))

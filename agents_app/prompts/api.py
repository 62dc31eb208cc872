"""The contexts of a session. One path has one router in ninja: these operations join those of `/chat`."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Status
from pydantic import Field

from agents_app.prompts import chosen
from sessions_app.api import caller_of, router
from sessions_app.models import SessionContext
from sessions_app.schemas import Order, Text, Wire, refusals
from sessions_app.threads import in_thread

__all__ = ["router"]


class ContextOut(Wire):
    path: str = Field(examples=["Garden"])
    added_at: datetime = Field(examples=["2026-11-20T06:00:00Z"])


class ContextList(Wire):
    contexts: list[ContextOut]


class ContextsOrder(Order):
    paths: list[Text] = Field(description="Folders of the vault, at most 20", examples=[["Garden"]])


class ContextOrder(Order):
    path: Text = Field(description="A folder of the vault, or a file in it", examples=["Garden"])


@router.get(
    "/chat/{uuid:session_id}/contexts",
    response={200: ContextList, **refusals(401, 403, 404)},
    summary="The folders whose notes for agents this session's agent is told",
)
async def list_contexts(request: HttpRequest, session_id: UUID) -> Any:
    return _listed(await in_thread(chosen.of_session)(caller_of(request), session_id))


@router.put(
    "/chat/{uuid:session_id}/contexts",
    response={200: ContextList, **refusals(401, 403, 404, 422)},
    summary="Choose these folders and no others",
    description="They count from the next turn on.",
)
async def put_contexts(request: HttpRequest, session_id: UUID, order: ContextsOrder) -> Any:
    return _listed(await in_thread(chosen.put)(caller_of(request), session_id, order.paths))


@router.post(
    "/chat/{uuid:session_id}/contexts",
    response={201: ContextList, **refusals(401, 403, 404, 422)},
    summary="Choose one more folder",
)
async def add_context(request: HttpRequest, session_id: UUID, order: ContextOrder) -> Any:
    return Status(201, _listed(await in_thread(chosen.add)(caller_of(request), session_id, order.path)))


@router.delete(
    "/chat/{uuid:session_id}/contexts",
    response={204: None, **refusals(401, 403, 404, 422)},
    summary="Tell of this folder no more",
)
async def remove_context(
    request: HttpRequest, session_id: UUID, path: Annotated[Text, Query(examples=["Garden"])]
) -> Any:
    await in_thread(chosen.remove)(caller_of(request), session_id, path)
    return Status(204, None)


def _listed(contexts: list[SessionContext]) -> dict[str, Any]:
    return {"contexts": [{"path": each.path, "added_at": each.added_at} for each in contexts]}

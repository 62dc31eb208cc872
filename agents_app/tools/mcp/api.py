"""The MCP servers of a workspace, and its secrets. Everybody in it reads; its owners decide."""

import asyncio
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Body, Query, Router, Status

from agents_app.definitions.editing import workspace_of
from agents_app.tools.mcp import secrets, services, trying
from agents_app.tools.mcp.chosen import names_given
from agents_app.tools.mcp.pasted import entry_in
from agents_app.tools.mcp.schemas import (
    AcceptServer,
    ChooseOrder,
    ChosenServer,
    ChosenServers,
    SecretList,
    SecretOrder,
    ServerList,
    ServerOut,
    SwitchOrder,
    ToolList,
    ToolOut,
    TriedOut,
    config_in,
)
from agents_app.workers.endings import to_its_end
from sessions_app import reading
from sessions_app.access.caller import Caller
from sessions_app.access.models import KeyScope
from sessions_app.api import caller_of
from sessions_app.errors import Conflict, Forbidden
from sessions_app.schemas import refusals
from sessions_app.services import check_writable
from sessions_app.threads import in_thread

router = Router(tags=["mcp"], by_alias=True, exclude_none=True)
of_chats = Router(tags=["mcp"], by_alias=True)  # what people do in sessions: another scope

Slug = Annotated[str | None, Query(None, description="A workspace's slug; yours that is oldest, if none")]
EXAMPLE = {"command": "python3", "args": ["${VAULT}/server.py"], "env": {"TOKEN": "${TOKEN}"}}


@router.get(
    "/mcp",
    response={200: ServerList, **refusals(401, 403, 404)},
    summary="The MCP servers of a workspace",
    description="As `.mcp.json` has them now. One that is not `accepted` never starts.",
)
async def list_servers(request: HttpRequest, workspace: Slug = None) -> Any:
    return await in_thread(_list)(caller_of(request), workspace)


def _list(caller: Caller, slug: str | None) -> ServerList:
    servers, problem = services.servers_of(workspace_of(caller, slug))
    return ServerList(servers={each.name: ServerOut.of(each) for each in servers}, error=problem)


@router.post(
    "/mcp/{name}",
    response={200: ServerOut, **refusals(401, 403, 404, 409, 422)},
    summary="Add a server, or change one",
    description="Written into `.mcp.json`, and accepted by that. For owners. It may stand in `mcpServers`. "
    "What comes back masked stays as it was. Needs the scope `admin`.",
)
async def post_server(
    request: HttpRequest,
    name: str,
    config: Annotated[dict[str, Any], Body(examples=[EXAMPLE])],
    workspace: Slug = None,
) -> Any:
    return await in_thread(_save)(caller_of(request), workspace, name, config)


def _save(caller: Caller, slug: str | None, name: str, config: dict[str, Any]) -> ServerOut:
    name, config = entry_in(name, config)
    return ServerOut.of(services.save(caller, workspace_of(caller, slug), name, config_in(config)))


@router.delete(
    "/mcp/{name}",
    response={204: None, **refusals(401, 403, 404, 409)},
    summary="Remove a server",
    description="From `.mcp.json`. For owners. Needs the scope `admin`.",
)
async def delete_server(request: HttpRequest, name: str, workspace: Slug = None) -> Any:
    await in_thread(_remove)(caller_of(request), workspace, name)
    return Status(204, None)


def _remove(caller: Caller, slug: str | None, name: str) -> None:
    services.remove(caller, workspace_of(caller, slug), name)


@router.post(
    "/mcp/{name}/accept",
    response={200: ServerOut, **refusals(401, 403, 404, 409, 422)},
    summary="Accept an entry as it is",
    description="For owners. It may be started from the next turn on. Needs the scope `admin`.",
)
async def accept_server(
    request: HttpRequest, name: str, order: Body[AcceptServer | None] = None, workspace: Slug = None
) -> Any:
    return await in_thread(_accept)(caller_of(request), workspace, name, order.hash if order else "")


def _accept(caller: Caller, slug: str | None, name: str, seen: str) -> ServerOut:
    return ServerOut.of(services.accept(caller, workspace_of(caller, slug), name, seen))


@router.post(
    "/mcp/{name}/switch",
    response={200: ServerOut, **refusals(401, 403, 404, 409, 422)},
    summary="Give it to agents whose files say nothing of servers, or not",
    description="For owners. Needs the scope `admin`.",
)
async def switch_server(request: HttpRequest, name: str, order: SwitchOrder, workspace: Slug = None) -> Any:
    return await in_thread(_switch)(caller_of(request), workspace, name, order.on)


def _switch(caller: Caller, slug: str | None, name: str, on: bool) -> ServerOut:
    return ServerOut.of(services.switch(caller, workspace_of(caller, slug), name, on=on))


@router.post(
    "/mcp/{name}/test",
    response={200: TriedOut, **refusals(401, 403, 404, 409)},
    summary="Start a server once",
    description="Within ten seconds, behind a wall, and ended again. For owners. Needs the scope `admin`.",
)
async def test_server(request: HttpRequest, name: str, workspace: Slug = None) -> Any:
    tried = await _tried(caller_of(request), workspace, name)
    return TriedOut(
        ok=not tried.problem, error=tried.problem, tools=[ToolOut(**each) for each in tried.tools]
    )


@router.get(
    "/mcp/{name}/tools",
    response={200: ToolList, **refusals(401, 403, 404, 409)},
    summary="The tools of a server",
    description="It is started for that, as by `test`. For owners. Needs the scope `admin`.",
)
async def list_tools(request: HttpRequest, name: str, workspace: Slug = None) -> Any:
    if not caller_of(request).may(KeyScope.ADMIN):  # which a GET does not ask for by itself
        raise Forbidden(
            _("This key has no scope `%(scope)s`. Make one that has it.") % {"scope": KeyScope.ADMIN}
        )
    tried = await _tried(caller_of(request), workspace, name)
    if tried.problem:
        raise Conflict(tried.problem)
    return ToolList(tools=[ToolOut(**each) for each in tried.tools])


async def _tried(caller: Caller, slug: str | None, name: str) -> trying.Tried:
    trial = await in_thread(_trial)(caller, slug, name)
    try:
        tried = await to_its_end(asyncio.to_thread(trial.run))  # also for nobody: what runs is counted
    finally:
        trial.end()
    await in_thread(trial.remember)(tried)
    return tried


def _trial(caller: Caller, slug: str | None, name: str) -> trying.Trial:
    return trying.begun(caller, workspace_of(caller, slug), name)


@router.get(
    "/secrets",
    response={200: SecretList, **refusals(401, 403, 404)},
    summary="The names of a workspace's secrets",
    description="What `${NAME}` stands for in `.mcp.json`. Their values are shown to nobody.",
)
async def list_secrets(request: HttpRequest, workspace: Slug = None) -> Any:
    return await in_thread(_secrets)(caller_of(request), workspace)


def _secrets(caller: Caller, slug: str | None) -> SecretList:
    return SecretList(names=secrets.names(workspace_of(caller, slug)))


@router.put(
    "/secrets/{name}",
    response={204: None, **refusals(401, 403, 404, 409, 422)},
    summary="Keep a secret",
    description="For owners. Needs the scope `admin`.",
)
async def put_secret(request: HttpRequest, name: str, order: SecretOrder, workspace: Slug = None) -> Any:
    await in_thread(_keep)(caller_of(request), workspace, name, order.value)
    return Status(204, None)


def _keep(caller: Caller, slug: str | None, name: str, value: str) -> None:
    secrets.save(caller, workspace_of(caller, slug), name, value)


@router.delete(
    "/secrets/{name}",
    response={204: None, **refusals(401, 403, 404)},
    summary="Forget a secret",
    description="For owners. Needs the scope `admin`.",
)
async def delete_secret(request: HttpRequest, name: str, workspace: Slug = None) -> Any:
    await in_thread(_forget)(caller_of(request), workspace, name)
    return Status(204, None)


def _forget(caller: Caller, slug: str | None, name: str) -> None:
    secrets.remove(caller, workspace_of(caller, slug), name)


@of_chats.get(
    "/chat/{session_id}/mcp",
    response={200: ChosenServers, **refusals(401, 403, 404)},
    summary="The servers that a chat may be given",
)
async def list_servers_of_chat(request: HttpRequest, session_id: UUID) -> Any:
    return await in_thread(_of_chat)(caller_of(request), session_id)


def _of_chat(caller: Caller, session_id: UUID) -> ChosenServers:
    session = reading.visible(caller, session_id)
    has = names_given(session)
    found = services.in_chat(session)
    return ChosenServers(servers=[ChosenServer(name=name, on=on, given=name in has) for name, on in found])


@of_chats.put(
    "/chat/{session_id}/mcp/{name}",
    response={200: ChosenServers, **refusals(401, 403, 404, 409, 422)},
    summary="Switch a server on or off in one chat",
    description="From the next turn on. Only servers that an owner accepted.",
)
async def put_server_of_chat(request: HttpRequest, session_id: UUID, name: str, order: ChooseOrder) -> Any:
    return await in_thread(_choose)(caller_of(request), session_id, name, order.on)


def _choose(caller: Caller, session_id: UUID, name: str, on: bool | None) -> ChosenServers:
    check_writable(caller, session_id)
    services.choose(reading.visible(caller, session_id), name, on)
    return _of_chat(caller, session_id)

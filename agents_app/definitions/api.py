"""Agents as files of a vault. Who may write there writes them; what they ask for, its owners accept."""

from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Body, Query, Router, Status

from agents_app.definitions import accepting, editing
from agents_app.definitions.agents import agents_of
from agents_app.definitions.schemas import (
    AcceptOrder,
    AgentDetail,
    AgentList,
    AgentOrder,
    AgentOut,
    PromptOut,
)
from agents_app.prompts.telling import prompt_of
from sessions_app.access.caller import Caller
from sessions_app.api import caller_of
from sessions_app.schemas import refusals
from sessions_app.threads import in_thread

router = Router(tags=["agents"], by_alias=True)

Slug = Annotated[str | None, Query(None, description="A workspace's slug; yours that is oldest, if none")]


@router.get(
    "/agents",
    response={200: AgentList, **refusals(401, 403, 404)},
    summary="The agents of a workspace",
    description="As their files are now. One with an `error` does not run; what is `pendingRights` does not "
    "count until an owner accepts it.",
)
async def list_agents(request: HttpRequest, workspace: Slug = None) -> Any:
    return await in_thread(_list)(caller_of(request), workspace)


def _list(caller: Caller, slug: str | None) -> AgentList:
    agents = agents_of(editing.workspace_of(caller, slug))
    return AgentList(agents=[AgentOut.of(agent) for agent in agents])


@router.get(
    "/agents/{agent}",
    response={200: AgentDetail, **refusals(401, 403, 404)},
    summary="One agent and its file",
)
async def get_agent(request: HttpRequest, agent: str, workspace: Slug = None) -> Any:
    return await in_thread(_whole)(caller_of(request), workspace, agent)


def _whole(caller: Caller, slug: str | None, agent: str) -> AgentDetail:
    return AgentDetail.whole(editing.known(editing.workspace_of(caller, slug), agent))


@router.put(
    "/agents/{agent}",
    response={200: AgentDetail, 201: AgentDetail, **refusals(401, 403, 404, 409, 413, 422)},
    summary="Write an agent's file",
    description="It is written in place; a new one into `Agents/`. What is wrong in it is refused with its "
    "lines. Needs the scope `admin`.",
)
async def put_agent(request: HttpRequest, agent: str, order: AgentOrder, workspace: Slug = None) -> Any:
    saved, is_new = await in_thread(_save)(caller_of(request), workspace, agent, order)
    return Status(201 if is_new else 200, saved)


def _save(caller: Caller, slug: str | None, agent: str, order: AgentOrder) -> tuple[AgentDetail, bool]:
    workspace = editing.workspace_of(caller, slug)
    saved, is_new = editing.save(caller, workspace, agent, order.content, read=order.digest)
    return AgentDetail.whole(saved), is_new


@router.delete(
    "/agents/{agent}",
    response={204: None, **refusals(401, 403, 404, 409)},
    summary="Delete an agent's file",
    description="Its sessions go on with the default agent, and no more rights. Needs the scope `admin`.",
)
async def delete_agent(request: HttpRequest, agent: str, workspace: Slug = None) -> Any:
    await in_thread(_delete)(caller_of(request), workspace, agent)
    return Status(204, None)


def _delete(caller: Caller, slug: str | None, agent: str) -> None:
    editing.remove(caller, editing.workspace_of(caller, slug), agent)


@router.post(
    "/agents/{agent}/accept-rights",
    response={200: AgentDetail, **refusals(401, 403, 404, 409, 422)},
    summary="Accept the rights that an agent's file asks for",
    description="For owners of the workspace. They count from the next turn on. Needs the scope `admin`.",
)
async def accept_rights(
    request: HttpRequest, agent: str, order: Body[AcceptOrder | None] = None, workspace: Slug = None
) -> Any:
    return await in_thread(_accept)(caller_of(request), workspace, agent, order.hash if order else "")


def _accept(caller: Caller, slug: str | None, agent: str, seen: str) -> AgentDetail:
    workspace = editing.workspace_of(caller, slug)
    accepting.accept(caller, workspace, editing.known(workspace, agent).definition, seen)
    return AgentDetail.whole(editing.known(workspace, agent))


@router.get(
    "/agents/{agent}/prompt",
    response={200: PromptOut, **refusals(401, 403, 404, 422)},
    summary="What an agent is told before anybody speaks",
    description="Part by part. Of a session: with its folder, its contexts and its own system prompt.",
)
async def get_agent_prompt(
    request: HttpRequest, agent: str, session: UUID | None = None, workspace: Slug = None
) -> Any:
    return await in_thread(_prompt)(caller_of(request), workspace, agent, session)


def _prompt(caller: Caller, slug: str | None, agent: str, session: UUID | None) -> PromptOut:
    workspace = editing.workspace_of(caller, slug)
    return PromptOut.of(prompt_of(caller, workspace, editing.known(workspace, agent), session))

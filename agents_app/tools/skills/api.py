"""The skills of a workspace. Everybody in it reads; its owners decide."""

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import Field

from agents_app.definitions.editing import workspace_of
from agents_app.tools.skills import services
from sessions_app.access.caller import Caller
from sessions_app.api import caller_of
from sessions_app.schemas import Order, Wire, refusals
from sessions_app.threads import in_thread

router = Router(tags=["skills"], by_alias=True)

Slug = Annotated[str | None, Query(None, description="A workspace's slug; yours that is oldest, if none")]


ZIP = {"type": "string", "format": "binary"}


class SkillOut(Wire):
    name: str = Field(examples=["month-in-review"])
    description: str = Field(examples=["Writes a review of a month"])
    error: str = Field(description="Why no agent is given it; empty: nothing is wrong")
    on: bool = Field(description="For each agent of the workspace; else for those whose files name it")
    files: list[str] = Field(examples=[["SKILL.md", "form.md"]])


class SkillList(Wire):
    skills: list[SkillOut]


class EnableOrder(Order):
    on: bool


@router.get(
    "/skills",
    response={200: SkillList, **refusals(401, 403, 404)},
    summary="The skills of a workspace",
    description="As `.claude/skills` has them now.",
)
async def list_skills(request: HttpRequest, workspace: Slug = None) -> Any:
    return await in_thread(_list)(caller_of(request), workspace)


def _list(caller: Caller, slug: str | None) -> SkillList:
    return SkillList(skills=[_out(each) for each in services.listed(workspace_of(caller, slug))])


def _out(each: services.Listed) -> SkillOut:
    skill = each.skill
    return SkillOut(
        name=skill.name,
        description=skill.description,
        error=skill.error,
        on=each.is_on and not skill.error,
        files=list(skill.files),
    )


@router.post(
    "/skills",
    response={201: SkillOut, **refusals(401, 403, 404, 409, 413, 422)},
    summary="Put a skill into the vault",
    description="The body is a zip with a `SKILL.md` at its top or in its one folder. For owners. Needs the "
    "scope `admin`.",
    openapi_extra={"requestBody": {"content": {"application/zip": {"schema": ZIP}}, "required": True}},
)
async def post_skill(request: HttpRequest, workspace: Slug = None) -> Any:
    content = request.body  # of at most 30 MB; a form would be refused beyond 64 KB
    return Status(201, await in_thread(_upload)(caller_of(request), workspace, content))


def _upload(caller: Caller, slug: str | None, content: bytes) -> SkillOut:
    made = services.upload(caller, workspace_of(caller, slug), content)
    return _out(services.Listed(made, is_on=False))


@router.put(
    "/skills/{name}",
    response={200: SkillList, **refusals(401, 403, 404, 409, 422)},
    summary="Switch a skill on for each agent of the workspace, or off",
    description="For owners. Needs the scope `admin`.",
)
async def put_skill(request: HttpRequest, name: str, order: EnableOrder, workspace: Slug = None) -> Any:
    return await in_thread(_switch)(caller_of(request), workspace, name, order.on)


def _switch(caller: Caller, slug: str | None, name: str, on: bool) -> SkillList:
    services.switch(caller, workspace_of(caller, slug), name, on=on)
    return _list(caller, slug)


@router.delete(
    "/skills/{name}",
    response={204: None, **refusals(401, 403, 404, 409)},
    summary="Remove a skill from the vault",
    description="For owners. Needs the scope `admin`.",
)
async def delete_skill(request: HttpRequest, name: str, workspace: Slug = None) -> Any:
    await in_thread(_remove)(caller_of(request), workspace, name)
    return Status(204, None)


def _remove(caller: Caller, slug: str | None, name: str) -> None:
    services.remove(caller, workspace_of(caller, slug), name)

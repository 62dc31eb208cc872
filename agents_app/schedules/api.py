"""When agents run by themselves: their files say it, and the owners of their workspace switch it."""

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Query, Router

from agents_app.definitions import editing
from agents_app.schedules import services
from agents_app.schedules.models import AgentSchedule
from agents_app.schedules.schemas import ScheduleOut, ScheduleSwitch, TickOut
from sessions_app.access.caller import Caller
from sessions_app.api import caller_of
from sessions_app.schemas import refusals
from sessions_app.threads import in_thread

router = Router(tags=["agents"], by_alias=True)

Slug = Annotated[str | None, Query(None, description="A workspace's slug; yours that is oldest, if none")]


@router.post(
    "/agents/{agent}/schedule/switch",
    response={200: ScheduleOut, **refusals(401, 403, 404, 422)},
    summary="Let an agent run by itself, or not",
    description="For owners. What is off stays off, whatever its file says; what was due meanwhile is not "
    "made up for. Needs the scope `admin`.",
)
async def switch_schedule(
    request: HttpRequest, agent: str, order: ScheduleSwitch, workspace: Slug = None
) -> Any:
    return await in_thread(_switch)(caller_of(request), workspace, agent, order.is_on)


def _switch(caller: Caller, slug: str | None, agent: str, is_on: bool) -> ScheduleOut:
    services.switch(caller, _known(caller, slug, agent).pk, is_on=is_on)
    return ScheduleOut.of(_known(caller, slug, agent))


@router.post(
    "/agents/{agent}/schedule/run",
    response={200: TickOut, **refusals(401, 403, 404, 409)},
    summary="Run an agent now, as if its time had come",
    description="For owners; on or off. What came of it is in `outcome`. Needs the scope `admin`.",
)
async def run_schedule(request: HttpRequest, agent: str, workspace: Slug = None) -> Any:
    return await in_thread(_run)(caller_of(request), workspace, agent)


def _run(caller: Caller, slug: str | None, agent: str) -> TickOut:
    return TickOut.of(services.run_now(caller, _known(caller, slug, agent).pk))


def _known(caller: Caller, slug: str | None, agent: str) -> AgentSchedule:
    workspace = editing.workspace_of(caller, slug)
    return services.known(workspace, editing.known(workspace, agent))

from typing import Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Router

from curator_app import changes, reading, services
from curator_app.ringing import ring_curator
from curator_app.schemas import CuratorQueued, CuratorRunOut, CuratorRuns, InternalChange
from curator_app.told import on_the_wire
from sessions_app.access.caller import Caller
from sessions_app.access.tokens import SessionToken
from sessions_app.api import caller_of
from sessions_app.schemas import refusals
from sessions_app.threads import in_thread

router = Router(tags=["curator"], by_alias=True)
internal = Router(tags=["internal"], by_alias=True)

OF_SESSION = "/chat/{uuid:session_id}/curator"


@router.post(
    f"{OF_SESSION}/trigger",
    response={200: CuratorQueued, **refusals(401, 403, 404, 409)},
    summary="Let the curator look at the newest exchange",
)
async def trigger_curator(request: HttpRequest, session_id: UUID) -> Any:
    await in_thread(services.trigger)(caller_of(request), session_id)
    await in_thread(ring_curator)()
    return CuratorQueued()


@router.get(
    f"{OF_SESSION}/runs",
    response={200: CuratorRuns, **refusals(401, 403, 404)},
    summary="What the curator did of late, the newest first",
)
async def curator_runs(request: HttpRequest, session_id: UUID) -> Any:
    return await in_thread(_runs)(caller_of(request), session_id)


def _runs(caller: Caller, session_id: UUID) -> CuratorRuns:
    return CuratorRuns(runs=[CuratorRunOut(**on_the_wire(run)) for run in reading.runs(caller, session_id)])


@router.post(
    f"{OF_SESSION}/runs/{{uuid:run_id}}/undo",
    response={200: CuratorRunOut, **refusals(401, 403, 404, 409)},
    summary="Take back what a run made of title and summary",
    description="Where that still stands. It is a person's from here on: the curator leaves it alone.",
)
async def undo_curator_run(request: HttpRequest, session_id: UUID, run_id: UUID) -> Any:
    run = await in_thread(services.undo)(caller_of(request), session_id, run_id)
    return CuratorRunOut(**on_the_wire(run))


@internal.patch("/sessions/{uuid:session_id}", response=dict[str, str], include_in_schema=False)
async def curate(request: HttpRequest, session_id: UUID, order: InternalChange) -> Any:
    """For the curator's own tools, with the token of a run."""
    token: SessionToken = request.auth  # type: ignore[attr-defined]
    return await in_thread(_changed)(token, order)


def _changed(token: SessionToken, order: InternalChange) -> dict[str, str]:
    if order.title is not None:
        return {"status": "ok", "title": changes.change_title(token, order.title)}
    if order.summary is not None:
        changes.change_summary(token, order.summary)
    else:
        changes.log_activity(token, order.activity or "")
    return {"status": "ok"}

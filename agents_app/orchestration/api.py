"""Running agents, ending them, and what woke them; what they share; and the same tools for helper
processes."""

from typing import Any
from uuid import UUID, uuid4

from django.http import HttpRequest
from ninja import Body, Router, Status

from agents_app.orchestration import (
    cancelling,
    ledger,
    reading,
    running,
    shares,
    spawning,
    supervision,
    talking,
)
from agents_app.orchestration.schemas import (
    CancelOrder,
    Ledger,
    RunOrder,
    SaidOrder,
    ShareList,
    ShareOut,
    Spawned,
    SpawnOrder,
)
from sessions_app import reading as sessions
from sessions_app.access.caller import Caller
from sessions_app.access.tokens import SessionToken
from sessions_app.api import caller_of
from sessions_app.errors import Forbidden, NotFound
from sessions_app.models import Session
from sessions_app.schemas import SessionOut, refusals
from sessions_app.threads import in_thread

router = Router(tags=["orchestration"], by_alias=True)
internal = Router(tags=["internal"], by_alias=True)

AT = "/workspaces/{slug:slug}"
OF_AGENT = f"{AT}/agents/{{agent}}/sessions"
OF_SESSION = f"{OF_AGENT}/{{uuid:session_id}}"


@router.post(
    OF_AGENT,
    response={200: SessionOut, 201: SessionOut, **refusals(401, 403, 404, 409, 413, 422, 429, 503)},
    summary="Run an agent",
    description="A new session; of an orchestrator the one that lives, which answers 200.",
)
async def run_agent(request: HttpRequest, slug: str, agent: str, order: Body[RunOrder | None] = None) -> Any:
    prompt = order.prompt if order else ""
    session, is_new = await in_thread(_run)(caller_of(request), slug, agent, prompt)
    return Status(201 if is_new else 200, session)


def _run(caller: Caller, slug: str, agent: str, prompt: str) -> tuple[SessionOut, bool]:
    session, is_new = running.run(caller, slug, agent, prompt)
    return SessionOut.of(session), is_new


@router.post(
    f"{OF_SESSION}/cancel",
    response={200: SessionOut, **refusals(401, 403, 404, 409, 422)},
    summary="End a session before it ends by itself",
    description="It is `failed` at once, with who and why; whoever started it is woken.",
)
async def cancel_session(
    request: HttpRequest, slug: str, agent: str, session_id: UUID, order: Body[CancelOrder | None] = None
) -> Any:
    reason = order.reason if order else ""
    return await in_thread(_cancel)(caller_of(request), slug, agent, session_id, reason)


def _cancel(caller: Caller, slug: str, agent: str, session_id: UUID, reason: str) -> SessionOut:
    _check_place(caller, slug, agent, session_id)
    return SessionOut.of(cancelling.cancel(caller, session_id, reason))


@router.post(
    f"{OF_SESSION}/pause",
    response={200: SessionOut, **refusals(401, 403, 404, 409)},
    summary="Let nothing wake a session",
    description="What comes waits. The turn that runs goes on to its end, and people may still speak to it.",
)
async def pause_session(request: HttpRequest, slug: str, agent: str, session_id: UUID) -> Any:
    return await in_thread(_pause)(caller_of(request), slug, agent, session_id)


def _pause(caller: Caller, slug: str, agent: str, session_id: UUID) -> SessionOut:
    _check_place(caller, slug, agent, session_id)
    return SessionOut.of(supervision.pause(caller, session_id))


@router.post(
    f"{OF_SESSION}/resume",
    response={200: SessionOut, **refusals(401, 403, 404, 409)},
    summary="Let a session be woken again",
    description="What waited is told at once, in one turn.",
)
async def resume_session(request: HttpRequest, slug: str, agent: str, session_id: UUID) -> Any:
    return await in_thread(_resume)(caller_of(request), slug, agent, session_id)


def _resume(caller: Caller, slug: str, agent: str, session_id: UUID) -> SessionOut:
    _check_place(caller, slug, agent, session_id)
    return SessionOut.of(supervision.resume(caller, session_id))


def _check_place(caller: Caller, slug: str, agent: str, session_id: UUID) -> None:
    session = sessions.visible(caller, session_id)
    if (session.workspace.slug, session.agent_slug) != (slug, agent):
        raise NotFound


@router.get(
    f"{AT}/wakes",
    response={200: Ledger, **refusals(401, 403, 404, 422)},
    summary="What woke sessions, and what it cost",
)
async def list_wakes(request: HttpRequest, slug: str, session: UUID | None = None) -> Any:
    return await in_thread(_wakes)(caller_of(request), slug, session)


def _wakes(caller: Caller, slug: str, session_id: UUID | None) -> Ledger:
    return Ledger.of(*ledger.wakes(caller, slug, session_id))


@router.get(
    f"{AT}/shares",
    response={200: ShareList, **refusals(401, 403, 404)},
    summary="What agents handed to people",
)
async def list_shares(request: HttpRequest, slug: str) -> Any:
    return await in_thread(_shares)(caller_of(request), slug)


def _shares(caller: Caller, slug: str) -> ShareList:
    return ShareList(shares=[ShareOut.of(each) for each in shares.shares(caller, slug)])


@router.post(
    f"{AT}/shares/{{uuid:share_id}}/resolve",
    response={200: ShareOut, **refusals(401, 403, 404, 409)},
    summary="Say that a share is done with",
)
async def resolve_share(request: HttpRequest, slug: str, share_id: UUID) -> Any:
    return await in_thread(_resolve)(caller_of(request), slug, share_id)


def _resolve(caller: Caller, slug: str, share_id: UUID) -> ShareOut:
    return ShareOut.of(shares.resolve(caller, slug, share_id))


@internal.post("/sessions", response={201: Spawned}, include_in_schema=False)
async def spawn_internally(request: HttpRequest, order: SpawnOrder) -> Any:
    return Status(201, await in_thread(_spawned)(_token(request), order))


def _spawned(token: SessionToken, order: SpawnOrder) -> Spawned:
    if order.parent_session_id != token.session_id:
        raise Forbidden("This token is for another session.")
    child = spawning.spawn(
        token.session_id,
        spawning.Order(
            child_agent=order.agent_slug,
            prompt=order.initial_prompt,
            use=order.parent_tool_use_id,
            model=order.model,
            workspace=order.workspace_slug,
        ),
    )
    return Spawned(session_id=child.pk, status=child.status)


@internal.post(
    "/sessions/{uuid:session_id}/messages", response={202: dict[str, Any]}, include_in_schema=False
)
async def say_internally(request: HttpRequest, session_id: UUID, order: SaidOrder) -> Any:
    return Status(202, await in_thread(_said)(_token(request), session_id, order))


def _said(token: SessionToken, session_id: UUID, order: SaidOrder) -> dict[str, Any]:
    """Up to the parent, or down to a child; to nobody else."""
    if not Session.objects.filter(pk=token.session_id, parent=session_id).exists():
        return talking.inject(token.session_id, session_id, order.text)
    use = order.request_id or uuid4().hex
    said = talking.message_caller(
        token.session_id, use, order.text, asks=order.needs_response, options=order.options
    )
    if said["status"] == talking.REFUSED:
        raise talking.too_many()
    return dict(said)


@internal.get("/sessions/{uuid:session_id}/events", response=dict[str, Any], include_in_schema=False)
async def read_internally(
    request: HttpRequest, session_id: UUID, after_seq: int = 0, limit: int = reading.USUAL_EVENTS
) -> Any:
    return await in_thread(reading.child_output)(_token(request).session_id, session_id, after_seq, limit)


def _token(request: HttpRequest) -> SessionToken:
    token: SessionToken = request.auth  # type: ignore[attr-defined]
    return token

from typing import Annotated, Any, Literal
from uuid import UUID

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Query, Router
from pydantic import Field

from sessions_app import labels, reading, services, stats
from sessions_app.access.caller import Caller
from sessions_app.files import attachments
from sessions_app.files.downloads import DESCRIBED as FILE
from sessions_app.history import segments
from sessions_app.schemas import (
    PendingTurn,
    SegmentOut,
    SessionDetail,
    SessionList,
    SessionOut,
    Stats,
    TagCounts,
    TagOrder,
    Tags,
    Text,
    Transcript,
    Wire,
    refusals,
)
from sessions_app.threads import in_thread

router = Router(tags=["chat"], by_alias=True)


class ListQuery(Wire):
    module: Text = ""
    workspace: Text = ""
    agent: Text = ""
    agent_type: Text = ""
    source: Text = ""
    status: Text = ""
    archived: Literal["true", "false", "any"] = "false"
    tag: Text = ""
    context: Text = ""
    parent: UUID | None = None
    search: Annotated[Text, Field(max_length=200)] = ""
    limit: Annotated[int, Field(ge=1, le=reading.MOST)] = 50
    offset: Annotated[int, Field(ge=0, le=reading.FARTHEST)] = 0
    cursor: Text = ""


@router.get(
    "/chat", response={200: SessionList, **refusals(401, 403, 422)}, summary="The sessions you may see"
)
async def list_sessions(request: HttpRequest, query: Query[ListQuery]) -> Any:
    wanted = reading.SessionFilter(
        exact={
            "module": query.module,
            "workspace__slug": query.workspace,
            "agent_slug": query.agent,
            "agent_type": query.agent_type,
            "source": query.source,
            "status": query.status,
            "labels__tag": query.tag.lower(),
            "contexts__path": query.context,
        },
        archived=query.archived,
        search=query.search,
        parent=query.parent,
        limit=query.limit,
        offset=query.offset,
        cursor=query.cursor,
    )
    return await in_thread(_page)(caller_of(request), wanted)


def _page(caller: Caller, wanted: reading.SessionFilter) -> SessionList:
    page = reading.page(caller, wanted)
    sessions = [SessionOut.of(session) for session in page.sessions]
    return SessionList.model_construct(sessions=sessions, total=page.total, next_cursor=page.next_cursor)


@router.get(
    "/chat/{uuid:session_id}",
    response={200: SessionDetail, **refusals(401, 403, 404)},
    summary="One session, and from where to follow what is not over",
)
async def get_session(request: HttpRequest, session_id: UUID) -> Any:
    return await in_thread(_detail)(caller_of(request), session_id)


def _detail(caller: Caller, session_id: UUID) -> SessionDetail:
    found = reading.whole(caller, session_id)
    return SessionDetail.of(
        found["session"],
        messages=found["messages"],
        replay_from=found["replay_from"],
        last_seq=found["session"].last_seq,
        pending_turns=[PendingTurn(**turn) for turn in found["pending"]],
        children=[SessionOut.of(child) for child in found["children"]],
        **found["contributed"],
    )


class TranscriptQuery(Wire):
    segment: Annotated[int | None, Field(ge=0, description="This one alone")] = None
    full: Annotated[bool, Field(description="All of them")] = False
    after_compact: Annotated[bool, Field(description="What its model still reads word for word")] = False


@router.get(
    "/chat/{uuid:session_id}/transcript",
    response={200: Transcript, **refusals(401, 403, 404, 422)},
    summary="A long conversation in parts",
    description="The last part, unless another is asked for. A part begins where the context of the model "
    "was compacted, or where the one before it was long.",
)
async def get_transcript(request: HttpRequest, session_id: UUID, query: Query[TranscriptQuery]) -> Any:
    chosen = segments.Chosen(query.segment, is_full=query.full, is_after_compact=query.after_compact)
    return await in_thread(_transcript)(caller_of(request), session_id, chosen)


def _transcript(caller: Caller, session_id: UUID, chosen: segments.Chosen) -> Transcript:
    messages, parts = segments.transcript(reading.visible(caller, session_id), chosen)
    told = [
        SegmentOut(
            index=part.index,
            start=part.started,
            end=part.ended,
            is_compacted=part.is_compacted,
            message_count=part.message_count,
            preview=part.preview,
        )
        for part in parts.segments
    ]
    return Transcript(messages=messages, segments=told, segment_count=len(told), skipped_lines=parts.skipped)


@router.get("/stats", response={200: Stats, **refusals(401, 403)}, summary="How much there is")
async def get_stats(request: HttpRequest) -> Any:
    return await in_thread(stats.stats)(caller_of(request))


@router.get(
    "/chat/{uuid:session_id}/attachments/{uuid:attachment_id}",
    response=refusals(401, 403, 404),
    openapi_extra={"responses": {200: FILE}},
    summary="A file that came with a message",
)
async def get_attachment(
    request: HttpRequest, session_id: UUID, attachment_id: UUID
) -> StreamingHttpResponse:
    found = await in_thread(attachments.download)(caller_of(request), session_id, attachment_id)
    return found.response()


@router.post(
    "/chat/{uuid:session_id}/archive",
    response={200: SessionOut, **refusals(401, 403, 404)},
    summary="Put a session into the archive",
    description="The list does not show it there. A message takes it out again.",
)
async def archive_session(request: HttpRequest, session_id: UUID) -> Any:
    return await in_thread(_archived)(caller_of(request), session_id, archived=True)


@router.post(
    "/chat/{uuid:session_id}/unarchive",
    response={200: SessionOut, **refusals(401, 403, 404)},
    summary="Take a session out of the archive",
)
async def unarchive_session(request: HttpRequest, session_id: UUID) -> Any:
    return await in_thread(_archived)(caller_of(request), session_id, archived=False)


def _archived(caller: Caller, session_id: UUID, *, archived: bool) -> SessionOut:
    return SessionOut.of(services.archive(caller, session_id, archived=archived))


@router.get(
    "/chat/tags",
    response={200: TagCounts, **refusals(401, 403)},
    summary="The tags of the sessions you may see",
)
async def list_tags(request: HttpRequest) -> Any:
    return {"tags": await in_thread(labels.tags_with_counts)(caller_of(request))}


@router.get(
    "/chat/tags/{path:tag}",
    response={200: SessionList, **refusals(401, 403, 422)},
    summary="The sessions with a tag",
)
async def sessions_with_tag(
    request: HttpRequest, tag: str, limit: Annotated[int, Query(ge=1, le=reading.MOST)] = 50
) -> Any:
    wanted = reading.SessionFilter(exact={"labels__tag": tag.lower()}, archived="any", limit=limit)
    return await in_thread(_page)(caller_of(request), wanted)


@router.get(
    "/chat/{uuid:session_id}/tags", response={200: Tags, **refusals(401, 403, 404)}, summary="Its tags"
)
async def get_tags(request: HttpRequest, session_id: UUID) -> Any:
    return {"tags": await in_thread(labels.tags_of)(caller_of(request), session_id)}


@router.post(
    "/chat/{uuid:session_id}/tags",
    response={200: Tags, **refusals(401, 403, 404, 422)},
    summary="Put a tag on a session",
    description="In lower case. One that it has already it keeps.",
)
async def add_tag(request: HttpRequest, session_id: UUID, order: TagOrder) -> Any:
    return {"tags": await in_thread(labels.add_tag)(caller_of(request), session_id, order.tag)}


@router.delete(
    "/chat/{uuid:session_id}/tags/{str:tag}",
    response={200: Tags, **refusals(401, 403, 404, 422)},
    summary="Take a tag off a session",
)
async def delete_tag(request: HttpRequest, session_id: UUID, tag: str) -> Any:
    return {"tags": await in_thread(labels.remove_tag)(caller_of(request), session_id, tag)}


def caller_of(request: HttpRequest) -> Caller:
    """Who calls, as `parachute_site` has found out: ninja keeps it on the request."""
    caller: Caller = request.auth  # type: ignore[attr-defined]
    return caller

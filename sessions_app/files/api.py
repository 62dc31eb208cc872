"""What lies in a vault, over HTTP: captures, folders and notes."""

from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Query, Router, Status
from pydantic import Field

from sessions_app.access import reading
from sessions_app.access.caller import Caller
from sessions_app.api import caller_of
from sessions_app.files import captures, notes
from sessions_app.files.downloads import DESCRIBED as FILE
from sessions_app.files.downloads import Download
from sessions_app.schemas import Order, Text, Wire, refusals
from sessions_app.threads import in_thread

router = Router(tags=["vault"], by_alias=True)

Slug = Annotated[str, Query(description="A workspace; yours that is oldest, if none")]


class CaptureOrder(Order):
    filename: Text = Field(description="Without folders; `.md` where it has no ending", examples=["call.md"])
    content: Text = Field(examples=["Ada called about the quinces."])
    title: Annotated[Text, Field(max_length=300)] = Field("", examples=["A call"])
    context: Annotated[Text, Field(max_length=2_000)] = Field("", examples=["from my phone"])
    timestamp: datetime | None = None
    workspace: Text = Field("", description="A slug; yours that is oldest, if none")

    def as_captured(self) -> captures.Captured:
        at = self.timestamp.isoformat() if self.timestamp else ""
        return captures.Captured(self.filename, self.content, self.title, self.context, at)


class CaptureMade(Wire):
    success: bool = True
    path: str = Field(description="In the vault", examples=["captures/call.md"])


class CaptureOut(Wire):
    filename: str = Field(examples=["call.md"])
    path: str = Field(examples=["captures/call.md"])
    size: int
    changed_at: datetime


class CaptureList(Wire):
    captures: list[CaptureOut]


class EntryOut(Wire):
    name: str = Field(examples=["Quinces.md"])
    path: str = Field(examples=["Garden/Quinces.md"])
    is_folder: bool
    size: int
    changed_at: datetime


class PlaceOut(Wire):
    path: str = Field(examples=["Garden"])
    is_folder: bool
    entries: list[EntryOut]
    text: str | None = Field(description="Null for a folder, and for what is no text")
    size: int
    is_cut: bool = Field(description="There are more entries, or more text, than are told")


@router.get("/captures", response={200: CaptureList, **refusals(401, 403, 404, 503)}, summary="The captures")
async def list_captures(request: HttpRequest, workspace: Slug = "") -> Any:
    found = await in_thread(captures.captures)(caller_of(request), workspace)
    return CaptureList(captures=[CaptureOut.model_validate(each) for each in found])


@router.post(
    "/captures",
    response={201: CaptureMade, **refusals(401, 403, 404, 413, 422, 503)},
    summary="Drop a text into the vault",
    description="It comes to lie in `captures/`. A name that is taken gets a number, unless the content is "
    "the same. At most 1 MB.",
)
async def save_capture(request: HttpRequest, order: CaptureOrder) -> Any:
    path = await in_thread(captures.save)(caller_of(request), order.workspace, order.as_captured())
    return Status(201, CaptureMade(path=path))


@router.get(
    "/captures/{str:filename}",
    response=refusals(401, 403, 404, 503),
    openapi_extra={"responses": {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}},
    summary="The text of a capture",
)
async def get_capture(request: HttpRequest, filename: str, workspace: Slug = "") -> HttpResponse:
    content = await in_thread(captures.capture)(caller_of(request), workspace, filename)
    return HttpResponse(content, content_type="text/plain; charset=utf-8", headers=AS_TEXT)


# Who opens it in a browser reads it, whatever is written in it.
AS_TEXT = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox; default-src 'none'"}


@router.get(
    "/workspaces/{slug}/vault",
    response={200: PlaceOut, **refusals(401, 403, 404)},
    summary="A folder of the vault, or a file in it",
    description="What the deny list closes to agents is not there, nor what belongs to single chats.",
)
async def get_place(request: HttpRequest, slug: str, path: Text = "") -> Any:
    return await in_thread(_place)(caller_of(request), slug, path)


def _place(caller: Caller, slug: str, path: str) -> PlaceOut:
    workspace, _role = reading.workspace(caller, slug)
    return PlaceOut.model_validate(notes.look(workspace, path))


@router.get(
    "/workspaces/{slug}/vault/file",
    response=refusals(401, 403, 404),
    openapi_extra={"responses": {200: FILE}},
    summary="A file of the vault as it lies there",
    description="What `GET …/vault` does not show is not there.",
)
async def get_file(request: HttpRequest, slug: str, path: Text) -> StreamingHttpResponse:
    found = await in_thread(_file)(caller_of(request), slug, path)
    return found.response()


def _file(caller: Caller, slug: str, path: str) -> Download:
    workspace, _role = reading.workspace(caller, slug)
    return notes.file(workspace, path)

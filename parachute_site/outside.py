"""`/mcp`: the server `parachute` for clients outside, over streamable HTTP with a key.

Each request stands for itself (stateless), so any web process may answer it. The package of the protocol is
loaded with the first one: 25 MB that most houses never need.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from django.conf import settings
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents_app.tools import looking
from agents_app.tools.looking import MOST, USUAL, Eyes
from agents_app.tools.own import Arguments, OwnTool, Told, ToolRefused, refused
from agents_app.turns.said.opening import Opened, Opening, open_turn
from parachute_site.callers import joined, key_in
from parachute_site.json_errors import answer
from sessions_app.access.caller import Caller
from sessions_app.access.models import KeyScope
from sessions_app.errors import ParachuteError
from sessions_app.models.event import TERMINAL, EventType
from sessions_app.schemas import Text
from sessions_app.streaming import watch
from sessions_app.streaming.flow import patient
from sessions_app.streaming.stream import follow_turn
from sessions_app.streaming.watch import Watch
from sessions_app.threads import in_thread

PATIENCE = 45.0  # seconds for an answer to a message; most clients wait for 60
LARGEST = 1 << 20  # bytes of a request


class Asked(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Query(Asked):
    query: Annotated[Text, Field(min_length=1, max_length=500)]
    limit: Annotated[int, Field(ge=1, le=MOST)] = USUAL


class OneSession(Asked):
    session_id: Text


class Recent(Asked):
    limit: Annotated[int, Field(ge=1, le=MOST)] = USUAL


class Said(Asked):
    message: Annotated[Text, Field(min_length=1, description="At most 102,400 characters")]
    agent: Annotated[Text | None, Field(description="A slug; without one, the workspace's default")] = None
    session_id: Annotated[Text | None, Field(description="To go on with a chat; without one, a new one")] = (
        None
    )


class Who(NamedTuple):
    caller: Caller
    find_caller: Callable[[], Awaitable[Caller | None]]  # again, while an answer is waited for


class Tool(NamedTuple):
    description: str
    asked: type[Asked]
    scope: KeyScope
    work: Callable[[Who, Any], Awaitable[Any]]


def _looking(work: Callable[..., Any]) -> Callable[[Who, Asked], Awaitable[Any]]:
    async def look(who: Who, asked: Asked) -> Any:
        return await in_thread(work)(Eyes.of_caller(who.caller), **asked.model_dump())

    return look


async def chat(who: Who, said: Said) -> Any:
    """The answer, where it comes in time; the session's id in any case, to ask for it later."""
    order = Opening(said.message, session_id=_session_id(said.session_id), agent=said.agent or None)
    opened = await in_thread(open_turn)(who.caller, order)
    told = {"session_id": str(opened.session_id)}
    try:
        async with asyncio.timeout(PATIENCE):
            return {**told, **await _end(who, opened)}
    except TimeoutError:
        return {**told, "status": "running"}


async def _end(who: Who, opened: Opened) -> dict[str, Any]:
    watched = Watch(who.find_caller, opened.session_id, KeyScope.CHAT)
    after = opened.seq - 2
    async with aclosing(follow_turn(opened.session_id, opened.turn_id, after, watched.look)) as frames:
        async for frame in frames:
            await watched.check()
            if frame is not None and frame["type"] in TERMINAL:
                return _told(frame)
    raise AssertionError("a turn's stream ends with a terminal event")


def _told(frame: dict[str, Any]) -> dict[str, Any]:
    match frame["type"]:
        case EventType.DONE:
            return {"status": "done", "response": frame["response"]}
        case EventType.ABORTED:
            return {"status": "aborted", "response": frame["partialResponse"]}
        case _:
            return {"status": "failed", "error": frame.get("message") or frame.get("error")}


def _session_id(given: str | None) -> UUID | None:
    try:
        return UUID(given) if given else None
    except ValueError as error:
        raise ToolRefused("invalid", "This is no id of a chat.") from error


TOOLS = {
    "search_vault": Tool(
        "Searches the notes of the vault by words and by meaning, best first.",
        Query,
        KeyScope.READ,
        _looking(looking.search_vault),
    ),
    "search_sessions": Tool(
        "Searches earlier chats by what was said in them, best first.",
        Query,
        KeyScope.READ,
        _looking(looking.search_sessions),
    ),
    "get_session": Tool(
        "The newest of what was said in a chat.", OneSession, KeyScope.READ, _looking(looking.get_session)
    ),
    "list_recent_sessions": Tool(
        "The chats in which something was said last, newest first.",
        Recent,
        KeyScope.READ,
        _looking(looking.list_recent_sessions),
    ),
    "chat": Tool(
        "Says something to an agent and waits up to 45 seconds for its answer. Where the status is running, "
        "ask for the chat later by get_session.",
        Said,
        KeyScope.CHAT,
        chat,
    ),
}


class Outside:
    """The ASGI application. Daphne says nothing of its life, so what the package wants to be held open is
    held by a task of ours, from the first request on."""

    def __init__(self) -> None:
        self._held: asyncio.Task[None] | None = None
        self._manager: asyncio.Future[Any] | None = None

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if key_in(joined(scope["headers"])) is None or scope["caller"] is None:
            await answer(send, 401)
        elif scope["method"] != "POST":  # nothing is told unasked, and no session is kept that could be ended
            await answer(send, 405)
        else:
            manager = await self._running()
            await manager.handle_request(scope, receive, patient(send))

    async def _running(self) -> Any:
        loop = asyncio.get_running_loop()
        if self._manager is None or self._manager.get_loop() is not loop:
            self._manager = loop.create_future()
            self._held = loop.create_task(self._hold(self._manager))
        return await asyncio.shield(self._manager)

    async def _hold(self, begun: asyncio.Future[Any]) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        manager = StreamableHTTPSessionManager(
            _server(), json_response=True, stateless=True, max_request_body_size=LARGEST
        )
        async with manager.run():
            begun.set_result(manager)
            await asyncio.Event().wait()


def _server() -> Any:
    import mcp_types as types
    from mcp.server.lowlevel import Server

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        told = [
            types.Tool(name=name, description=tool.description, input_schema=tool.asked.model_json_schema())
            for name, tool in TOOLS.items()
        ]
        return types.ListToolsResult(tools=told)

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        scope = context.request.scope
        who = Who(scope["caller"], scope["find_caller"])
        told = await called(who, params.name, params.arguments or {})
        said = types.TextContent(type="text", text=told.text)
        return types.CallToolResult(content=[said], is_error=told.is_error)

    return Server("parachute", version=settings.VERSION, on_list_tools=list_tools, on_call_tool=call_tool)


async def called(who: Who, name: str, arguments: dict[str, Any]) -> Told:
    tool = TOOLS.get(name)
    if tool is None:
        return refused(ToolRefused("invalid", f"There are the tools {', '.join(TOOLS)}."))

    async def call(arguments: Arguments, use_id: str) -> Any:
        try:
            watch.may(who.caller, tool.scope)
            return await tool.work(who, tool.asked.model_validate(arguments))
        except ValidationError as error:
            raise ToolRefused("invalid", _sentence(error)) from error
        except ParachuteError as error:
            raise ToolRefused(error.code, error.message) from error

    return await OwnTool(name, tool.description, {}, call).told(arguments, "")


def _sentence(error: ValidationError) -> str:
    parts = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
    return f"The arguments do not fit. {'. '.join(parts)}."


outside: Any = Outside()

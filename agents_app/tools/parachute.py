"""The server `parachute`, which every session has: finding notes and chats, and tags of its own chat.

What it finds is what whoever reads its answers may see (`Scope.of_session`), asked anew at each call: a chat
may be shared, or not any more, while its agent's process rests.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db import transaction

from agents_app.tools import looking
from agents_app.tools.looking import MOST, Eyes
from agents_app.tools.own import Arguments, OwnServer, OwnTool, ToolRefused
from sessions_app import labels
from sessions_app.errors import ParachuteError
from sessions_app.models import Session
from sessions_app.threads import in_thread

NAME = "parachute"

Work = Callable[[Session, Arguments], Any]

_TEXT = {"type": "string", "minLength": 1, "maxLength": 500}
_LIMIT = {"type": "integer", "minimum": 1, "maximum": MOST}


def server(session: Session) -> OwnServer:
    session_id = session.pk

    def tool(name: str, description: str, work: Work, *required: str, **properties: Any) -> OwnTool:
        async def call(arguments: Arguments, use_id: str) -> Any:
            return await in_thread(_done)(session_id, work, arguments)

        schema = {"type": "object", "properties": properties, "required": list(required)}
        return OwnTool(name, description, schema | {"additionalProperties": False}, call)

    return OwnServer(
        NAME,
        (
            tool("search_vault", SEARCH_VAULT, _search_vault, "query", query=_TEXT, limit=_LIMIT),
            tool("search_sessions", SEARCH_SESSIONS, _search_sessions, "query", query=_TEXT, limit=_LIMIT),
            tool("get_session", GET_SESSION, _get_session, "session_id", session_id={"type": "string"}),
            tool("list_recent_sessions", LIST_RECENT, _list_recent, limit=_LIMIT),
            tool("add_tag", "Puts a tag on this chat.", _add_tag, "tag", tag=_TEXT),
            tool("remove_tag", "Takes a tag off this chat.", _remove_tag, "tag", tag=_TEXT),
        ),
    )


SEARCH_VAULT = (
    "Searches the notes of the vault by their words, best first. For files whose place is known use Read."
)
SEARCH_SESSIONS = "Searches earlier chats by what was said in them, best first."
GET_SESSION = "The newest of what was said in a chat that a search or the list has named."
LIST_RECENT = "The chats in which something was said last, newest first."


def _done(session_id: UUID, work: Work, arguments: Arguments) -> Any:
    session = Session.objects.filter(pk=session_id).first()
    if session is None:
        raise ToolRefused("invalid", "This chat is not there any more.")
    try:
        return work(session, arguments)
    except ParachuteError as error:
        raise ToolRefused(error.code, error.message) from error


def _search_vault(session: Session, given: Arguments) -> Any:
    return looking.search_vault(Eyes.of_session(session), **given)


def _search_sessions(session: Session, given: Arguments) -> Any:
    return looking.search_sessions(Eyes.of_session(session), **given)


def _get_session(session: Session, given: Arguments) -> Any:
    return looking.get_session(Eyes.of_session(session), **given)


def _list_recent(session: Session, given: Arguments) -> Any:
    return looking.list_recent_sessions(Eyes.of_session(session), **given)


@transaction.atomic
def _add_tag(session: Session, given: Arguments) -> Any:
    return {"tags": labels.put_tag(_locked(session), given["tag"])}


@transaction.atomic
def _remove_tag(session: Session, given: Arguments) -> Any:
    return {"tags": labels.take_tag(_locked(session), given["tag"])}


def _locked(session: Session) -> Session:
    locked: Session = Session.objects.select_for_update().get(pk=session.pk)
    return locked

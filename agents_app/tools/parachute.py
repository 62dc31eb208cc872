"""The server `parachute`, which every session has: finding notes and chats, tags of its own chat, and what it
hands to people.

What it finds is what whoever reads its answers may see (`Scope.of_session`), asked anew at each call: a chat
may be shared, or not any more, while its agent's process rests.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction

from agents_app.orchestration import shares
from agents_app.tools import looking
from agents_app.tools.looking import MOST, Eyes
from agents_app.tools.own import Arguments, OwnServer, OwnTool, ToolRefused
from sessions_app import labels
from sessions_app.errors import ParachuteError
from sessions_app.models import Session
from sessions_app.threads import in_thread

NAME = "parachute"

Work = Callable[[Session, Arguments, str], Any]

_TEXT = {"type": "string", "minLength": 1, "maxLength": 500}
_TITLE = {"type": "string", "minLength": 1, "maxLength": 200}
_BODY = {"type": "string", "maxLength": shares.LONGEST_BODY}
_LIMIT = {"type": "integer", "minimum": 1, "maximum": MOST}


def server(session: Session) -> OwnServer:
    session_id = session.pk

    def tool(name: str, description: str, work: Work, *required: str, **properties: Any) -> OwnTool:
        async def call(arguments: Arguments, use_id: str) -> Any:
            return await in_thread(_done)(session_id, work, arguments, use_id or uuid4().hex)

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
            tool("share", SHARE, _share, "title", "body", title=_TITLE, body=_BODY),
            tool("agent_status", STATUS, _status, "status", status=_TITLE, message={"type": "string"}),
        ),
    )


SEARCH_VAULT = (
    "Searches the notes of the vault by their words, best first. For files whose place is known use Read."
)
SEARCH_SESSIONS = "Searches earlier chats by what was said in them, best first."
GET_SESSION = "The newest of what was said in a chat that a search or the list has named."
SHARE = (
    "Hands something to people, who read it when they come by. A title that begins with "
    "`Needs human review:`, `Needs cancellation:` or `Post-mortem:` says what it is."
)
STATUS = "Says in a few words what you are at, such as `working` or `quiescent`."
LIST_RECENT = "The chats in which something was said last, newest first."


def _done(session_id: UUID, work: Work, arguments: Arguments, use: str) -> Any:
    session = Session.objects.filter(pk=session_id).first()
    if session is None:
        raise ToolRefused("invalid", "This chat is not there any more.")
    try:
        return work(session, arguments, use)
    except ParachuteError as error:
        raise ToolRefused(error.code, error.message) from error


def _search_vault(session: Session, given: Arguments, use: str) -> Any:
    return looking.search_vault(Eyes.of_session(session), **given)


def _search_sessions(session: Session, given: Arguments, use: str) -> Any:
    return looking.search_sessions(Eyes.of_session(session), **given)


def _get_session(session: Session, given: Arguments, use: str) -> Any:
    return looking.get_session(Eyes.of_session(session), **given)


def _list_recent(session: Session, given: Arguments, use: str) -> Any:
    return looking.list_recent_sessions(Eyes.of_session(session), **given)


@transaction.atomic
def _add_tag(session: Session, given: Arguments, use: str) -> Any:
    return {"tags": labels.put_tag(_locked(session), given["tag"])}


@transaction.atomic
def _remove_tag(session: Session, given: Arguments, use: str) -> Any:
    return {"tags": labels.take_tag(_locked(session), given["tag"])}


def _share(session: Session, given: Arguments, use: str) -> Any:
    made = shares.share(session.pk, use, str(given.get("title", "")), str(given.get("body", "")))
    return {"share_id": str(made.pk), "status": "shared"}


def _status(session: Session, given: Arguments, use: str) -> Any:
    shares.say_status(session.pk, str(given.get("status", "")), str(given.get("message") or ""))
    return {"status": "ok"}


def _locked(session: Session) -> Session:
    locked: Session = Session.objects.select_for_update().get(pk=session.pk)
    return locked

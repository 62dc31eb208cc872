"""Looking for notes and chats by a tool, for an agent of ours or for a client outside: the same answers, each
through the eyes of whoever asks."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from agents_app.tools.own import ToolRefused
from sessions_app.access.caller import Caller
from sessions_app.history import conversation
from sessions_app.models import Session
from sessions_app.search.finding import Hit, Scope, Wish, find
from sessions_app.search.models import ContentType
from sessions_app.storable import storable

MOST, USUAL = 50, 10
LONGEST_TOLD = 20_000  # characters of a chat, its newest


@dataclass(frozen=True)
class Eyes:
    """What may be seen, and from which chat: that one is not found in itself."""

    scope: Scope
    own: UUID | None = None

    @classmethod
    def of_session(cls, session: Session) -> "Eyes":
        return cls(Scope.of_session(session), session.pk)

    @classmethod
    def of_caller(cls, caller: Caller) -> "Eyes":
        return cls(Scope.of_caller(caller))

    @property
    def sessions(self) -> Any:
        return Session.objects.filter(self.scope.sessions)


def search_vault(eyes: Eyes, query: str, limit: int = USUAL) -> Any:
    kinds = (ContentType.DOCUMENT, ContentType.JOURNAL)
    return {"results": [{"path": hit.path, **_told(hit)} for hit in _found(eyes, query, limit, *kinds)]}


def search_sessions(eyes: Eyes, query: str, limit: int = USUAL) -> Any:
    found = _found(eyes, query, limit, ContentType.SESSION)
    return {"results": [{"session_id": str(hit.session_id), **_told(hit)} for hit in found]}


def get_session(eyes: Eyes, session_id: str) -> Any:
    try:
        wanted = UUID(session_id)
    except ValueError as error:
        raise ToolRefused("invalid", "This is no id of a chat.") from error
    found = eyes.sessions.filter(pk=wanted).first()
    if found is None:
        raise ToolRefused("not_found", "There is no such chat, or it may not be seen here.")
    return {**_line(found), "summary": found.summary, "messages": _newest(found)}


def list_recent_sessions(eyes: Eyes, limit: int = USUAL) -> Any:
    recent = eyes.sessions.filter(archived=False, parent=None).exclude(pk=eyes.own)
    return {"sessions": [_line(each) for each in recent.order_by("-last_accessed").distinct()[:limit]]}


def _found(eyes: Eyes, query: str, limit: int, *kinds: str) -> list[Hit]:
    found = find(eyes.scope, Wish(storable(query), kinds=kinds, limit=limit))
    return [hit for hit in found if eyes.own is None or hit.session_id != eyes.own]


def _told(hit: Hit) -> dict[str, Any]:
    return {"title": hit.title, "excerpt": hit.excerpt, "changed_at": hit.changed_at.isoformat()}


def _newest(session: Session) -> list[dict[str, str]]:
    """As much of its end as fits."""
    kept: list[dict[str, str]] = []
    room = LONGEST_TOLD
    for message in reversed(conversation.messages(session)):
        texts = [block["text"] for block in message["content"] if block.get("type") == "text"]
        text = "\n\n".join(filter(None, texts))
        if not text:
            continue
        kept.append({"role": message["role"], "text": text[-room:]})
        room -= len(text)
        if room <= 0:
            break
    return kept[::-1]


def _line(session: Session) -> dict[str, str]:
    at = session.last_accessed.isoformat()
    return {"session_id": str(session.pk), "title": session.title, "last_accessed": at}

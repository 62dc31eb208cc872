"""Named reads for the API and the pages: a page of sessions, and one session whole."""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.utils.translation import gettext as _

from sessions_app.access.caller import Caller
from sessions_app.errors import Invalid, NotFound
from sessions_app.history import conversation
from sessions_app.models import Session, Turn
from sessions_app.querysets import SessionQuerySet

MOST = 1_000

# What apps above add to one session, by the name of the answer's field: registered in their `ready()`.
Contributor = Callable[[UUID], dict[str, Any]]
contributors: list[Contributor] = []
FARTHEST = 10**9  # an offset beyond what a database counts to is no offset


@dataclass(frozen=True)
class Page:
    sessions: list[Session]
    total: int
    next_cursor: str | None


@dataclass(frozen=True)
class SessionFilter:
    """Which sessions, and how many of them from where."""

    exact: dict[str, Any]
    archived: str = "false"
    search: str = ""
    parent: UUID | None = None
    limit: int = 50
    offset: int = 0
    cursor: str = ""


def page(caller: Caller, wanted: SessionFilter) -> Page:
    """Newest access first. Children are shown only where their parent is asked for."""
    found = _filtered(Session.objects.visible_to(caller), wanted)
    total = found.count()
    if wanted.cursor:
        found = found.filter(_after(wanted.cursor))
    rows = list(
        found.told().order_by("-last_accessed", "-pk")[wanted.offset : wanted.offset + wanted.limit + 1]
    )
    more, rows = len(rows) > wanted.limit, rows[: wanted.limit]
    return Page(rows, total, _cursor(rows[-1]) if more and rows else None)


def _filtered(sessions: SessionQuerySet, wanted: SessionFilter) -> SessionQuerySet:
    sessions = sessions.filter(parent=wanted.parent, **{k: v for k, v in wanted.exact.items() if v})
    if wanted.archived != "any":
        sessions = sessions.filter(archived=wanted.archived == "true")
    if wanted.search:
        sessions = sessions.filter(Q(title__icontains=wanted.search) | Q(summary__icontains=wanted.search))
    return sessions


def _cursor(session: Session) -> str:
    return base64.urlsafe_b64encode(f"{session.last_accessed.isoformat()} {session.pk}".encode()).decode()


def _after(cursor: str) -> Q:
    try:
        when, pk = base64.urlsafe_b64decode(cursor.encode()).decode().split(" ")
        moment, session_id = datetime.fromisoformat(when).astimezone(UTC), UUID(pk)
    except (ValueError, OverflowError) as error:
        raise Invalid.field("cursor", _("This is no cursor of ours. Start without one.")) from error
    return Q(last_accessed__lt=moment) | Q(last_accessed=moment, pk__lt=session_id)


def listed(session_id: UUID) -> Session:
    """One session as a page shows it."""
    session: Session = Session.objects.told().get(pk=session_id)
    return session


def visible(caller: Caller, session_id: UUID) -> Session:
    session = (
        Session.objects.visible_to(caller)
        .select_related("workspace", "created_by")
        .filter(pk=session_id)
        .first()
    )
    if session is None:
        raise NotFound()
    return session  # type: ignore[no-any-return]


def whole(caller: Caller, session_id: UUID) -> dict[str, Any]:
    """One session with what was said in it, and from where to follow what is not over."""
    sessions = Session.objects.visible_to(caller).told()
    session = sessions.filter(pk=session_id).first()
    if session is None:
        raise NotFound()
    pending = open_turns(session)
    return {
        "session": session,
        "messages": conversation.messages(session),
        # The `session` row of the oldest open turn is the one before its `user_message`.
        "replay_from": pending[0].opened_seq - 2 if pending else session.last_seq,
        "pending": [
            {"turn_id": turn.pk, "message": _first_said(turn), "status": turn.status} for turn in pending
        ],
        "children": list(
            Session.objects.visible_to(caller).filter(parent=session).told().order_by("created_at")
        ),
        "contributed": {name: part for each in contributors for name, part in each(session_id).items()},
    }


def open_turns(session: Session) -> list[Turn]:
    """In the order in which they run."""
    turns = Turn.objects.open().filter(session=session).order_by("opened_seq")
    return list(turns.prefetch_related("messages"))


def _first_said(turn: Turn) -> str:
    said = [message.content or message.context for message in turn.messages.all()]
    return said[0] if said else ""

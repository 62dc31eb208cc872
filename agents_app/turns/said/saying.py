"""What is said to a session, as rows: the message, the turn that answers it, and what its stream tells of
both. Whoever says something does it here, a person or the platform; the session is locked by then, so that
messages keep their order."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone
from django.utils.translation import gettext as _

from agents_app.turns.held.ringing import ring_workers
from agents_app.workers import living
from sessions_app.errors import Conflict
from sessions_app.files import attachments
from sessions_app.models import Attachment, EventType, Message, Session, Turn
from sessions_app.querysets import SessionQuerySet
from sessions_app.streaming.log import record, record_all


def locked(sessions: SessionQuerySet) -> Session | None:
    """The one that something is said to, with its workspace, and with whether the worker lives that has it
    warm."""
    warm_there = living.that_live("turns").filter(name=OuterRef("warm_on"))
    found = sessions.annotate(is_warm=Exists(warm_there)).select_for_update(of=("self",))
    session: Session | None = found.select_related("workspace").first()
    return session


def say(
    session: Session,
    message: Message,
    *,
    kept: Sequence[Attachment] = (),
    recovery: str = "",
    more: Mapping[str, Any] | None = None,
    author: str = "",
) -> Turn:
    """Opens a turn for a message that is in no row yet. `session` is `locked`, or made just now. `author` is
    the name of whoever says it, where that is a person or a program of theirs; `more` is what its event has
    beyond that."""
    before = Turn.objects.open().filter(session=session).count() if session.last_seq else 0
    turn = Turn(session=session, opened_seq=session.last_seq + 2, recovery=recovery)
    turn.save(force_insert=True)
    message.session, message.turn = session, turn
    message.save(force_insert=True)
    attachments.attach(message, kept)
    rows = [
        (EventType.SESSION, about(session)),
        (EventType.USER_MESSAGE, as_said(message, kept, more=more, author=author)),
        *([(EventType.TURN_WAITING, {"reason": "queued", "position": before})] if before else []),
    ]
    said = record_all(session.pk, rows, turn_id=turn.pk)[1]
    bring_back(session)
    warm_on = session.warm_on if getattr(session, "is_warm", False) else ""
    transaction.on_commit(lambda: ring_workers(session.pk, warm_on), robust=True)  # a sweep rings again
    if said.seq != turn.opened_seq:
        raise Conflict(_("Two messages met. Send it again."))
    return turn


def bring_back(session: Session) -> None:
    """To the top of the lists, and out of the archive."""
    Session.objects.filter(pk=session.pk).update(last_accessed=timezone.now(), archived=False)
    if session.archived:
        record(session.pk, EventType.SESSION_UPDATED, {"archived": False})


def about(session: Session, resume_info: dict[str, Any] | None = None) -> dict[str, Any]:
    """The `session` event."""
    return {
        "title": session.title,
        "agent": session.agent_slug,
        "workspace": session.workspace.slug,
        "workingDirectory": session.working_directory or session.vault_root,
        "trustLevel": session.trust_level,
        "model": session.model,
        "parentSessionId": str(session.parent_id) if session.parent_id else None,
        "resumeInfo": resume_info,
    }


def as_said(
    message: Message,
    kept: Sequence[Attachment] = (),
    *,
    more: Mapping[str, Any] | None = None,
    author: str = "",
) -> dict[str, Any]:
    """The `user_message` event."""
    return {
        "content": message.content or message.context,
        "attachments": [attachments.as_json(file) for file in kept],
        "source": message.source,
        "author": author or None,
        "fromSessionId": None,
        "fromAgentSlug": None,
        "driverless": False,
        "ticket": None,
        "wakes": [],
        **(more or {}),
    }

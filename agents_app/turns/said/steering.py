"""Saying more to a turn that runs.

What is said waits as a Message of the turn. Its run hands it to the agent while a tool runs, so that the
agent reads it with the tool's answer, and what still waits at the end is answered before the turn is over.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from agents_app.turns.said.opening import Opened, Opening, as_message, check_queue, existing, open_turn
from agents_app.turns.said.saying import as_said, bring_back
from sessions_app.access.caller import Caller
from sessions_app.errors import Invalid, TooLarge
from sessions_app.models import EventType, Message, Session, Turn, TurnStatus
from sessions_app.storable import is_storable, seen
from sessions_app.streaming import bus
from sessions_app.streaming.log import Hold, record

LONGEST = 32_000


def inject(caller: Caller, session_id: UUID, text: str) -> tuple[UUID, str]:
    """The turn that takes it, and whether that runs or waits. Where none runs, it is a message like any."""
    _check(text)
    opening = Opening(text, session_id)
    if turn_id := _say_to_running(caller, session_id, opening):
        return turn_id, TurnStatus.RUNNING
    opened: Opened = open_turn(caller, opening)
    return opened.turn_id, TurnStatus.QUEUED


@transaction.atomic
def _say_to_running(caller: Caller, session_id: UUID, opening: Opening) -> UUID | None:
    # The turn before the session, as its worker takes them: two that lock in two orders wait for ever.
    turn = that_takes_more(session_id)
    if turn is None:
        return None
    session = existing(caller, session_id, opening)
    check_queue(turn.messages.filter(waits=True).count())
    add(turn, session, as_message(caller, opening), author=caller.username)
    return turn.pk


def add(
    turn: Turn,
    session: Session,
    message: Message,
    *,
    more: Mapping[str, Any] | None = None,
    author: str = "",
) -> None:
    """To a turn that takes more, with both rows locked."""
    message.session, message.turn, message.waits = session, turn, True
    message.save(force_insert=True)
    told = as_said(message, more=more, author=author)
    record(session.pk, EventType.USER_MESSAGE, told, turn_id=turn.pk)
    bring_back(session)
    transaction.on_commit(partial(bus.ring, bus.turn_topic(turn.pk), {"type": "inject"}))


def that_takes_more(session_id: UUID) -> Turn | None:
    running = Turn.objects.active().filter(session_id=session_id, takes_more=True, abort_requested_at=None)
    turn: Turn | None = running.select_for_update().first()
    return turn


@transaction.atomic
def taken(hold: Hold) -> list[Message]:
    """What waits, for the agent to be told now."""
    hold.check()
    waiting = list(Message.objects.filter(turn=hold.turn_id, waits=True).order_by("created_at"))
    if waiting:
        Message.objects.filter(pk__in=[message.pk for message in waiting]).update(waits=False)
    return waiting


@transaction.atomic
def taken_or_closed(hold: Hold) -> list[Message]:
    """What waits, or, if nothing does, nothing will: from here on the turn takes no more."""
    waiting = taken(hold)
    if not waiting:
        Turn.objects.filter(pk=hold.turn_id).update(takes_more=False)
    return waiting


def _check(text: str) -> None:
    if not seen(text):
        raise Invalid.field("message", _("Say something: the message is empty."))
    if len(text) > LONGEST:
        raise TooLarge(
            _("The message has %(length)s characters; at most %(most)s are taken here.")
            % {"length": f"{len(text):,}", "most": f"{LONGEST:,}"}
        )
    if not is_storable(text):
        raise Invalid.field("message", _("It holds a character that is no text (NUL or half of a pair)."))

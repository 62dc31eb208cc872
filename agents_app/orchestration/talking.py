"""Parent and child speak to each other: the child by a wake of its parent, the parent as a person would."""

from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from agents_app.orchestration import ending, waking
from agents_app.orchestration.errors import NotYourChild
from agents_app.orchestration.models import Wake, WakeKind, WakeState
from agents_app.orchestration.spawning import check_living, of_parent
from agents_app.orchestration.wakes import message as messages
from agents_app.turns.said import steering
from agents_app.turns.said.opening import check_queue
from agents_app.turns.said.saying import locked, say
from permissions_app import strangers
from sessions_app.errors import Invalid, RateLimited, SessionNotRunning
from sessions_app.models import Message, Session, SessionStatus, Speaker, Turn, TurnStatus
from sessions_app.models.session import LIVE
from sessions_app.storable import is_storable, seen

LONGEST_SUMMARY = 4_000
LONGEST_INJECTED = 32_000
LONGEST_OPTION = 200
MOST_OPTIONS = 8
MOST_A_TURN = 20  # messages of one child; what is beyond is refused, and said once in the ledger
REFUSED = "refused"
TOO_MANY = "it said more than {most} things in one turn"


@transaction.atomic
def message_caller(
    child_id: UUID, use: str, summary: str, *, asks: bool = False, options: list[str] | None = None
) -> dict[str, str]:
    chosen = options or []
    _check("summary", summary, LONGEST_SUMMARY)
    if len(chosen) > MOST_OPTIONS:
        raise Invalid.field("options", _("At most %(most)d can be offered.") % {"most": MOST_OPTIONS})
    for option in chosen:
        _check("options", option, LONGEST_OPTION)
    turn = Turn.objects.active().filter(session=child_id).select_for_update().first()
    child = Session.objects.select_related("parent").filter(pk=child_id).first()
    if child is None or child.parent is None:
        raise SessionNotRunning(_("Whoever started this session is not there any more."))
    list(
        Session.objects.select_for_update(no_key=True).filter(pk=child.parent_id).values_list("pk", flat=True)
    )
    if waking.has_ended(child.parent.kind, child.parent.status):
        raise SessionNotRunning(_("Whoever started this session has ended. Finish what you can by yourself."))
    news = messages.of(child, turn.pk if turn else None, use, summary, asks=asks, options=chosen)
    said = Wake.objects.filter(session=child.parent_id, child=child, kind=WakeKind.MESSAGE, cause=news.cause)
    if said.exclude(state=WakeState.SKIPPED).count() >= MOST_A_TURN:
        return _refuse(child, turn)
    waking.note(child.parent_id, news)
    return {"status": "sent"}


def _refuse(child: Session, turn: Turn | None) -> dict[str, str]:
    """Once for each turn the ledger says that there was more. It is written, so nothing is raised here."""
    more = messages.of(
        child, turn.pk if turn else None, f"beyond {turn and turn.pk}", "", asks=False, options=[]
    )
    assert child.parent_id is not None
    waking.note(child.parent_id, more, skipped=TOO_MANY.format(most=MOST_A_TURN))
    return {"status": REFUSED}


def too_many() -> RateLimited:
    return RateLimited(
        _("You have said %(most)d things to your caller in this turn. Say the rest in your answer.")
        % {"most": MOST_A_TURN}
    )


@transaction.atomic
def inject(parent_id: UUID, child_id: UUID, text: str) -> dict[str, Any]:
    """Into the turn that runs, or as a new one. A child that is through with its work goes on."""
    _check("text", text, LONGEST_INJECTED)
    turn = steering.that_takes_more(child_id)
    ending.lock_parent_of(child_id)
    child = locked(Session.objects.filter(pk=child_id))
    if child is None or child.parent_id != parent_id:
        raise NotYourChild(_("You have started no such session."))
    if child.status == SessionStatus.FAILED:
        raise SessionNotRunning(_("This child has failed and takes no more messages. Start another one."))
    if child.status not in LIVE:
        check_living(parent_id)
    parent = Session.objects.get(pk=parent_id)
    if parent.has_read_strangers:
        strangers.mark(child.pk)
    message = Message(source=Speaker.PARENT, content=text)
    if turn is not None:
        check_queue(turn.messages.filter(waits=True).count())
        steering.add(turn, child, message, more=of_parent(parent))
        return {"turn_id": str(turn.pk), "status": "running"}
    check_queue(Turn.objects.filter(session=child, status=TurnStatus.QUEUED).count())
    opened = say(child, message, more=of_parent(parent))
    return {"turn_id": str(opened.pk), "status": "queued"}


def _check(field: str, text: str, longest: int) -> None:
    if not seen(text):
        raise Invalid.field(field, _("Say something: it is empty."))
    if len(text) > longest:
        most = {"length": f"{len(text):,}", "most": f"{longest:,}"}
        raise Invalid.field(field, _("It has %(length)s characters; at most %(most)s are taken.") % most)
    if not is_storable(text):
        raise Invalid.field(field, _("It holds a character that is no text (NUL or half of a pair)."))

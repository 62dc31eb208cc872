"""Waking a session: the only writer of wakes.

1. Whoever causes one notes it, in the transaction of its cause (`note`). Its key makes the same cause one
   row.
2. After commit, at the end of each turn of the session, and by a sweep, what waits is delivered (`deliver`):
   all of it together, in order, as one turn of the platform's, and only where no turn is open. So what
   arrives while the session works piles up and is one turn.
3. When that turn is over it is settled (`settle`): what it cost, or, where it failed before its agent had
   done anything, that it waits again.
"""

import json
import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, F, OuterRef
from django.utils import timezone

from agents_app.orchestration.models import Supervision, Wake, WakeState
from agents_app.orchestration.wakes import NEEDLESS
from agents_app.orchestration.wakes.news import News
from agents_app.turns.said.saying import locked, say
from permissions_app import strangers
from sessions_app.models import (
    Message,
    Session,
    SessionEvent,
    SessionKind,
    SessionStatus,
    Speaker,
    Turn,
    TurnStatus,
)
from sessions_app.models.event import WORK
from sessions_app.models.session import LIVE

log = logging.getLogger(__name__)

MOST_CHARACTERS = 40_000  # in one turn; what is beyond comes in the next
MOST_AT_ONCE = 500  # sessions a sweep
TRIED_FOR = timedelta(days=1)
FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=1), timedelta(hours=1)
ENDED, STOPPED, IN_VAIN = "it has ended", "a person took it back", "each turn that told it failed"
WORDS = "Parachute wakes you. What follows is from the platform, oldest first; nobody is watching this turn."


def note(session_id: UUID, news: News, *, skipped: str = "") -> Wake | None:
    """In the transaction of its cause. None where that is noted already. What a session itself caused is
    `skipped`, with the reason; what comes when it has ended is for nobody."""
    reader = Session.objects.filter(pk=session_id).values_list("kind", "status").first()
    if reader is None:
        return None
    state, reason = WakeState.QUEUED, ""
    if skipped:
        state, reason = WakeState.SKIPPED, skipped
    elif has_ended(*reader):
        state, reason = WakeState.EXPIRED, ENDED
    wake, is_new = Wake.objects.get_or_create(
        session_id=session_id,
        dedupe_key=news.key,
        defaults={
            "child_id": news.child_id,
            "kind": news.kind,
            "cause": news.cause,
            "payload": news.told,
            "state": state,
            "reason": reason,
            "not_before": (now := timezone.now()),
            "created_at": now,
            "settled_at": None if state == WakeState.QUEUED else now,
        },
    )
    if not is_new:
        return None
    if state == WakeState.QUEUED:
        transaction.on_commit(lambda: _deliver(session_id), robust=True)
    return wake


def has_ended(kind: str, status: str) -> bool:
    """An orchestrator that has come to its end is no more. Others go on with whatever is said to them; but a
    chat that somebody ended, and nothing else makes one fail, goes on with what people say to it."""
    if kind == SessionKind.WORKER:
        return status == SessionStatus.FAILED
    return kind == SessionKind.ORCHESTRATOR and status not in LIVE


def can_be_woken(session: Session) -> bool:
    """A scheduled one is complete at the end of its turn, and its children wake it again."""
    if session.status in LIVE:
        return True
    return session.parent_id is None and not has_ended(session.kind, session.status)


def is_on_its_way() -> Exists:
    """To a session that is looked at."""
    return Exists(Wake.objects.waiting().filter(session=OuterRef("pk")))


def deliver(session_id: UUID) -> UUID | None:
    """The turn that tells what waits; None where nothing does, or not now."""
    with transaction.atomic():
        session = locked(Session.objects.filter(pk=session_id))
        if session is None or _is_busy(session) or not (waiting := _waiting(session)):
            return None
        needed = [wake for wake in waiting if not _skip_if_needless(wake)]
        if not (told := _that_fit(needed)):
            return None
        return _tell(session, told)


def _deliver(session_id: UUID) -> None:
    deliver(session_id)


def _is_busy(session: Session) -> bool:
    if has_ended(session.kind, session.status):
        expire(session.pk)
        return True
    if session.workspace.archived_at is not None:  # nothing is said there; it waits until it is taken out
        return True
    is_paused = Supervision.objects.filter(session=session, paused_at__isnull=False).exists()
    return is_paused or Turn.objects.open().filter(session=session).exists()


def _waiting(session: Session) -> list[Wake]:
    due = Wake.objects.due().filter(session=session)
    return list(due.order_by("created_at", "pk").select_for_update()[:200])


def _skip_if_needless(wake: Wake) -> bool:
    if reason := NEEDLESS[wake.kind](wake):
        _settled(Wake.objects.filter(pk=wake.pk), WakeState.SKIPPED, reason)
    return bool(reason)


def _that_fit(wakes: Sequence[Wake]) -> list[Wake]:
    """The oldest of them, one at least."""
    kept: list[Wake] = []
    room = MOST_CHARACTERS
    for wake in wakes:
        room -= len(json.dumps(wake.payload))
        if kept and room < 0:
            break
        kept.append(wake)
    return kept


def _tell(session: Session, wakes: list[Wake]) -> UUID:
    payloads = [wake.payload for wake in wakes]
    message = Message(source=Speaker.PLATFORM, content=as_words(payloads))
    turn = say(session, message, more={"wakes": payloads, "driverless": True, **_from(wakes)})
    now = timezone.now()
    for wake in wakes:
        Wake.objects.waiting().filter(pk=wake.pk).update(
            state=WakeState.DELIVERED, turn=turn, settled_at=now, payload=wake.payload
        )
    children = Session.objects.filter(pk__in=[wake.child_id for wake in wakes if wake.child_id])
    if children.filter(has_read_strangers=True).exists():
        strangers.mark(session.pk)
    return turn.pk


def as_words(payloads: list[dict[str, Any]]) -> str:
    return f"{WORDS}\n\n{json.dumps(payloads, ensure_ascii=False, indent=1)}"


def _from(wakes: list[Wake]) -> dict[str, Any]:
    """Where all of it is of one child, which one."""
    named = {(wake.payload.get("from_session_id"), wake.payload.get("from_agent_slug")) for wake in wakes}
    session_id, slug = named.pop() if len(named) == 1 else (None, None)
    return {"fromSessionId": session_id, "fromAgentSlug": slug}


def settle(turn: Turn) -> None:
    """A turn is over. Hearing of it twice changes nothing."""
    told = Wake.objects.filter(turn=turn, state=WakeState.DELIVERED)
    wakes = list(told)
    if not wakes:
        return
    if turn.status == TurnStatus.DONE:
        told.filter(cost_usd=0).update(cost_usd=turn.cost_usd / len(wakes))
    elif turn.status == TurnStatus.ABORTED and turn.started_at is None:
        _settled(told, WakeState.SKIPPED, STOPPED)
    elif turn.status == TurnStatus.FAILED and not _has_worked(turn):
        for wake in wakes:
            _tell_again(wake)


def _has_worked(turn: Turn) -> bool:
    return SessionEvent.objects.filter(turn=turn, type__in=WORK).exists()


def _tell_again(wake: Wake) -> None:
    """Its agent has not heard it, because the model was away, or the machine full: later, and ever later."""
    failed = Wake.objects.filter(pk=wake.pk, turn=wake.turn_id, state=WakeState.DELIVERED)
    now = timezone.now()
    if now - wake.created_at > TRIED_FOR:
        log.warning("%s was not told for a day: each turn that was to tell it failed.", wake)
        _settled(failed, WakeState.EXPIRED, IN_VAIN)
        return
    pause = min(FIRST_PAUSE * 2 ** min(wake.tries, 10), LONGEST_PAUSE)
    failed.update(
        state=WakeState.QUEUED, turn=None, settled_at=None, tries=F("tries") + 1, not_before=now + pause
    )


def expire(session_id: UUID) -> int:
    """For one that has ended: whoever comes after it never gets its wakes."""
    return _settled(Wake.objects.waiting().filter(session=session_id), WakeState.EXPIRED, ENDED)


def _settled(wakes: Any, state: WakeState, reason: str) -> int:
    changed: int = wakes.update(state=state, reason=reason, turn=None, settled_at=timezone.now())
    return changed


def sweep() -> int:
    """Delivers what was not, because a process died between a commit and what comes after it."""
    busy = Turn.objects.open().filter(session=OuterRef("session"))
    due = Wake.objects.due().filter(~Exists(busy))
    free = due.filter(session__workspace__archived_at=None)
    free = free.exclude(session__supervision__paused_at__isnull=False)
    sessions = set(free.order_by().values_list("session_id", flat=True).distinct()[:MOST_AT_ONCE])
    return sum(_tried(session_id) for session_id in sessions)


def _tried(session_id: UUID) -> bool:
    """One that cannot be woken keeps no other from it; the next sweep tries it again."""
    try:
        return deliver(session_id) is not None
    except Exception:
        log.exception("Session %s could not be woken.", session_id)
        return False

"""What the platform keeps of a session that it starts or wakes. The only writer of `Supervision`."""

from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from agents_app.definitions.definition import Definition
from agents_app.orchestration import block
from agents_app.orchestration.models import Supervision, Trigger
from agents_app.orchestration.permitted import holds_any, startable
from agents_app.orchestration.waking import can_be_woken, deliver
from sessions_app import services
from sessions_app.access.caller import Caller
from sessions_app.errors import Invalid, SessionEnded
from sessions_app.models import EventType, Session
from sessions_app.reading import listed
from sessions_app.storable import storable
from sessions_app.streaming.log import record

SILENT_AFTER = 300  # seconds
LONGEST_QUIET = 24 * 60 * 60
LONGEST_REASON = 500


def begin(session: Session, definition: Definition, triggered_by: Trigger) -> Supervision:
    """As the session begins: what it is told of others stays so as long as it lives."""
    made, _is_new = Supervision.objects.get_or_create(
        session=session,
        defaults={
            "triggered_by": triggered_by,
            "block": "" if session.parent_id else block.told(startable(session)),
            **_of_file(definition),
        },
    )
    return made


def at_turn(session: Session, definition: Definition) -> str:
    """The block of the session; a file that was changed meanwhile has its other settings counted."""
    kept = Supervision.objects.filter(session=session).first()
    if kept is None:
        if session.parent_id is not None or not holds_any(session):
            return ""
        return begin(session, definition, Trigger.USER).block
    now = _of_file(definition)
    if (kept.silent_after, kept.checkup_minutes) != (now["silent_after"], now["checkup_minutes"]):
        Supervision.objects.filter(pk=kept.pk).update(**now)
    return kept.block


def block_of(session: Session) -> str:
    """What a session is told, or would be in its first turn."""
    kept = Supervision.objects.filter(session=session.pk).first()
    if kept is not None:
        return kept.block
    return "" if session.parent_id else block.told(startable(session))


def is_kept(session: Session) -> bool:
    """Of each session that may start others, from its first turn on."""
    return Supervision.objects.filter(session=session.pk).exists()


def _of_file(definition: Definition) -> dict[str, int | None]:
    fields = definition.fields
    return {
        "silent_after": fields.activity_timeout_seconds or SILENT_AFTER,
        "checkup_minutes": fields.checkup_minutes,
    }


def expect_quiet(session_id: UUID, seconds: int, reason: str) -> dict[str, str]:
    if not 0 < seconds <= LONGEST_QUIET:
        raise Invalid.field("seconds", _("Between 1 and %(most)d seconds.") % {"most": LONGEST_QUIET})
    until = timezone.now() + timedelta(seconds=seconds)
    said = storable(reason)[:LONGEST_REASON]
    Supervision.objects.filter(session=session_id).update(quiet_until=until, quiet_reason=said)
    return {"status": "ok", "quiet_until": until.isoformat().replace("+00:00", "Z")}


@transaction.atomic
def pause(caller: Caller, session_id: UUID) -> Session:
    """Nothing wakes it from here on: what comes waits. The turn that runs goes on to its end."""
    return _set_paused(caller, session_id, is_paused=True)


@transaction.atomic
def resume(caller: Caller, session_id: UUID) -> Session:
    session = _set_paused(caller, session_id, is_paused=False)
    transaction.on_commit(lambda: _deliver(session_id), robust=True)
    return session


def _deliver(session_id: UUID) -> None:
    deliver(session_id)


def _set_paused(caller: Caller, session_id: UUID, *, is_paused: bool) -> Session:
    session = services.locked(caller, session_id)
    if not can_be_woken(session):
        raise SessionEnded(_("This session has ended: nothing wakes it any more."))
    Supervision.objects.get_or_create(session=session)
    changed = Supervision.objects.filter(session=session, paused_at__isnull=is_paused)
    if changed.update(paused_at=timezone.now() if is_paused else None):
        record(session_id, EventType.SESSION_UPDATED, {"paused": is_paused})
    return listed(session_id)

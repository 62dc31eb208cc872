"""Deleting a session, also while a worker runs a turn of it.

Its rows go in one transaction, and that is what stops the worker: a turn that is not there is not held, so it
writes nothing more and ends its agent, as one does that lost its lease. Then it removes what the agent wrote
meanwhile. Nobody waits for it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from agents_app.orchestration import ending
from agents_app.turns.held.ringing import ring_workers
from agents_app.workers import living
from permissions_app.services import close_all
from permissions_app.services.telling import ring_inboxes
from sessions_app import copies, services
from sessions_app.access.caller import Caller
from sessions_app.errors import Conflict
from sessions_app.history import transcripts
from sessions_app.models import EventType, Session, SessionCopy, Turn
from sessions_app.models.turn import ACTIVE
from sessions_app.streaming import bus
from sessions_app.streaming.log import record

TRIES = 5


def delete(caller: Caller, session_id: UUID) -> None:
    """With its turns, messages and events, its transcript, and the copy of that in the vault."""
    services.check_writable(caller, session_id)

    def theirs() -> Session:
        session = services.locked(caller, session_id)
        services.check_rules_over(caller, session)
        return session

    if not any(_delete(session_id, theirs, caller.username) for _try in range(TRIES)):
        raise Conflict(_("Somebody speaks to it at this very moment. Try again."))


@dataclass(frozen=True)
class CleanUp:
    """Which sessions are old: in the archive, and not spoken to for so many days. A message takes one out of
    the archive, and whoever asks for its transcript does not keep it there."""

    days: int

    @property
    def sessions(self) -> QuerySet[Session]:
        before = timezone.now() - timedelta(days=self.days)
        found: QuerySet[Session] = Session.objects.filter(archived=True, last_accessed__lt=before)
        return found.order_by("last_accessed")

    def delete(self) -> int:
        """How many are gone. One that is spoken to at this moment is not old any more, and stays."""
        return sum(self._delete_one(pk) for pk in list(self.sessions.values_list("pk", flat=True)))

    def _delete_one(self, session_id: UUID) -> bool:
        def still_old() -> Session:
            found = self.sessions.filter(pk=session_id).select_for_update(of=("self",), no_key=True)
            return found.select_related("workspace").get()

        try:
            return _delete(session_id, still_old, "Parachute")
        except Session.DoesNotExist:
            return False


@transaction.atomic
def _delete(session_id: UUID, locked: Callable[[], Session], by: str) -> bool:
    """False where a turn was opened meanwhile. The turns are locked before the session, as workers do it."""
    turns = Turn.objects.open().filter(session=session_id).order_by("opened_seq")
    held = list(turns.select_for_update())
    known = [turn.pk for turn in held]
    ending.lock_parent_of(session_id)
    session = locked()
    if turns.exclude(pk__in=known).exists():
        return False
    working = [turn.pk for turn in held if turn.status in ACTIVE]
    for turn_id in working:
        close_all(turn_id)  # its parent shows what it asks
    _tell_those_who_stay(session)
    ending.was_deleted(session, by)
    vault, workspace_id = Path(session.workspace.vault_path), session.workspace_id
    warm_on = session.warm_on if living.that_live("turns").filter(name=session.warm_on).exists() else ""
    copy = SessionCopy.objects.filter(session=session).first()
    session.delete()
    ring_inboxes(workspace_id)  # what its agent asked to be allowed for good is gone too

    def afterwards() -> None:
        for turn_id in known:
            bus.ring(bus.turn_topic(turn_id), {"type": "abort"})
        bus.ring_deleted(session_id)
        bus.ring_lists(workspace_id)
        if warm_on:
            ring_workers(session_id, warm_on)  # it finds nothing to run, and lets go of what rests there
        transcripts.remove(session_id, vault, is_written=bool(working))
        if copy is not None:
            copies.remove(vault, copy)

    transaction.on_commit(afterwards, robust=True)
    return True


def _tell_those_who_stay(session: Session) -> None:
    """Its children are conversations of their own, with work in them that nobody asked to delete: they lose
    their parent (`SET_NULL`) and go on. So does what was continued from it."""
    for other in Session.objects.filter(Q(parent=session) | Q(continued_from=session)).order_by("pk"):
        lost = {"parentSessionId": other.parent_id, "continuedFrom": other.continued_from_id}
        told = {name: None for name, pk in lost.items() if pk == session.pk}
        record(other.pk, EventType.SESSION_UPDATED, told)


def is_deleted(session_id: UUID) -> bool:
    return not Session.objects.filter(pk=session_id).exists()

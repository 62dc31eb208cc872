"""The only writers of curator runs: which exchange is looked at, who looks, and how it ended.

The moves of a run are conditional UPDATEs; what a tool of the curator changes is written in `changes.py`.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from curator_app import activity
from curator_app.errors import CannotUndo, CuratorIsOff, NothingToLookAt
from curator_app.models import ENDED, CuratorRun, RunStatus
from curator_app.told import last_run, on_the_wire
from sessions_app import copies
from sessions_app import services as sessions
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.errors import NotFound
from sessions_app.models import (
    EventType,
    Message,
    Session,
    Speaker,
    TitleSource,
    Turn,
    TurnStatus,
)
from sessions_app.streaming.log import record

log = logging.getLogger(__name__)

GROUP = "group"  # as a bot calls it
FIRST = frozenset({1, 3, 5})
EVERY = 10
PEOPLE = (Speaker.USER, Speaker.API, Speaker.BOT)
GIVEN_UP_AFTER = 60.0  # seconds
LOST_AFTER = timedelta(seconds=GIVEN_UP_AFTER + 30)  # its worker would have given it up by then
LOST = "Its worker ended in the middle of it."
LAST_RUN, SDK_SESSION = "curator_last_run", "curator_session_id"


@dataclass(frozen=True)
class Cost:
    """What a run took of the model: its own, and none of the chat's."""

    usage: Mapping[str, int] = field(default_factory=dict)
    usd: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """How a run came to its end. `trouble`: what kept one of its tools from its work."""

    model: str
    cost: Cost
    sdk_session: UUID
    trouble: str = ""


def is_due(exchange_number: int) -> bool:
    return exchange_number in FIRST or (exchange_number > 0 and exchange_number % EVERY == 0)


def is_on(session: Session) -> bool:
    return bool(settings.PARACHUTE_CURATOR) and session.workspace.curates


def is_curated(session: Session) -> bool:
    """Not a child's, a schedule's, or a bot's group."""
    return not session.is_errand and session.bot_chat_type != GROUP


def exchanges(session_id: UUID) -> Any:
    """The turns of a session in which a person was answered, in their order."""
    of_people = Message.objects.filter(turn=OuterRef("pk"), source__in=PEOPLE)
    done = Turn.objects.filter(session=session_id, status=TurnStatus.DONE)
    return done.filter(Exists(of_people)).order_by("opened_seq")


def note(turn: Turn) -> UUID | None:
    """A turn is over. Where its exchange is due a run waits for a worker; hearing of it twice changes
    nothing. The answer is the run that waits."""
    session: Session = turn.session
    if turn.status != TurnStatus.DONE or not (is_on(session) and is_curated(session)):
        return None
    number = exchanges(session.pk).filter(opened_seq__lte=turn.opened_seq).count()
    if not is_due(number) or not exchanges(session.pk).filter(pk=turn.pk).exists():
        return None
    run, made = CuratorRun.objects.get_or_create(
        turn=turn, is_by_hand=False, defaults={"session": session, "exchange_number": number}
    )
    return run.pk if made or run.status == RunStatus.QUEUED else None


@transaction.atomic
def trigger(caller: Caller, session_id: UUID) -> None:
    """Somebody wants the newest exchange looked at, due or not. One that waits already is enough."""
    session = sessions.locked(caller, session_id)
    if not is_on(session):
        raise CuratorIsOff(_why_off())
    newest = exchanges(session_id).last()
    if newest is None:
        raise NothingToLookAt(_("There is no answer yet that the curator could look at."))
    if not CuratorRun.objects.filter(session=session_id, status=RunStatus.QUEUED, turn=newest).exists():
        number = exchanges(session_id).count()
        CuratorRun.objects.create(session=session, turn=newest, exchange_number=number, is_by_hand=True)


def _why_off() -> str:
    if not settings.PARACHUTE_CURATOR:
        return _("The curator is off on this server (PARACHUTE_CURATOR). Who runs it can turn it on.")
    return _("The curator is off in this workspace. An owner of it can turn it on.")


def waits_since() -> datetime | None:
    """Of the run that has waited longest and could be claimed."""
    return _claimable().values_list("created_at", flat=True).first()


def is_busy() -> bool:
    """Somebody is being answered."""
    return Turn.objects.filter(status=TurnStatus.RUNNING).exists()


def _claimable() -> QuerySet[CuratorRun]:
    """Not what waits where the curator has been turned off meanwhile: nobody pays for that."""
    running = CuratorRun.objects.filter(session=OuterRef("session"), status=RunStatus.RUNNING)
    waiting = CuratorRun.objects.filter(status=RunStatus.QUEUED, session__workspace__curates=True)
    found = waiting.exclude(Exists(running)).order_by("created_at")
    return found if settings.PARACHUTE_CURATOR else found.none()


def claim_next() -> CuratorRun | None:
    """The one that has waited longest, of a session in which none runs."""
    for session_id in _claimable().values_list("session_id", flat=True)[:100]:
        if run := _claim(session_id):
            return run
    return None


def _claim(session_id: UUID) -> CuratorRun | None:
    """The newest exchange that waits in the session; those before it are passed over."""
    waiting = CuratorRun.objects.filter(session=session_id, status=RunStatus.QUEUED)
    newest = waiting.order_by("-exchange_number", "-created_at").first()
    if newest is None:
        return None
    now = timezone.now()
    try:
        with transaction.atomic():
            claimed = waiting.filter(pk=newest.pk).update(status=RunStatus.RUNNING, started_at=now)
            if claimed != 1:
                return None  # another worker has it
            waiting.filter(exchange_number__lte=newest.exchange_number).update(
                status=RunStatus.SKIPPED, ended_at=now
            )
    except IntegrityError:
        return None  # another one runs there
    found = CuratorRun.objects.select_related("session__workspace", "session__created_by", "turn")
    claimed_run: CuratorRun = found.get(pk=newest.pk)
    return claimed_run


def put_back(run_id: UUID) -> None:
    """Its worker stops: whoever is left, or the next start, looks at it."""
    running = CuratorRun.objects.filter(pk=run_id, status=RunStatus.RUNNING)
    running.update(status=RunStatus.QUEUED, started_at=None)


def finish(run_id: UUID, outcome: Outcome) -> None:
    """One whose tools were all kept from their work has failed, whatever its model thinks of it."""
    has_acted = CuratorRun.objects.filter(pk=run_id).exclude(actions=[]).exists()
    status = RunStatus.DONE if has_acted or not outcome.trouble else RunStatus.FAILED
    columns: dict[str, Any] = {
        "model": outcome.model,
        "usage": outcome.cost.usage,
        "cost_usd": outcome.cost.usd,
    }
    _end(run_id, outcome.sdk_session, status=status, error=outcome.trouble, **columns)


def fail(run_id: UUID, error: str, *, cost: Cost | None = None, forget: bool = False) -> bool:
    """`forget`: its memory of the chat is what it failed by, so the next run begins a new one."""
    cost = cost or Cost()
    more = {"error": error, "usage": cost.usage, "cost_usd": cost.usd}
    return _end(run_id, None, status=RunStatus.FAILED, forget=forget, **more)


@transaction.atomic
def _end(run_id: UUID, sdk_session: UUID | None, *, forget: bool = False, **columns: Any) -> bool:
    """False where it is over already, or its chat is gone."""
    running = CuratorRun.objects.filter(pk=run_id, status=RunStatus.RUNNING)
    session_id = running.values_list("session_id", flat=True).first()
    session = Session.objects.select_for_update().filter(pk=session_id).first()
    if session is None or running.update(ended_at=timezone.now(), **columns) != 1:
        return False
    run = CuratorRun.objects.get(pk=run_id)
    metadata = {**session.metadata, LAST_RUN: last_run(run)}
    if sdk_session is not None:
        metadata[SDK_SESSION] = str(sdk_session)
    if forget:
        metadata.pop(SDK_SESSION, None)
    Session.objects.filter(pk=session.pk).update(metadata=metadata)
    told = {"metadata": metadata, "curatorLastRun": on_the_wire(run)}
    record(session.pk, EventType.SESSION_UPDATED, told)
    return True


def sweep() -> bool:
    """Those whose worker was killed have failed. Says whether any waits that could be claimed."""
    lost = CuratorRun.objects.filter(
        status=RunStatus.RUNNING, started_at__lt=timezone.now() - LOST_AFTER
    ).values_list("pk", flat=True)
    for run_id in list(lost):
        fail(run_id, LOST)
    return _claimable().exists()


def take_lines_back() -> None:
    """Out of the vaults: the lines of chats that are private where others have come to read, or that are not
    shared any more."""
    closed = Session.objects.filter(copies.is_closed())
    lines = CuratorRun.objects.filter(is_in_vault=True, status__in=ENDED, session__in=closed)
    for workspace in Workspace.objects.filter(pk__in=lines.values("session__workspace")):
        try:
            _take_back(workspace, lines.filter(session__workspace=workspace))
        except OSError as error:
            log.warning("The log of the day in %s could not be changed: %s", workspace.slug, error.strerror)


def _take_back(workspace: Workspace, lines: QuerySet[CuratorRun]) -> None:
    """Raises OSError: what is left is tried again."""
    of_day = defaultdict[date, dict[UUID, UUID]](dict)
    for run in lines:
        assert run.day  # what is logged has one
        of_day[run.day][run.pk] = run.session_id
    for day, runs in of_day.items():
        activity.take_away(Path(workspace.vault_path), day, {*runs.values()})
        CuratorRun.objects.filter(pk__in=runs).update(is_in_vault=False)


def days_in_vault(session_id: UUID) -> list[date]:
    lines = CuratorRun.objects.filter(session=session_id, is_in_vault=True, day__isnull=False)
    return list(lines.order_by("day").values_list("day", flat=True).distinct())


def take_lines_out(vault: Path, days: Iterable[date], session_id: UUID) -> None:
    """Of a chat that is deleted. Who keeps these files locked is waited for once, and not each day anew."""
    waits = True
    for day in days:
        try:
            activity.take_away(vault, day, [session_id], waits=waits)
        except OSError as error:
            log.warning("What the deleted chat %s logged on %s stays: %s", session_id, day, error.strerror)
            if isinstance(error, BlockingIOError):
                waits = False


@transaction.atomic
def undo(caller: Caller, session_id: UUID, run_id: UUID) -> CuratorRun:
    """What it made of title and summary, where that still stands. From here on they are a person's: the
    curator would only make them again."""
    session = sessions.locked(caller, session_id)
    run: CuratorRun | None = CuratorRun.objects.filter(session=session_id, pk=run_id).first()
    if run is None:
        raise NotFound
    wanted = undoable(session, run)
    if not wanted:
        raise CannotUndo(_("There is nothing of it left to undo: title and summary are others by now."))
    CuratorRun.objects.filter(pk=run.pk).update(undone_at=timezone.now())
    sessions.change(session, wanted)
    run.refresh_from_db()
    return run


def undoable(session: Session, run: CuratorRun) -> dict[str, str]:
    """The columns as they were before it; of those that it changed, and nobody since."""
    wanted: dict[str, str] = {}
    if run.undone_at is not None:
        return wanted
    if run.title_after and session.title == run.title_after and session.title_source == TitleSource.AI:
        wanted["title"] = run.title_before
    if run.summary_after and session.summary == run.summary_after and not session.is_summary_a_persons:
        wanted["summary"] = run.summary_before
    return wanted

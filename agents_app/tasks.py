import logging
from uuid import UUID

from celery import shared_task
from django.conf import settings

from agents_app.orchestration import permitted, waking, watching
from agents_app.schedules import services as schedules
from agents_app.turns.held import idling, leases
from agents_app.turns.running import announcing
from agents_app.turns.said.deleting import CleanUp

log = logging.getLogger(__name__)


@shared_task
def run_session(session_id: str) -> None:
    from agents_app.workers.turn_worker import running

    running().serve(UUID(session_id))


@shared_task
def ring_for_waiting_turns() -> None:
    leases.ring_for_waiting()


@shared_task
def sweep_lost_turns() -> None:
    leases.sweep()


@shared_task
def tell_what_is_over() -> None:
    announcing.sweep()


@shared_task
def wake_sessions() -> None:
    waking.sweep()


@shared_task
def watch_children() -> None:
    watching.sweep()


@shared_task
def tick(schedule_id: int) -> None:
    schedules.tick(schedule_id)


@shared_task
def keep_schedules() -> None:
    schedules.sync()
    schedules.sweep()


@shared_task
def sweep_grants() -> None:
    permitted.revoke_dangling()


@shared_task
def complete_idle_sessions() -> None:
    idling.sweep()


@shared_task
def clean_up_old_sessions() -> None:
    if days := settings.PARACHUTE_CLEANUP_DAYS:
        gone = CleanUp(days).delete()
        log.info("%d archived chats of more than %d days ago were deleted.", gone, days)

"""The doorbell of the workers. What is rung for is in the rows; a sweep repeats a ring that is lost."""

import logging
from uuid import UUID

from celery import current_app
from kombu.exceptions import OperationalError

log = logging.getLogger(__name__)

RUN = "agents_app.tasks.run_session"  # by its name: what it leads to rings too
SHARED = "turns"


def own_queue(worker: str) -> str:
    """What only this worker hears: sessions whose agent it keeps warm."""
    return f"{SHARED}.{worker}"


def send(args: tuple[str], queue: str) -> None:
    current_app.send_task(RUN, args=args, queue=queue)


def ring_workers(session_id: UUID, warm_on: str = "") -> None:
    """Only after commit: a worker that is quicker than the transaction would find nothing."""
    try:
        send((str(session_id),), own_queue(warm_on) if warm_on else SHARED)
    except (OperationalError, OSError) as error:
        log.warning("The broker is away (%s); the turn waits for the next sweep.", error)

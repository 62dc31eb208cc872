"""The doorbell of the workers. What is rung for is in the rows; a sweep repeats a ring that is lost."""

import logging
from uuid import UUID

from kombu.exceptions import OperationalError

log = logging.getLogger(__name__)


SHARED = "turns"


def own_queue(worker: str) -> str:
    """What only this worker hears: sessions whose agent it keeps warm."""
    return f"{SHARED}.{worker}"


def ring_workers(session_id: UUID, warm_on: str = "") -> None:
    """Only after commit: a worker that is quicker than the transaction would find nothing."""
    from agents_app.tasks import run_session

    try:
        run_session.apply_async((str(session_id),), queue=own_queue(warm_on) if warm_on else SHARED)
    except (OperationalError, OSError) as error:
        log.warning("The broker is away (%s); the turn waits for the next sweep.", error)

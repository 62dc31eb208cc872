"""The curator's doorbell. The rows say what waits, and a sweep repeats a ring that is lost."""

import logging

from celery import current_app
from kombu.exceptions import OperationalError

log = logging.getLogger(__name__)

OBSERVE = "curator_app.tasks.observe"


def send() -> None:
    current_app.send_task(OBSERVE, queue="background")


def ring_curator() -> None:
    """Only after commit."""
    try:
        send()
    except (OperationalError, OSError) as error:
        log.warning("The broker is away (%s); the curator hears of it by the next sweep.", error)

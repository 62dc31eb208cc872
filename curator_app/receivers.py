"""What is done here when something happens in an app below."""

import logging
from typing import Any

from django.db import transaction
from django.db.models.signals import post_delete
from django.dispatch import receiver

from agents_app.signals import turn_finished
from curator_app import memory, services
from curator_app.ringing import ring_curator
from sessions_app.models import Session, Turn

log = logging.getLogger(__name__)


@receiver(turn_finished)
def look_at_exchange(turn: Turn, **_: Any) -> None:
    if services.note(turn) is not None:
        ring_curator()


@receiver(post_delete, sender=Session)
def forget_chat(instance: Session, **_: Any) -> None:
    """What the curator remembers of a chat goes with it."""
    session_id = instance.pk
    transaction.on_commit(lambda: memory.remove(session_id), robust=True)

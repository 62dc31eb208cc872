"""What is done here when something happens in an app below."""

import logging
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models.signals import post_delete, pre_delete
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


@receiver(pre_delete, sender=Session)
def take_lines_out(instance: Session, **_: Any) -> None:
    """While its runs still say on which days they are; out of the vault once it is gone for certain."""
    if days := services.days_in_vault(instance.pk):
        session_id, vault = instance.pk, Path(instance.workspace.vault_path)
        transaction.on_commit(lambda: services.take_lines_out(vault, days, session_id), robust=True)


@receiver(post_delete, sender=Session)
def forget_chat(instance: Session, **_: Any) -> None:
    """What the curator remembers of a chat goes with it."""
    session_id = instance.pk
    transaction.on_commit(lambda: memory.remove(session_id), robust=True)

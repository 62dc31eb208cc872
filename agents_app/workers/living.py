"""Which workers live: each says so every ten seconds, in a row."""

from datetime import timedelta
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone

from agents_app.models import Worker

SAID_EVERY = 10.0  # seconds; a turn worker renews its leases with it
GONE_AFTER = timedelta(seconds=30)


def say_alive(name: str, boot: UUID, queue: str) -> None:
    Worker.objects.update_or_create(
        name=name, defaults={"boot": boot, "queue": queue, "seen_at": timezone.now()}
    )


def say_goodbye(name: str, boot: UUID) -> None:
    Worker.objects.filter(name=name, boot=boot).delete()


def forget_all() -> None:
    """Before a first worker starts on a machine of its own: rows of a killed start say nothing true."""
    Worker.objects.all().delete()


def that_live(queue: str) -> QuerySet[Worker]:
    return Worker.objects.filter(queue=queue, seen_at__gt=timezone.now() - GONE_AFTER)


def count(queue: str) -> int:
    return that_live(queue).count()
